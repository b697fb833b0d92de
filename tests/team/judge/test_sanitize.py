"""compute-sanitizer's words read; its launch laid out; on a GPU, planted errors found and honest kernels clean."""

import logging
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from team.devices import discover
from team.devices.cuda import CudaDevice
from team.judge.build import Builder
from team.judge.cuda.ptxas import remarks
from team.judge.cuda.sanitize import TOOLS, Sanitized, Tool, launch_plan, sanitize, standalone_recipe, verdict
from team.judge.kernels import KernelShop
from team.judge.unlisted import smallest
from team.tasks.task import load_task

GALLERY = Path(__file__).parents[2] / "gallery" / "cuda"
PLACES = {"out_of_bounds": "beyond", "race": "racing", "uninitialised": "reads"}  # the kernels that are to blame
log = logging.getLogger(__name__)
MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at beyond(float *, int)+0x70 in softmax.cu:34
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7f1e5e200800 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f1e5e200000 of size 2048 bytes
=========         Host Frame: solve [0xb4a7] in softmax.so
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at racing(const float *, float *, int, int)+0xb0 in softmax.cu:35
=========     and Read access at racing(const float *, float *, int, int)+0xe0 in softmax.cu:36 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
HEAD = "========= COMPUTE-SANITIZER\n"
CLEAN = dict.fromkeys(TOOLS, f"{HEAD}========= ERROR SUMMARY: 0 errors\n")
CLEAN["racecheck"] = f"{HEAD}========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


def test_findings_are_read_with_their_places() -> None:
    seen = verdict("memcheck", MEMCHECK, 99)
    assert (seen.clean, seen.errors) == (False, 2)
    assert seen.findings[0] == ("Invalid __global__ write of size 4 bytes, in beyond(float *, int) at softmax.cu:34")
    assert "cudaErrorLaunchFailure" in seen.findings[1]
    race = verdict("racecheck", RACECHECK, 99)
    assert race.errors == 1
    assert "Write access at racing" in race.findings[0]


@pytest.mark.parametrize("tool", TOOLS)
def test_clean_is_only_what_ends_with_a_clean_summary(tool) -> None:
    assert verdict(tool, CLEAN[tool], 0).clean
    assert not verdict(tool, CLEAN[tool], 3).clean
    assert not verdict(tool, "Target application terminated before first instrumented API call\n", 1).clean
    assert not verdict(tool, "", 0).clean
    assert not verdict(tool, CLEAN[tool].replace("SUMMARY", "what the kernel printed"), 0).clean


def test_a_launch_is_laid_out_as_the_program_reads_it() -> None:
    task = load_task(GALLERY / "task")
    workload = smallest(task)
    plan = launch_plan(task)
    columns = struct.unpack_from("<Q", plan)[0]
    pairs = list(struct.iter_unpack("<QQ", plan[8 : 8 + 16 * columns]))
    size = 4 * workload.dims["rows"] * workload.dims["cols"]
    assert pairs == [(2, size), (1, size), (0, workload.dims["rows"]), (0, workload.dims["cols"]), (3, 0)]
    assert len(plan) == 8 + 16 * columns + size


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_standalone_program_compiles(tmp_path: Path) -> None:
    built = Builder(tmp_path / "cache", tmp_path / "work", "nvcc", remarks).build(standalone_recipe("90a"))
    assert built.path.exists()


PLANTED = sorted((GALLERY / "sanitized").glob("*.cu"))
HONEST = sorted((GALLERY / "honest").glob("*.cu"))


def promised(exhibit: Path) -> Tool:
    """The tool that must find what is planted, from the first line."""
    word = exhibit.read_text().splitlines()[0].removeprefix("// ").split(":")[0]
    return next(tool for tool in TOOLS if tool == word)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, Sanitized]]]:
    """Sanitizes exhibits; all are compiled side by side first."""
    place = tmp_path_factory.mktemp("shop")
    device = discover("cuda", 1)[0]
    assert isinstance(device, CudaDevice)
    shop = KernelShop(device, place)
    task = shop.task(GALLERY / "task")
    trees = {exhibit: place / "trees" / exhibit.stem for exhibit in (*PLANTED, *HONEST)}
    for exhibit, tree in trees.items():
        tree.mkdir(parents=True)
        (tree / "softmax.cu").write_text((GALLERY / "honest_body.cuh").read_text() + exhibit.read_text())
    shop.build_ahead(task, list(trees.values()))

    def run(exhibit: Path, *tools: Tool) -> dict[str, Sanitized]:
        kernel = shop.kernel(task, trees[exhibit], "candidate")
        return {one.tool: one for one in sanitize(task, kernel.artifact, device, shop.host, shop.native, tools)}

    yield run
    shop.close()


@pytest.mark.gpu
@pytest.mark.parametrize("exhibit", PLANTED, ids=lambda path: path.stem)
def test_a_planted_error_is_found(exhibit: Path, sanitized: Callable[..., dict[str, Sanitized]]) -> None:
    found = sanitized(exhibit, promised(exhibit))[promised(exhibit)]
    log.info("%s: %s", exhibit.stem, found)
    assert not found.clean
    assert any(PLACES[exhibit.stem] in finding for finding in found.findings), found.findings


@pytest.mark.gpu
@pytest.mark.parametrize("exhibit", HONEST, ids=lambda path: path.stem)
def test_an_honest_kernel_is_clean(exhibit: Path, sanitized: Callable[..., dict[str, Sanitized]]) -> None:
    for found in sanitized(exhibit, *TOOLS).values():
        assert found.clean, found.findings
