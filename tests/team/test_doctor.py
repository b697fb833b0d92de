"""`kernelteam doctor` on the machine that it is on: nothing crashes it, and whatever is missing has a remedy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from team.doctor import diagnose, missing
from team.probes.finding import first_line
from team.probes.gpu import runner_layers
from team.probes.host import _ranges
from team.probes.sandbox import landlock_abi


def _by_name() -> dict[str, tuple[bool, str, str]]:
    findings = diagnose()
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: (finding.ok, finding.what, finding.remedy) for finding in findings}


def test_every_missing_thing_has_a_remedy_and_no_other_has() -> None:
    found = _by_name()
    assert all(what for _, what, _ in found.values())
    assert {name for name, (ok, _, remedy) in found.items() if ok == bool(remedy)} == set()
    names = {"python", "git", "g++", "clang++", "nvcc", "ncu", "compute-sanitizer", "perf", "cores", "memory",
             "shared memory", "disk", "ray", "torch", "apache-tvm-ffi", "ANTHROPIC_API_KEY", "bubblewrap", "landlock",
             "seccomp", "user namespaces", "another uid"}  # fmt: skip
    assert names <= set(found)
    assert any(name.startswith("gpu") for name in found)


def test_the_value_of_the_key_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    found = _by_name()
    assert found["ANTHROPIC_API_KEY"] == (True, "set", "")
    assert "very-secret" not in str(found)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert not _by_name()["ANTHROPIC_API_KEY"][0]


def test_an_empty_path_is_a_finding_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = {finding.name for finding in missing(diagnose())}
    assert {"git", "g++"} <= absent


def test_a_full_or_unwritable_place_and_one_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "not" / "yet" / "made"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    found = _by_name()
    assert str(tmp_path) in found["disk"][1]
    assert not found["cores"][0]
    assert "(3)" in found["cores"][1]
    assert not (tmp_path / "not").exists()


def test_core_sets_are_written_as_people_write_them() -> None:
    assert _ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"


def test_a_program_that_hangs_or_fails_is_none() -> None:
    assert first_line("false") is None
    assert first_line("/no/such/program") is None
    assert first_line("echo", "a\nb") == "a"


def test_landlock_agrees_with_the_kernels_own_list() -> None:
    listed = Path("/sys/kernel/security/lsm")
    if not listed.is_file():
        pytest.skip("securityfs is not mounted")
    assert (landlock_abi() > 0) == ("landlock" in listed.read_text())


def test_looking_at_the_doctor_loads_neither_torch_nor_ray() -> None:
    code = "import sys, team.doctor; team.doctor.diagnose(); assert not {'torch', 'ray'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_sandbox_on_a_gpu_is_what_a_runner_says() -> None:
    assert runner_layers("rlimits uid no_new_privs landlock seccomp").ok
    lacking = runner_layers("rlimits no_new_privs landlock")
    assert not lacking.ok
    assert "lacks uid and seccomp" in lacking.what
    assert lacking.remedy
    assert "python -m team.judge.cuda.layers" in runner_layers(None).remedy


@pytest.mark.gpu
def test_a_runner_on_a_gpu_tells_its_layers(every_gpu: None) -> None:
    said = first_line(sys.executable, "-m", "team.judge.cuda.layers", timeout_s=90.0)
    assert said is not None
    assert {"rlimits", "no_new_privs"} <= set(said.split())
