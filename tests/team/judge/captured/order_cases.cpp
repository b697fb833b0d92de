// Graphs as a capture would leave them; prints how many nodes overlap in each.
#include <cstdio>
#include <initializer_list>

#include "order.h"

struct Case {
    FakeGraph graph;
    order::Watch watch;

    int* add(std::initializer_list<int*> parents, bool early = false) {
        int* node = new int;
        graph.nodes.push_back(node);
        for (int* parent : parents) graph.edges.push_back({parent, node}), graph.early.push_back(early);
        return node;
    }
    void call(std::initializer_list<int*> tails) {
        graph.tails = tails;
        watch.look(&graph);
    }
    void print(const char* name) { printf("%s %zu\n", name, watch.overlaps(&graph)); }
};

int main() {
    Case chain;
    int* tail = chain.add({});
    chain.call({tail});
    for (int i = 0; i < 500; i++) {
        tail = chain.add({chain.add({tail})});
        chain.call({tail});
        if (i == 7) chain.call({tail});  // a call that launches nothing
    }
    chain.print("chain");

    Case fork;
    int *start = fork.add({}), *main = start, *aside = nullptr;
    fork.call({start});
    for (int i = 0; i < 5; i++) {
        int* left = aside == nullptr ? fork.add({main}) : fork.add({main, aside});
        int* right = aside == nullptr ? fork.add({main}) : fork.add({main, aside});
        main = left, aside = right;
        fork.call({left, right});
    }
    fork.print("fork");

    Case roots;
    start = roots.add({});
    roots.call({start});
    roots.call({roots.add({start})});
    roots.call({roots.add({})});  // hangs on nothing
    roots.print("roots");

    Case pool;
    start = pool.add({});
    pool.call({start});
    int* first = pool.add({start});
    pool.call({start, first});
    int* second = pool.add({start});  // beside the first call
    pool.call({start, first, second});
    pool.call({pool.add({start, first})});  // waits for the first call only
    pool.print("pool");

    Case within;  // two kernels a call, the second of which begins before the first has ended
    tail = within.add({});
    within.call({tail});
    for (int i = 0; i < 3; i++) {
        int* before = within.add({tail});
        tail = within.add({before}, true);
        within.call({before, tail});
        tail = within.add({before, tail});
        within.call({tail});
    }
    within.print("within");

    Case across;  // every call begins before the one before it has ended
    tail = across.add({});
    across.call({tail});
    for (int i = 0; i < 3; i++) {
        tail = across.add({tail}, true);
        across.call({tail});
    }
    across.print("across");
}
