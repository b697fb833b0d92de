"""Building a task's kernel for a GPU that is elsewhere: the screen, the signature and the compiler need none."""

import tempfile
from pathlib import Path

from team.devices.absent import absent_gpu
from team.errors import UserError
from team.judge.failures import Failed
from team.judge.kernels import KernelShop
from team.tasks.spec import read_spec
from team.tasks.vetting.finding import Vetted


def vet_build(folder: Path, architecture: str, vetted: Vetted) -> None:
    """Build the kernel as the judge does; what it says is a finding, and that it builds a note."""
    device = absent_gpu(architecture)
    if read_spec(folder).device != "cuda":
        raise UserError(f"Task {vetted.task} is for a CPU.", "Leave out --build-for, and see: kernelteam eval TASK")
    with tempfile.TemporaryDirectory(prefix="kernelteam-build-") as scratch:
        shop = KernelShop(device, Path(scratch))
        try:
            built = shop.kernel(shop.task(folder.resolve()), folder.resolve(), "candidate").artifact.build
        except Failed as failed:
            vetted.add("does not build", failed.sentence, "Mend the kernel.")
        else:
            vetted.notes.append(f"the kernel builds for sm_{device.target} ({built.compiler}, {built.seconds:.1f} s)")
        finally:
            shop.close()
