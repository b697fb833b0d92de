"""`kernelteam init`: what it reads from the source, what it asks for, and that it overwrites nothing."""

from pathlib import Path

import pytest

from team.errors import UserError
from team.tasks.examples import copy_example, example_names
from team.tasks.extents import guess_shape
from team.tasks.scaffold import scaffold
from team.tasks.spec import read_spec
from team.tasks.task import load_task
from team.workspace.hub import Hub

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("example", "dims", "scalars"),
    [
        ("matmul_cpu", {"M": 256, "N": 128, "K": 64}, {}),
        ("softmax_cpu", {"rows": 512, "cols": 300}, {}),
        ("rmsnorm_cpu", {"rows": 64, "hidden": 768}, {"eps": 1e-5}),
    ],
)
def test_shapes_of_the_examples_are_read_from_their_source(
    example: str, dims: dict[str, int], scalars: dict[str, float], tmp_path: Path
) -> None:
    (kernel,) = (EXAMPLES / example).glob("*.cpp")
    folder = scaffold(kernel, tmp_path / "my task", dims, scalars=scalars)
    written, shipped = read_spec(folder), read_spec(EXAMPLES / example)
    assert {n: a.shape for n, a in written.arguments.items()} == {n: a.shape for n, a in shipped.arguments.items()}
    assert written.workloads[0].dims == dims
    assert len({tuple(workload.dims.values()) for workload in written.workloads}) == 4
    assert all(workload.scalars == scalars for workload in written.workloads)
    odd = written.workloads[-1].dims
    assert all(value % 2 for value in odd.values())
    task = load_task(folder)
    with pytest.raises(UserError, match="reference is not written yet"):
        task.reference(task.workloads[0], task.make_inputs(task.workloads[0], 0))


CUDA = """
#include <cuda_fp16.h>
__global__ void k(const half* image, const int* index, half* out, int n, int batch) {
    int b = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
    // out[i] is not how it is indexed
    if (i < n && b < batch) out[b * n + i] = image[index[i]];
}
extern "C" void solve(const half* image, const int* index, half* out, int n, int batch, float alpha) {
    k<<<dim3((n + 255) / 256, batch), 256>>>(image, index, out, n, batch);
}
"""


def test_everything_that_is_missing_is_said_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    kernel = tmp_path / "gather.cu"
    kernel.write_text(CUDA)
    with pytest.raises(UserError) as refused:
        scaffold(kernel, tmp_path / "task", {"n": 1000})
    assert refused.value.remedy == "Add: --dim batch=SIZE --scalar alpha=VALUE --shape image=DIM,DIM"
    assert not (tmp_path / "task").exists()
    folder = scaffold(kernel, tmp_path / "task", {"n": 1000, "batch": 2}, {"image": ["n"]}, {"alpha": 0.5})
    spec = read_spec(folder)
    assert spec.device == "cuda"
    assert spec.arguments["out"].shape == ("batch", "n")
    assert spec.arguments["index"].values == "integers"
    assert spec.tolerance_of("out").rtol == 1e-2
    assert spec.workloads[-1].dims == {"n": 751, "batch": 2}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    kernel = tmp_path / "scale.cpp"
    kernel.write_text('extern "C" void solve(float* y, int n) { for (int i = 0; i < n; i++) y[i] *= 2; }\n')
    (tmp_path / "reference.py").write_text("# mine\n")
    folder = scaffold(kernel, tmp_path, {"n": 100})
    assert folder == tmp_path
    assert (tmp_path / "reference.py").read_text() == "# mine\n"
    assert scaffold(kernel, None, {"n": 100}) == tmp_path / "scale"
    assert {path.name for path in (tmp_path / "scale").iterdir()} == {"task.toml", "reference.py", "scale.cpp"}
    for again in (tmp_path, None):
        with pytest.raises(UserError, match=r"task\.toml exists"):
            scaffold(kernel, again, {"n": 100})
    other = tmp_path / "other"
    other.mkdir()
    (other / "scale.cpp").write_text("another\n")
    with pytest.raises(UserError, match="is another kernel"):
        scaffold(kernel, other, {"n": 100})
    assert [path.name for path in other.iterdir()] == ["scale.cpp"]


