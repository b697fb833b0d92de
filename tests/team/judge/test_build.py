"""Builds: content-addressed, verified before use, bounded, and closed to files from elsewhere."""

from pathlib import Path

import pytest

from team.errors import UserError
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
