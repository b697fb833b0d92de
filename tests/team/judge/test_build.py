"""Builds: content-addressed, verified before use, bounded, and closed to files from elsewhere."""

import threading
from pathlib import Path

import pytest

from team.errors import UserError
from team.judge import compiler
from team.judge.build import Builder, Recipe, kernel_flags
from team.judge.failures import BuildFailed, Foreign

FLAGS = ("-O0", "-fPIC", "-shared")


def recipe(text: str = "int f() { return 1; }", **files: str) -> Recipe:
    return Recipe(
        {"k.cpp": text, **{name.replace("_", "."): body for name, body in files.items()}}, "k.cpp", FLAGS, 30.0
    )


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "cache", tmp_path / "work")


def test_the_same_content_is_built_once(builder: Builder, tmp_path: Path) -> None:
    first, second = builder.build(recipe()), builder.build(recipe())
    assert (first.build.cached, second.build.cached) == (False, True)
    assert first.build.artifact == second.build.artifact
    assert not any((tmp_path / "work").iterdir())


def test_a_program_of_the_judges_own_is_built_once_for_all_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "home"))
    ours = Recipe({"k.cpp": "int f() { return 1; }"}, "k.cpp", FLAGS, ours=True)
    built = [Builder(tmp_path / place / "cache", tmp_path / place / "work").build(ours) for place in ("one", "two")]
    assert [one.build.cached for one in built] == [False, True]
    assert {one.path.parent.parent for one in built} == {tmp_path / "home" / "programs"}
    assert not any((tmp_path / "one" / "cache").iterdir())
    assert len(list((tmp_path / "home" / "programs").iterdir())) == 2, "it and the program that confines compilers"


def test_content_flags_and_headers_make_the_key(builder: Builder) -> None:
    text = '#include "h.h"\nint f() { return N; }'
    artifacts = {builder.build(recipe(text, h_h=f"#define N {n}")).build.artifact for n in (1, 2)}
    assert len(artifacts) == 2


def test_a_damaged_artifact_is_built_again(builder: Builder) -> None:
    built = builder.build(recipe())
    built.path.write_bytes(b"something else")
    with pytest.raises(UserError, match="does not match"):
        built.sealed_copy()
    again = builder.build(recipe()).build
    assert (again.artifact, again.cached) == (built.build.artifact, False)


def test_the_compilers_words_are_kept(builder: Builder) -> None:
    with pytest.raises(BuildFailed) as caught:
        builder.build(recipe("int f() { return oops; }"))
    assert "oops" in caught.value.output
    assert str(builder) not in caught.value.output


def test_compilation_is_bounded(builder: Builder) -> None:
    endless = "template <int N> struct S { S<N + 1> s; }; int f() { return sizeof(S<0>); }"
    slow = Recipe({"k.cpp": endless}, "k.cpp", (*FLAGS, "-ftemplate-depth=1000000"), 0.5)
    with pytest.raises(BuildFailed, match=r"0\.5 s"):
        builder.build(slow)


def test_files_from_elsewhere_are_refused(builder: Builder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.h").write_text("\n")
    with pytest.raises((Foreign, BuildFailed), match=r"elsewhere\.h"):
        builder.build(recipe(f'#include "{tmp_path}/elsewhere.h"'))
    with pytest.raises(Foreign, match=r"elsewhere\.h"):
        Builder(tmp_path / "cache", tmp_path / "work", confine=False).build(
            recipe(f'#include "{tmp_path}/elsewhere.h"')
        )


def test_a_missing_compiler_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        Builder(tmp_path / "cache", tmp_path / "work", "no-such-compiler").build(recipe())
    assert "no-such-compiler" in caught.value.what


def test_only_approximate_numerics_permit_fast_math() -> None:
    assert "-ffast-math" in kernel_flags("approximate", None)
    assert "-ffast-math" not in kernel_flags("reference", None)
    assert kernel_flags("reference", ("-O1",))[0] == "-O1"


FAKE = """\
#!/bin/sh
if [ "$1" = --version ]; then echo "fake {version}"; exit 0; fi
echo run >> "$TMPDIR/runs"
{body}
echo artifact > ../artifact
echo "artifact: k.cpp" > ../deps
"""


def fake(folder: Path, name: str, body: str, version: str = "1") -> str:
    """A compiler that does as it is told, in a folder of its own."""
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FAKE.format(version=version, body=body))
    path.chmod(0o755)
    return str(path)


def test_another_compiler_is_another_artifact(tmp_path: Path) -> None:
    places = tmp_path / "cache", tmp_path / "work"
    one, other = (Builder(*places, fake(tmp_path, f"fake{version}", "", version)) for version in ("1", "2"))
    assert not one.build(recipe()).build.cached
    assert one.build(recipe()).build.cached
    assert not other.build(recipe()).build.cached


def test_a_compiler_that_starves_is_tried_once_more(tmp_path: Path) -> None:
    places = tmp_path / "cache", tmp_path / "work"
    starved = 'echo "cc1plus: out of memory"; exit 1'
    recovers = fake(tmp_path, "recovers", f'[ "$(wc -l < "$TMPDIR/runs")" -gt 1 ] || {{ {starved}; }}')
    assert Builder(*places, recovers).build(recipe()).path.exists()
    counts = 'echo "run number $(wc -l < "$TMPDIR/runs")"'
    for name, end, runs in (("never", starved, 2), ("refuses", "exit 1", 1)):
        with pytest.raises(BuildFailed) as failed:
            Builder(*places, fake(tmp_path, name, f"{counts}; {end}", name)).build(recipe())
        assert f"run number {runs}" in failed.value.output


def test_endless_output_ends_the_compiler(tmp_path: Path) -> None:
    endless = fake(tmp_path, "endless", "yes error: the same line again and again")
    with pytest.raises(BuildFailed, match="wrote more than 8 MiB") as failed:
        Builder(tmp_path / "cache", tmp_path / "work", endless).build(recipe())
    assert len(failed.value.output) < 1 << 17


def test_a_compilers_memory_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder, large = Builder(tmp_path / "cache", tmp_path / "work"), recipe("char big[8 << 20] = {1};")
    builder.build(recipe())  # the confining program is there
    monkeypatch.setattr(compiler, "FILE_SIZE", 1 << 20)
    with pytest.raises(BuildFailed):
        builder.build(large)
    monkeypatch.setattr(compiler, "FILE_SIZE", 1 << 30)
    monkeypatch.setattr(compiler, "MEMORY", 16 << 20)
    with pytest.raises(BuildFailed):
        builder.build(large)
    monkeypatch.undo()
    assert builder.build(large).path.exists()


def test_one_that_starved_runs_alone() -> None:
    crossing, seen = compiler.Crossing(), list[str]()
    inside, leave = threading.Event(), threading.Event()

    def shared() -> None:
        with crossing.shared():
            inside.set()
            assert leave.wait(20)
            seen.append("shared")

    other = threading.Thread(target=shared)
    other.start()
    assert inside.wait(20)
    threading.Timer(0.05, leave.set).start()
    with crossing.alone():
        seen.append("alone")
    other.join()
    assert seen == ["shared", "alone"]
