"""Run compute-sanitizer's four tools on one launch of a CUDA task's kernel.

usage: python scripts/sanitize.py TASK_FOLDER [TREE]     TREE: a folder with other editable files; default: the task's
Exit status 0 when every tool is clean, 1 when one found something.
"""

import sys
import tempfile
from pathlib import Path

from team.devices import discover
from team.devices.cuda import CudaDevice
from team.errors import UserError
from team.judge.cuda.sanitize import sanitize
from team.judge.kernels import KernelShop


def main(folder: Path, tree: Path) -> int:
    """Print what each tool found."""
    device = discover("cuda", 1)[0]
    assert isinstance(device, CudaDevice)
    with tempfile.TemporaryDirectory(prefix="kernelteam-sanitize-") as scratch:
        shop = KernelShop(device, Path(scratch))
        task = shop.task(folder.resolve())
        kernel = shop.kernel(task, tree.resolve(), "candidate")
        seen = sanitize(task, kernel.artifact, device, shop.host, shop.native)
    for one in seen:
        print(f"{one.tool:<10} {'clean' if one.clean else f'{one.errors} errors'}")
        for finding in one.findings:
            print(f"           {finding}")
    return 0 if all(one.clean for one in seen) else 1


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[-1])))
    except UserError as error:
        sys.exit(str(error))
