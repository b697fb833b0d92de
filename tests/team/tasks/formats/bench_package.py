"""The real package flashinfer-bench in a folder of its own, as ``kernelteam flashinfer confirm --package`` takes it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from team.tasks.formats.flashinfer.official import INSTALL, PACKAGE

PLACE = "KERNELTEAM_FLASHINFER_BENCH"  # names a folder that it is in already


def installed(folder: Path) -> Path:
    """A folder that holds it: the one that is named, or a new one; the test is skipped where there is no index."""
    if PLACE in os.environ:
        assert (Path(os.environ[PLACE]) / PACKAGE).is_dir()
        return Path(os.environ[PLACE])
    words = INSTALL.replace("DIR", str(folder)).split()[1:]
    own = [sys.executable, "-m", "pip"]
    other = [str(shutil.which("pip")), "--python", sys.executable]
    for pip in (own, other):
        done = subprocess.run([*pip, *words, "--quiet"], capture_output=True, text=True, timeout=200, check=False)
        if done.returncode == 0:
            return folder
    pytest.skip(f"flashinfer-bench cannot be installed here: {done.stderr.strip()[-200:]}; {PLACE} names none")