def test_bad_values_and_files(tmp_path: Path) -> None:
    kernel = tmp_path / "scale.cpp"
    kernel.write_text('extern "C" void solve(float* y, int n) { y[0] = n; }\n')
    with pytest.raises(UserError, match="no parameter 'm' for --dim"):
        scaffold(kernel, None, {"m": 1})
    with pytest.raises(UserError, match="is no size"):
        scaffold(kernel, None, {"n": 0}, {"y": ["n"]})
    with pytest.raises(UserError, match="no file"):
        scaffold(tmp_path / "none.cpp", None, {})
    (tmp_path / "x.f90").write_text("")
    with pytest.raises(UserError, match="no kernel source"):
        scaffold(tmp_path / "x.f90", None, {})


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) x[i * n + j] = 0;", ("m", "n")),
        ("for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) x[j + n * i] = 0;", ("m", "n")),
        ("for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) x[i * m + j] = 0;", None),
        ("for (int i = 0; i < m; i++) x[i] = x[i - 1];", ("m",)),
        ("for (int i = 0; i < m; i++) x[i] = 0; for (int i = 0; i < n; i++) x[i] = 0;", None),
        ("for (int i = 0; i < m / 2; i++) x[i] = 0;", None),
        ("f(x, m, n);", None),
    ],
)
def test_guesses(body: str, shape: tuple[str, ...] | None) -> None:
    assert guess_shape(body, "x", ("m", "n")) == shape


def test_examples_are_copied_into_a_repository_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert {"matmul_cpu", "rmsnorm_cpu", "softmax_cpu"} <= set(example_names())
    folder = copy_example("softmax_cpu", tmp_path / "new" / "place")
    hub = Hub.create(tmp_path / "run", folder, ("task.toml", "softmax.cpp", "reference.py"))
    (entry,) = hub.log("main")
    assert (entry.author, hub.task) == ("Kernel Team", ".")
    with pytest.raises(UserError, match="not an empty folder"):
        copy_example("softmax_cpu", folder)
    with pytest.raises(UserError, match=r"Choose one of: .*matmul_cpu"):
        copy_example("attention", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "run"]


TRITON = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x, y, factor, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < cols
    tl.store(y + at, tl.load(x + at, mask=inside) * factor, mask=inside)


def setup(rows, cols, seed, factor=2.0):
    if cols % 2:
        raise ValueError("odd")
    x = torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed)).half()
    return {"inputs": {"x": x, "y": torch.empty_like(x), "factor": factor}, "outputs": ["y"]}


def run_kernel(x, y, factor, rows, cols):
    scaled[(rows,)](x, y, factor, cols, BLOCK=triton.next_power_of_2(cols))
"""


def test_a_triton_files_own_setup_says_its_tensors(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(TRITON)
    folder = scaffold(tmp_path / "scaled.py", None, {"rows": 512, "cols": 96})
    task = load_task(folder)
    assert [(one.name, one.role, str(one.dtype)) for one in task.buffers] == [
        ("x", "input", "torch.float16"),
        ("y", "output", "torch.float16"),
    ]
    assert task.spec.tolerance_of("y").atol == 1e-2
    shapes = [{"rows": 512, "cols": 96}, {"rows": 256, "cols": 48}, {"rows": 1024, "cols": 24}]
    assert [one.dims for one in task.workloads] == shapes  # setup takes no odd columns
    assert [one.dims for one in load_task(folder, interpreted=True).workloads] == [{"rows": 64, "cols": 48}]
    with pytest.raises(
        UserError, match=r"^The reference is not written yet: compute y from x with torch\. Write it in /"
    ):
        task.reference(task.workloads[0], task.make_inputs(task.workloads[0], 0))
    text = (folder / "reference.py").read_text()
    assert "def reference(x, y, rows, cols, factor):" in text
    (folder / "reference.py").write_text(
        text.replace("raise NotImpl", "y.copy_(x * factor)\n    return\n    raise NotImpl")
    )
    task = load_task(folder)
    given = task.make_inputs(task.workloads[1], 3)
    assert task.reference(task.workloads[1], given)["y"].allclose(2 * given["x"].float())


@pytest.mark.parametrize(
    ("text", "dims", "says", "remedy"),
    [
        (TRITON, {"rows": 8}, "does not say: cols", "Add: --dim cols=SIZE"),
        (TRITON, {"rows": 8, "cols": 8, "depth": 8}, "takes no 'depth'", "It takes: rows, cols, factor."),
        (TRITON, {"rows": 8, "cols": 9}, "ValueError: odd", "It takes the dims by name"),
        (
            TRITON.replace("def setup", "def inputs"),
            {},
            "Nothing says which tensors run_kernel in k.py takes",
            "Define",
        ),
        ("def gelu(x):\n    return x\n", {}, "neither a Triton kernel with run_kernel nor a problem", "k.py:gelu"),
        ("def run_kernel(:", {}, "is not Python", "Correct it"),
    ],
)
def test_a_triton_file_that_lacks_something_is_one_sentence(
    text: str, dims: dict[str, int], says: str, remedy: str, tmp_path: Path
) -> None:
    (tmp_path / "k.py").write_text(text)
    with pytest.raises(UserError, match=says) as refused:
        scaffold(tmp_path / "k.py", None, dims)
    assert remedy in refused.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["k.py"]
