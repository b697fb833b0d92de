"""Which layers this machine can put around a runner, as ``kernelteam doctor`` tells them."""

import ctypes
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from team.probes.finding import SANDBOX, Finding, first_line

# The same number on every architecture that Linux added it to (include/uapi/asm-generic/unistd.h).
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_CREATE_RULESET_VERSION = 1


def layers() -> Iterator[Finding]:
    """Bubblewrap, Landlock, seccomp, user namespaces and another uid: each is tried, not looked up."""
    yield _bubblewrap()
    yield _landlock()
    yield _seccomp()
    yield _user_namespaces()
    yield _another_uid()


def landlock_abi() -> int:
    """Landlock's ABI version in the running kernel; 0 when it is absent or switched off (landlock(7))."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    answer = syscall(
        ctypes.c_long(_LANDLOCK_CREATE_RULESET),
        None,
        ctypes.c_size_t(0),
        ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION),
    )
    return max(0, int(answer))


def _bubblewrap() -> Finding:
    if shutil.which("bwrap") is None:
        remedy = "Install it, e.g. with: apt-get install bubblewrap"
        return Finding("bubblewrap", False, "bwrap is not on the PATH.", remedy, SANDBOX)
    if first_line("bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--dev", "/dev", "true") is None:
        remedy = "Allow user namespaces to this user, or run outside a container that forbids them."
        return Finding("bubblewrap", False, "bwrap is installed but may not make a sandbox here.", remedy, SANDBOX)
    return Finding("bubblewrap", True, first_line("bwrap", "--version") or "works", "", SANDBOX)


def _landlock() -> Finding:
    abi = landlock_abi()
    remedy = "" if abi else "Boot with lsm=landlock,... on Linux 5.13 or newer; a container may have to allow it."
    return Finding("landlock", abi > 0, f"ABI {abi}" if abi else "The kernel offers no Landlock.", remedy, SANDBOX)


def _seccomp() -> Finding:
    actions = Path("/proc/sys/kernel/seccomp/actions_avail")
    works = actions.is_file() and "errno" in actions.read_text()
    remedy = "" if works else "Use a kernel with CONFIG_SECCOMP_FILTER."
    return Finding("seccomp", works, "filters" if works else "The kernel offers no filters.", remedy, SANDBOX)


def _user_namespaces() -> Finding:
    works = first_line("unshare", "--user", "--map-root-user", "true") is not None
    what = "can be made" if works else "This user may not make user namespaces."
    remedy = (
        "" if works else "Allow them with: sysctl kernel.unprivileged_userns_clone=1 (or user.max_user_namespaces)."
    )
    return Finding("user namespaces", works, what, remedy, SANDBOX)


def _another_uid() -> Finding:
    if os.geteuid() == 0:
        return Finding("another uid", True, "this is root, which can give kernels an uid of their own", "", SANDBOX)
    remedy = "Run as root in a container of its own if you want kernels to run under another uid."
    return Finding("another uid", False, "This user cannot start processes as another user.", remedy, SANDBOX)
