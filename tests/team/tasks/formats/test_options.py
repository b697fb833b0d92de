"""``kernelteam init`` refuses what it would not read."""

from pathlib import Path
from typing import Any

import pytest

from team.cli import init
from team.errors import UserError
from team.tasks.formats.entry import import_foreign

PROBLEM = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
KERNEL = 'extern "C" void solve(const float* x, float* y, int n) { y[0] = x[0]; }\n'


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("problem.py", PROBLEM, {"shape": ["A=M"]}),
        ("problem.py", PROBLEM, {"scalar": ["eps=1"]}),
        ("kernel.cpp", KERNEL, {"language": "cuda"}),
        ("kernel.cpp", KERNEL, {"precision": "bf16"}),
    ],
)
def test_an_option_that_nobody_would_read_is_refused(
    tmp_path: Path, name: str, text: str, options: dict[str, Any]
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match="Leave out --"):
        init(tmp_path / name, **options)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_gpu_mode_problem_has_its_own_types(tmp_path: Path) -> None:
    (tmp_path / "task.yml").write_text("")
    with pytest.raises(UserError, match="--precision"):
        import_foreign(tmp_path, None, "triton", "bf16", {})
