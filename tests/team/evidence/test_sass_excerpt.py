"""Lines of a function's machine code as a mind reads them."""

import subprocess
from pathlib import Path

import pytest
from probing import HAVE_TOOLS

from team.evidence.sass import excerpt as module
from team.evidence.sass.excerpt import LINES, excerpt

HEAD = "\tcode for sm_90a\n\t\tFunction : {name}\n"
LINE = "        /*{at:04x}*/                   {said} ;              /* 0x00000a00ff017b82 */\n"
CONTROL = "                                                                       /* 0x000fe20000000800 */\n"


def listing(name: str, *said: str) -> str:
    lines = (LINE.format(at=16 * number, said=one) + CONTROL for number, one in enumerate(said))
    return HEAD.format(name=name) + "".join(lines)


TWO = listing("_Z4longPf", *["FADD R1, R1, R2"] * LINES, "@P0 BRA 0x10", "EXIT", "NOP") + listing("short", "EXIT")


@pytest.fixture(autouse=True)
def printed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "tmp_path" not in request.fixturenames:
        monkeypatch.setattr(module, "listings", lambda artifact: [TWO])


def test_the_longest_function_is_shown_page_by_page() -> None:
    head, *lines = excerpt(Path()).splitlines()
    assert head == f"sm_90a, function long: {LINES + 2} lines, from 1 on; most frequent: FADD {LINES}, BRA 1, EXIT 1"
    assert lines[0] == "  0000  FADD R1, R1, R2 ;"
    assert lines[LINES:] == ["... 2 more lines"]
    _, *rest = excerpt(Path(), "_Z4longPf", LINES + 1).splitlines()
    assert [line.split("  ")[-1] for line in rest] == ["@P0 BRA 0x10 ;", "EXIT ;"]


def test_a_function_is_found_by_its_name_and_what_there_is_is_told() -> None:
    assert "function short: 1 lines" in excerpt(Path(), "short")
    assert excerpt(Path(), "nosuch") == (
        f"there is no function 'nosuch'; there are: long ({LINES + 2} lines), short (1 lines)"
    )


@pytest.mark.skipif(not HAVE_TOOLS, reason="there is no nvcc or no cuobjdump on this machine")
def test_what_nvcc_builds_is_read(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("__global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }\n")
    built = tmp_path / "k.cubin"
    subprocess.run(["nvcc", "-arch=sm_90a", "-cubin", "-o", str(built), str(source)], check=True)
    said = excerpt(built, "twice").splitlines()
    assert said[0].startswith("sm_90a, function twice")
    assert any("STG" in line for line in said[1:])
    assert not any("NOP" in line for line in said)
