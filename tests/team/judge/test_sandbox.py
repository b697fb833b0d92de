"""Each layer of the runner's sandbox, proved by acts that a kernel tries in it and that must fail.

One probe kernel tries every act and writes down, for each, whether it was refused. Where the machine does not permit a
layer, the doctor must say so.
"""

import os
import random
from pathlib import Path

import pytest

from team.devices.cpu import cpu_devices
from team.judge.bench import Bench
from team.judge.build import Builder, Recipe, kernel_flags
from team.judge.failures import BuildFailed
from team.judge.inputs import InputSource
from team.probes.sandbox import layers as doctors_layers
from team.tasks.task import load_task

SECRET = "KERNELTEAM_TEST_SECRET"
HEADERS = """\
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
extern char** environ;
static bool capped(__rlimit_resource what, rlim_t most) {
    rlimit now{};
    return getrlimit(what, &now) == 0 && now.rlim_cur <= most && now.rlim_max <= most;
}
static bool raised(__rlimit_resource what) {
    rlimit more{RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(what, &more) == 0;
}
static bool opens(const std::string& path, int how) {
    int fd = open(path.c_str(), how, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}
static bool full_before(int most) {
    int fds[256], count = 0;
    while (count < most && (fds[count] = dup(0)) >= 0) count++;
    for (int i = 0; i < count; i++) close(fds[i]);
    return count < most;
}
static bool cannot_grow_files() {
    signal(SIGXFSZ, SIG_IGN);
    int fd = memfd_create("probe", 0);
    return fd < 0 || (write(fd, "x", 1) < 0 && errno == EFBIG);
}
static bool cannot_peek() {
    char byte = 0;
    static char there = 1;
    iovec ours{&byte, 1}, theirs{&there, 1};
    return process_vm_readv(getppid(), &ours, 1, &theirs, 1, 0) < 0;
}
static bool maps(size_t size) {
    return mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}
static bool clones() {
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return child >= 0;
}
static bool takes_cores() {
    cpu_set_t all;
    memset(&all, 255, sizeof all);
    return sched_setaffinity(0, sizeof all, &all) == 0;
}
static bool traces(__ptrace_request how) { return ptrace(how, getppid(), 0, 0) == 0; }
static bool connects(int family, int kind) { return socket(family, kind, 0) >= 0; }
static const std::string judge = "/proc/" + std::to_string(getppid());
"""

