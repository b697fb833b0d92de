"""``scripts/bench_sources.py`` on what needs no GPU: every kind of source is there, and a sentence is told as it is."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_sources", ROOT / "scripts" / "bench_sources.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_sources"] = module
    spec.loader.exec_module(module)
    return module


def test_every_first_kernel_has_a_definition_and_every_file_is_there() -> None:
    sources = script().SOURCES
    named = [Path(one.given).stem for one in sources if one.given.startswith("@trace") and one.wanted == "baseline"]
    first = ROOT / "team" / "tasks" / "formats" / "flashinfer" / "first"
    kinds = [path.stem for path in first.glob("*.py") if path.stem != "__init__"]
    assert all(any(name.startswith(kind) for name in named) for kind in kinds)
    files = [one.given.rpartition(".py:")[0] + ".py" if ".py:" in one.given else one.given for one in sources]
    assert all(Path(file).exists() for file in files if not file.startswith("@trace"))
    assert all(Path(one.reference).is_file() for one in sources if one.reference)


@pytest.mark.slow
def test_a_source_without_a_baseline_is_told_by_its_sentence(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "bench_sources.py"), "--out", str(tmp_path), "--only", "without"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    cuda, triton = json.loads((tmp_path / "sources.json").read_text())["rows"]
    assert cuda["sentence"].endswith("Add: --shape input=DIM,DIM --shape output=DIM,DIM")
    assert triton["sentence"].startswith("Nothing says which tensors run_kernel in softmax.py takes.")
    assert "2 of 2 rows as they should be" in done.stdout
