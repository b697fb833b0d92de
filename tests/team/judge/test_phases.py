"""nvcc's steps side by side: the same build, the same refusals, and nvcc itself where its steps look otherwise."""

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from team.judge.build import Builder
from team.judge.cuda.build import kernel_recipe
from team.judge.cuda.phases import side_by_side
from team.judge.cuda.ptxas import remarks
from team.judge.failures import BuildFailed, Foreign

KEPT = "../expanded/k"
STEPS = [
    "_HERE_=/opt/cuda/bin",
    "CICC_PATH=/opt/cuda/nvvm/bin",
    'INCLUDES="-I/opt/cuda/include"  ',
    "rm ../expanded/artifact_dlink.reg.c",
    f'gcc -D__CUDA_ARCH__=900 -E -x c++ "k.cu" -o "{KEPT}.cpp1.ii"',
    f'gcc -D__CUDA_ARCH_LIST__=900 -E -x c++ "k.cu" -o "{KEPT}.cpp4.ii"',
    "-- Filter Dependencies -- > ../deps",
    f'cudafe++ --gen_module_id_file --module_id_file_name "{KEPT}.module_id" "{KEPT}.cpp4.ii"',
    f'"$CICC_PATH/cicc" --module_id_file_name "{KEPT}.module_id" "{KEPT}.cpp1.ii" -o "{KEPT}.ptx"',
    f'ptxas "{KEPT}.ptx" -o "{KEPT}.cubin"',
    f'fatbinary --create="{KEPT}.fatbin"',
    f'gcc -D__CUDA_ARCH__=900 -c -x c++ "{KEPT}.cudafe1.cpp" -o "{KEPT}.o"',
    f'nvlink "{KEPT}.o"',
    'fatbinary --create="../expanded/artifact_dlink.fatbin"',
    f'g++ "{KEPT}.o" -o "../artifact"',
]
SOURCE = """\
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
extern "C" void solve(const float* x, float* y, int n) { twice<<<(n + 255) / 256, 256>>>(x, y, n); }
"""


def told(steps: list[str]) -> str:
    return "".join(f"#$ {step}\n" for step in steps)


def test_the_halves_run_beside_each_other_and_the_rest_after_both() -> None:
    script = side_by_side(told(STEPS), {"k.cu": SOURCE})
    assert script is not None
    host, device, rest = script.index("cudafe++"), script.index("cicc"), script.index("nvlink")
    assert host < script.index("&\n") < device < script.index("wait") < rest
    assert "export CICC_PATH=/opt/cuda/nvvm/bin" in script
    assert "INCLUDES" not in script
    assert "--gen_module_id_file" not in script
    assert script.index(f"> {KEPT}.module_id") < host
    assert [f"-MMD -MF ../deps.{half}" in script for half in ("host", "device")] == [True, True]


def test_every_source_gives_its_parts_a_name_of_its_own() -> None:
    one, same, other = (side_by_side(told(STEPS), {"k.cu": text}) for text in ("a", "a", "b"))
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    "steps",
    [
        STEPS[:-4],
        [*STEPS[:10], *STEPS[8:]],
        [step.replace("--gen_module_id_file ", "") for step in STEPS],
        [*STEPS[:-1], "objcopy ../artifact"],
        [],
    ],
    ids=["nothing after", "two architectures", "no module", "an unknown step", "nothing at all"],
)
def test_what_looks_otherwise_is_left_to_nvcc(steps: list[str]) -> None:
    assert side_by_side(told(steps), {"k.cu": SOURCE}) is None


def builder(folder: Path) -> Builder:
    return Builder(folder / "cache", folder / "work", "nvcc", remarks, schedule=side_by_side)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_a_build_of_both_halves_is_whole_and_was_looked_at(tmp_path: Path) -> None:
    recipe = kernel_recipe({"k.cu": SOURCE}, "k.cu", "90a", "reference", None, 240.0)
    seen: list[str] = []
    built = builder(tmp_path).build(dataclasses.replace(recipe, inspection="rules"), seen.append)
    assert any("registers" in line for line in built.build.remarks)
    assert seen[0].count("void twice") == 2
    symbols = subprocess.run(["nm", "-D", built.path], capture_output=True, text=True, check=True).stdout
    assert " T solve" in symbols


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("half", ["ifdef", "ifndef"])
def test_a_foreign_file_is_refused_whichever_half_reads_it(tmp_path: Path, half: str) -> None:
    (tmp_path / "foreign.h").write_text("int foreign;\n")
    text = f'#{half} __CUDA_ARCH__\n#include "{tmp_path}/foreign.h"\n#endif\n{SOURCE}'
    recipe = kernel_recipe({"k.cu": text}, "k.cu", "90a", "reference", None, 240.0)
    unconfined = Builder(tmp_path / "cache", tmp_path / "work", "nvcc", remarks, confine=False, schedule=side_by_side)
    with pytest.raises(Foreign, match=r"foreign\.h"):
        unconfined.build(dataclasses.replace(recipe, inspection="rules"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("wrong", ["__global__ void w(int* p) { *p = missing; }", "int f() { return missing; }"])
def test_an_error_is_told_once(tmp_path: Path, wrong: str) -> None:
    recipe = kernel_recipe({"k.cu": SOURCE + wrong}, "k.cu", "90a", "reference", None, 240.0)
    with pytest.raises(BuildFailed) as failed:
        builder(tmp_path).build(dataclasses.replace(recipe, inspection="rules"))
    assert str(failed.value).count("is undefined") == 1