# act -> (the layer that refuses it, a C++ expression that is true when it was refused); "" is no layer of its own
ACTS = {
    "see the judge's environment": ("", f'getenv("{SECRET}") == nullptr'),
    "find more than a handful of variables": ("", "[] { int n = 0; while (environ[n]) n++; return n < 8; }()"),
    "map a terabyte": ("rlimits", "!maps(1ull << 40)"),
    "leave a core file": ("rlimits", "capped(RLIMIT_CORE, 0)"),
    "write a file of any size": ("rlimits", "capped(RLIMIT_FSIZE, 0) && cannot_grow_files()"),
    "open files without end": ("rlimits", "capped(RLIMIT_NOFILE, 64) && full_before(200)"),
    "burn time without end": ("rlimits", "capped(RLIMIT_CPU, 1200)"),
    "fill message queues": ("rlimits", "capped(RLIMIT_MSGQUEUE, 0)"),
    "start threads without end": ("uid", "capped(RLIMIT_NPROC, 512)"),
    "raise a limit": ("seccomp", "!raised(RLIMIT_FSIZE) && !raised(RLIMIT_AS)"),
    "leave the process group": ("seccomp", "getpgrp() == getpid() && setpgid(0, getppid()) < 0 && setsid() < 0"),
    "outlive the judge": (
        "seccomp",
        "[] { int s = 0; prctl(PR_GET_PDEATHSIG, &s); return s == SIGKILL && prctl(PR_SET_PDEATHSIG, 0) < 0; }()",
    ),
    "fork": ("seccomp", "[] { pid_t p = fork(); if (p == 0) _exit(0); return p < 0; }()"),
    "fork by the bare call": ("seccomp", "[] { long p = syscall(SYS_fork); if (p == 0) _exit(0); return p < 0; }()"),
    "clone a process": ("seccomp", "!clones()"),
    "run a program": ("seccomp", 'execl("/usr/bin/true", "true", nullptr) < 0'),
    "open an internet socket": ("seccomp", "!connects(AF_INET, SOCK_STREAM) && !connects(AF_INET6, SOCK_DGRAM)"),
    "open a local socket": ("seccomp", "socket(AF_UNIX, SOCK_STREAM, 0) < 0"),
    "share memory with others": ("seccomp", "shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) < 0"),
    "leave its cores": ("seccomp", "!takes_cores()"),
    "take precedence": ("seccomp", "setpriority(PRIO_PROCESS, 0, -5) < 0"),
    "trace the judge": ("seccomp", "!traces(PTRACE_ATTACH) && !traces(PTRACE_SEIZE)"),
    "read the judge's memory": ("seccomp", "cannot_peek()"),
    "signal the judge": ("seccomp", "kill(getppid(), 0) < 0 && kill(-1, 0) < 0"),
    "hold the judge by a descriptor": ("seccomp", "syscall(SYS_pidfd_open, getppid(), 0) < 0"),
    "count events of the machine": (
        "seccomp",
        "[] { perf_event_attr a{}; a.size = sizeof a; return syscall(SYS_perf_event_open, &a, 0, -1, -1, 0) < 0; }()",
    ),
    "mount and unshare": ("seccomp", 'mount("none", "/mnt", "tmpfs", 0, nullptr) < 0 && unshare(CLONE_NEWUSER) < 0'),
    "load a program into the kernel": ("seccomp", "syscall(SYS_bpf, 0, nullptr, 0) < 0"),
    "open the judge's memory": ("landlock", '!opens(judge + "/mem", O_RDONLY) && !opens(judge + "/environ", O_RDONLY)'),
    "list the judge's descriptors": ("landlock", '!opens(judge + "/fd", O_RDONLY | O_DIRECTORY)'),
    "read files of the system's users": ("landlock", '!opens("/etc/passwd", O_RDONLY) && !opens("/root", O_RDONLY)'),
    "make a file anywhere": (
        "landlock",
        '!opens("/tmp/kt-probe", O_CREAT | O_WRONLY) && !opens("/dev/shm/kt-probe", O_CREAT | O_WRONLY) && '
        '!opens("/var/tmp/kt-probe", O_CREAT | O_WRONLY) && !opens("kt-probe", O_CREAT | O_WRONLY)',
    ),
    "make a folder or a link": ("landlock", 'mkdir("kt-probe", 0700) < 0 && symlink("/etc", "kt-probe") < 0'),
    "be root": ("uid", "getuid() != 0 && geteuid() != 0 && setuid(0) < 0 && getgid() != 0"),
}  # fmt: skip


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bool], set[str]]:
    """Whether each act was refused, and the layers that the runner reported."""
    place = tmp_path_factory.mktemp("probe")
    lines = "".join(f"    y[{number}] = ({act}) ? 1.0f : 0.0f;\n" for number, (_, act) in enumerate(ACTS.values()))
    source = f'{HEADERS}extern "C" void solve(const float* x, float* y, int n) {{\n{lines}}}\n'
    (place / "probe.cpp").write_text(source)
    (place / "reference.py").write_text("def reference(x, y):\n    y.copy_(x)\n")
    (place / "task.toml").write_text(
        'name = "probe"\nsource = "probe.cpp"\n[arguments]\nx = { shape = ["n"] }\ny = { shape = ["n"] }\n'
        f'[[workloads]]\nname = "all"\ndims = {{ n = {len(ACTS)} }}\n'
    )
    task, builder = load_task(place), Builder(place / "cache", place / "work")
    kernel = builder.build(Recipe({"probe.cpp": source}, "probe.cpp", kernel_flags("reference", None)))
    bench = Bench(cpu_devices(1)[0], builder, place / "empty")
    inputs = InputSource(task)
    layout = bench.arrange(task, task.workloads[0], 1, random.Random(1))
    bench.provide(layout.end)
    os.environ[SECRET] = "in the judge's environment"
    try:
        with bench.stand("candidate", task, kernel, 0) as stand:
            lease = stand.stage(1, layout, 1)
            lease.fill(inputs.timed(task.workloads[0], 1))
            lease.poison(inputs.generator)
            stand.go(1, 60.0)
            refused = [bool(value == 1.0) for value in lease.outputs(1)["y"][0].tolist()]
    finally:
        del os.environ[SECRET]
    active = set(bench.layers.split())
    bench.close()
    assert not any((place / "empty").iterdir())
    return refused, active


@pytest.mark.parametrize("act", ACTS)
def test_the_kernel_cannot(act: str, probed: tuple[list[bool], set[str]]) -> None:
    refused, active = probed
    layer = ACTS[act][0]
    if layer and layer not in active:
        assert not _doctor()[layer]
        pytest.skip(f"this machine does not permit the layer {layer}, and the doctor says so")
    assert refused[list(ACTS).index(act)]


def test_the_runner_and_the_doctor_agree(probed: tuple[list[bool], set[str]]) -> None:
    _, active = probed
    assert {"rlimits", "no_new_privs"} <= active
    for layer, there in _doctor().items():
        assert (layer in active) == there


def _doctor() -> dict[str, bool]:
    found = {finding.name: finding.ok for finding in doctors_layers()}
    return {"landlock": found["landlock"], "seccomp": found["seccomp"], "uid": found["another uid"], "rlimits": True}


def test_the_compiler_is_confined_too(tmp_path: Path) -> None:
    """What the screen would refuse reaches no file through the compiler either."""
    (tmp_path / "secret.txt").write_text("secret")
    builder = Builder(tmp_path / "cache", tmp_path / "work")
    text = f'asm(".incbin \\"{tmp_path}/secret.txt\\"");\nint f() {{ return 1; }}\n'
    recipe = Recipe({"k.cpp": text}, "k.cpp", ("-O0", "-fPIC", "-shared"), 60.0)
    if not _doctor()["landlock"]:
        pytest.skip("this machine has no Landlock, and the doctor says so")
    with pytest.raises(BuildFailed, match=r"secret\.txt"):
        builder.build(recipe)
