// The few calls that order.h makes, over a graph that a test builds by hand.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>
#define CUDART_VERSION 13000
struct FakeGraph {
    std::vector<std::pair<int*, int*>> edges;
    std::vector<bool> early;  // by edge: a programmatic dependency
    std::vector<int*> nodes, tails;
};
using cudaGraph_t = FakeGraph*;
using cudaGraphNode_t = int*;
using cudaStream_t = FakeGraph*;
enum cudaGraphDependencyType { cudaGraphDependencyTypeDefault, cudaGraphDependencyTypeProgrammatic };
struct cudaGraphEdgeData {
    unsigned char type;
};
enum cudaError_t { cudaSuccess };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, void*,
                                            cudaGraph_t* graph, const cudaGraphNode_t** tails,
                                            const cudaGraphEdgeData**, size_t* count) {
    *status = cudaStreamCaptureStatusActive;
    *graph = stream;
    *tails = stream->tails.data();
    *count = stream->tails.size();
    return cudaSuccess;
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    *count = graph->nodes.size();
    for (size_t i = 0; nodes != nullptr && i < *count; i++) nodes[i] = graph->nodes[i];
    return cudaSuccess;
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                                     size_t* count) {
    *count = graph->edges.size();
    for (size_t i = 0; from != nullptr && i < *count; i++) {
        from[i] = graph->edges[i].first;
        to[i] = graph->edges[i].second;
        data[i].type = graph->early[i] ? cudaGraphDependencyTypeProgrammatic : cudaGraphDependencyTypeDefault;
    }
    return cudaSuccess;
}
