"""A kernel that tries every act of ``test_sandbox`` inside a CUDA runner, and says which GPUs it finds there.

usage: python cuda_probe.py UUID FOLDER     writes {layers, refused: {act: bool}, gpus: [UUID], nodes: [path]} as JSON
``nodes`` are the device files of other GPUs that it could open.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from test_sandbox import ACTS, HEADERS

from team.devices.cuda import cuda_device
from team.judge.cuda.bench import CudaBench
from team.judge.cuda.card import Card
from team.judge.cuda.inputs import CudaInputs
from team.judge.kernels import KernelShop

UNBOUNDED = "map a terabyte"  # CUDA reserves more address space than that; resident memory is bounded by the judge
OURS = {
    **{name: act for name, act in ACTS.items() if name != UNBOUNDED},
    "find more than a handful of variables": ("", "[] { int n = 0; while (environ[n]) n++; return n < 12; }()"),
    "open files without end": ("rlimits", "capped(RLIMIT_NOFILE, 1024)"),
}
MOST = 16  # GPUs of one machine
KERNEL = """\
#include <cuda_runtime.h>
constexpr int kActs = {acts}, kMost = {most}, kAll = kActs + 1 + 17 * kMost;
struct Found {{
    float at[kAll];
}};
static __global__ void put(Found found, float* y, int n) {{
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = found.at[i];
}}
static Found probe() {{
    Found found{{}};
    float* y = found.at;
{lines}
    int count = 0;
    cudaGetDeviceCount(&count);
    y[kActs] = count;
    for (int i = 0; i < count && i < kMost; i++) {{
        cudaDeviceProp card;
        cudaGetDeviceProperties(&card, i);
        for (int k = 0; k < 16; k++) y[kActs + 1 + 16 * i + k] = static_cast<unsigned char>(card.uuid.bytes[k]);
    }}
    for (int i = 0; i < kMost; i++)
        y[kActs + 1 + 16 * kMost + i] = opens("/dev/nvidia" + std::to_string(i), O_RDWR) ? 1.0f : 0.0f;
    return found;
}}
extern "C" void solve(const float* x, float* y, int n) {{
    static const Found found = probe();
    put<<<1, 128>>>(found, y, n);
}}
"""


def write_task(folder: Path) -> Path:
    """The probe as a task's kernel."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"    y[{number}] = ({act}) ? 1.0f : 0.0f;\n" for number, (_, act) in enumerate(OURS.values()))
    (folder / "probe.cu").write_text(HEADERS + KERNEL.format(acts=len(OURS), most=MOST, lines=lines))
    (folder / "reference.py").write_text("def reference(x, y):\n    y.copy_(x)\n")
    (folder / "task.toml").write_text(
        'name = "probe"\ndevice = "cuda"\nsource = "probe.cu"\n[screen]\nactive = false\n'
        '[arguments]\nx = { shape = ["n"] }\ny = { shape = ["n"] }\n'
        f'[[workloads]]\nname = "all"\ndims = {{ n = {len(OURS) + 1 + 17 * MOST} }}\n'
    )
    return folder


def told(values: list[float], layers: str, own_node: str) -> dict[str, Any]:
    """The probe's numbers with their names."""
    acts, rest = values[: len(OURS)], values[len(OURS) :]
    names = [bytes(map(int, rest[1 + 16 * i : 17 + 16 * i])).hex() for i in range(int(rest[0]))]
    opened = [f"/dev/nvidia{i}" for i, there in enumerate(rest[1 + 16 * MOST :]) if there]
    return {
        "layers": layers,
        "refused": {name: value == 1.0 for name, value in zip(OURS, acts, strict=True)},
        "gpus": [f"GPU-{n[:8]}-{n[8:12]}-{n[12:16]}-{n[16:20]}-{n[20:]}" for n in names],
        "nodes": [node for node in opened if node != own_node],
    }


def main(uuid: str, folder: Path) -> None:
    """Build the probe, run it once in a runner, print what it found."""
    device = cuda_device(uuid)
    device.pin()
    shop = KernelShop(device, folder)
    task = shop.task(write_task(folder / "task"))
    kernel = shop.kernel(task, task.folder, "candidate").artifact
    bench = CudaBench(Card(device), shop.host, shop.native, folder / "empty")
    source, workload = CudaInputs(task), task.workloads[0]
    layout = bench.arrange(task, workload, 1, random.Random(1))
    bench.provide(layout.end)
    try:
        with bench.stand("candidate", task, kernel, 0) as stand:
            lease = stand.stage(1, layout, 1)
            lease.fill(source.timed(workload, 1))
            lease.poison(source.generator)
            stand.go(1, 60.0)
            values = lease.outputs(1)["y"][0].tolist()
    finally:
        bench.close()
        shop.close()
    assert not any((folder / "empty").iterdir())
    sys.stdout.write(json.dumps(told(values, bench.layers, device.nodes[0])))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
