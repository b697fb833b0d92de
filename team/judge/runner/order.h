// Whether the launches in a captured graph follow one another. Each call of `solve` must wait for the one before it: work
// that hangs on an older node, or on none, would let calls overlap, and a throughput would be sold as a time. A
// programmatic dependency lets a node begin before its parent has ended: it waits for what its parent waited for, and for
// no more. Within a call that is a kernel's own business; across calls it is an overlap.
#pragma once
#include <cstdint>
#include <cuda_runtime.h>
#include <map>
#include <vector>

namespace order {

class Watch {
  public:
    // Look at the capture on `stream` after each call; the first look is before the first call.
    void look(cudaStream_t stream) {
        cudaGraph_t graph = nullptr;
        std::vector<cudaGraphNode_t> tails = tails_of(stream, graph);
        if (graph == nullptr) return;
        for (cudaGraphNode_t node : nodes_of(graph)) {
            if (!index_.emplace(node, born_.size()).second) continue;
            born_.push_back(tails_.size());
            handles_.push_back(node);
        }
        tails_.push_back(tails);
    }

    // Nodes that do not wait for everything that ended the call before theirs.
    size_t overlaps(cudaGraph_t graph) {
        if (born_.size() > kMost) return 0;
        parents_ = parents_of(graph);
        words_ = (born_.size() + 63) / 64;
        before_.assign(born_.size(), {});
        size_t found = 0;
        for (size_t node = 0; node < born_.size(); node++) {
            if (born_[node] == 0) continue;
            const std::vector<uint64_t>& seen = ancestors(node);
            bool waits = true;
            for (cudaGraphNode_t tail : tails_[born_[node] - 1]) {
                size_t at = index_.at(tail);
                waits = waits && (seen[at / 64] >> (at % 64) & 1) != 0;
            }
            found += waits ? 0 : 1;
        }
        return found;
    }

  private:
    struct Parent {
        cudaGraphNode_t node;
        bool ended;  // the child waits for the parent's end, not only for its beginning
    };
    using Parents = std::map<cudaGraphNode_t, std::vector<Parent>>;

    static constexpr size_t kMost = 20000;  // nodes; ancestors are kept as one bit for each pair of nodes

    const std::vector<uint64_t>& ancestors(size_t wanted) {
        std::vector<size_t> path{wanted};
        while (!path.empty()) {
            size_t at = path.back();
            bool ready = before_[at].empty();
            for (const Parent& parent : ready ? parents_[handles_[at]] : std::vector<Parent>()) {
                size_t number = index_.at(parent.node);
                if (!before_[number].empty()) continue;
                path.push_back(number);
                ready = false;
                break;
            }
            if (ready) join_parents(at);
            if (!before_[at].empty()) path.pop_back();
        }
        return before_[wanted];
    }

    void join_parents(size_t at) {
        std::vector<uint64_t> all(words_ + 1);
        for (const Parent& parent : parents_[handles_[at]]) {
            size_t number = index_.at(parent.node);
            for (size_t word = 0; word < words_; word++) all[word] |= before_[number][word];
            if (parent.ended) all[number / 64] |= 1ull << (number % 64);
        }
        before_[at] = all;
    }

    static std::vector<cudaGraphNode_t> tails_of(cudaStream_t stream, cudaGraph_t& graph) {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        const cudaGraphNode_t* tails = nullptr;
        size_t count = 0;
#if CUDART_VERSION >= 13000
        const cudaGraphEdgeData* edges = nullptr;
        cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &tails, &edges, &count);
#else
        cudaError_t error = cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, &tails, &count);
#endif
        if (error != cudaSuccess || status != cudaStreamCaptureStatusActive) graph = nullptr;
        return graph == nullptr ? std::vector<cudaGraphNode_t>() : std::vector<cudaGraphNode_t>(tails, tails + count);
    }

    static std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
        size_t count = 0;
        if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return {};
        std::vector<cudaGraphNode_t> nodes(count);
        if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return {};
        return nodes;
    }

    // Before CUDA 13 a graph with a programmatic dependency has no edges to tell of: then everything overlaps.
    static Parents parents_of(cudaGraph_t graph) {
        size_t count = 0;
        Parents parents;
#if CUDART_VERSION >= 13000
        if (cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count) != cudaSuccess) return parents;
        std::vector<cudaGraphNode_t> from(count), to(count);
        std::vector<cudaGraphEdgeData> data(count);
        if (cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &count) != cudaSuccess) return parents;
        for (size_t i = 0; i < count; i++)
            parents[to[i]].push_back({from[i], data[i].type != cudaGraphDependencyTypeProgrammatic});
#else
        if (cudaGraphGetEdges(graph, nullptr, nullptr, &count) != cudaSuccess) return parents;
        std::vector<cudaGraphNode_t> from(count), to(count);
        if (cudaGraphGetEdges(graph, from.data(), to.data(), &count) != cudaSuccess) return parents;
        for (size_t i = 0; i < count; i++) parents[to[i]].push_back({from[i], true});
#endif
        return parents;
    }

    std::map<cudaGraphNode_t, size_t> index_;
    std::vector<cudaGraphNode_t> handles_;
    std::vector<size_t> born_;  // the call in which a node appeared; 0: before the first
    std::vector<std::vector<cudaGraphNode_t>> tails_;  // what ended each call
    Parents parents_;
    std::vector<std::vector<uint64_t>> before_;
    size_t words_ = 0;
};

}  // namespace order
