"""Run by path: times built kernels against the first one, interleaved, and prints log gains.

Standard input: ``{"libraries": [path, ...], "problem": name, "shapes": [[...], ...], "rounds": n}``. Standard output:
for every library after the first, the mean over shapes of the median log ratio first / library.
"""

import ctypes
import json
import math
import statistics
import sys
import time

import numpy as np
import problems


def once(solve, arguments, launches):
    start = time.perf_counter()
    for _ in range(launches):
        solve(*arguments)
    return (time.perf_counter() - start) / launches


def main():
    request = json.load(sys.stdin)
    kernels = [ctypes.CDLL(path).solve for path in request["libraries"]]
    gains = [0.0] * len(kernels)
    for shape in request["shapes"]:
        values, _, _ = getattr(problems, request["problem"])(*shape, rng=np.random.default_rng(0))
        arguments = [problems.as_argument(value) for value in values]
        launches = [max(1, int(1e-3 / once(solve, arguments, 2))) for solve in kernels]
        times = [[once(*pair) for pair in zip(kernels, [arguments] * len(kernels), launches, strict=True)]
                 for _ in range(request["rounds"])]  # fmt: skip
        for number in range(len(kernels)):
            ratio = statistics.median(row[0] / row[number] for row in times)
            gains[number] += math.log(ratio) / len(request["shapes"])
    json.dump(gains[1:], sys.stdout)


if __name__ == "__main__":
    main()
