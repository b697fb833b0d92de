"""The sandbox around a kernel on a GPU, as a real runner there reports it: asked by ``kernelteam doctor``. Trusted.

usage: python -m team.judge.cuda.layers     prints the layers around a runner on the first visible GPU
"""

import sys
import tempfile
from pathlib import Path

from team.devices.cuda import CudaDevice
from team.devices.nvml import NO_GPU, visible_uuids
from team.errors import UserError
from team.judge.arena import PAGE
from team.judge.cuda.bench import CudaBench
from team.judge.cuda.build import kernel_recipe, lent_signature
from team.judge.cuda.card import Card
from team.judge.kernels import KernelShop
from team.judge.shim import shim_recipe
from team.tasks.signature import parse_signature

_NOTHING = 'extern "C" void solve(float* y, int n) {}\n'


def layers_of(device: CudaDevice, folder: Path) -> str:
    """Start a runner on ``device`` as for any kernel, load one that does nothing, and ask; ``folder`` is scratch."""
    device.pin()
    shop = KernelShop(device, folder)
    files = {"nothing.cu": _NOTHING}
    kernel = shop.native.build(kernel_recipe(files, "nothing.cu", device.target, "reference", None, 120.0))
    shim = shop.host.build(shim_recipe(lent_signature(parse_signature(_NOTHING, "cuda"))))
    bench = CudaBench(Card(device), shop.host, shop.native, folder / "empty")
    lent = bench.card.lend(PAGE)
    try:
        runner = bench.runner(lent)
        layers = runner.hold(shim, [kernel])
        bench.pool.retire(runner)
        return layers
    finally:
        bench.close()
        shop.close()
        lent.close()


if __name__ == "__main__":
    try:
        if not (seen := visible_uuids()):
            raise UserError("No GPU is visible.", NO_GPU)
        with tempfile.TemporaryDirectory(prefix="kernelteam-layers-") as scratch:
            sys.stdout.write(layers_of(CudaDevice(seen[0]), Path(scratch)) + "\n")
    except UserError as error:
        sys.exit(str(error))
