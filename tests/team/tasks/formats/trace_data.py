"""Where the public FlashInfer-Trace data set lies, and its definitions made small enough for a CPU."""

import os
import re
from pathlib import Path

import pytest

from team.tasks.formats.flashinfer.dataset import Dataset, read_dataset
from team.tasks.formats.flashinfer.schema import Definition

_PLACE = "shared/data/flashinfer-trace"


def trace_root() -> Path:
    """The data set's folder; the test is skipped where there is none."""
    named = os.environ.get("KERNELTEAM_FLASHINFER_TRACE")
    places = [Path(named)] if named else [folder / _PLACE for folder in (*Path(__file__).parents, Path("/work"))]
    found = next((place for place in places if (place / "definitions").is_dir()), None)
    if found is None:
        pytest.skip(f"there is no {_PLACE} beside this checkout, and KERNELTEAM_FLASHINFER_TRACE names none")
    return found


def trace_data() -> Dataset:
    """All of it."""
    return read_dataset(trace_root())


def shrunk(definition: Definition) -> Definition:
    """Experts' matrices of hundreds of rows, not thousands, in the axes and in the reference's own constants."""
    if definition.op_type != "moe":
        return definition
    small = {"hidden_size": 256, "intermediate_size": 128, "gemm1_out_size": 256}
    small |= {"num_hidden_blocks": 2, "num_intermediate_blocks": 1, "num_gemm1_out_blocks": 2}
    axes, text = dict(definition.axes), definition.reference
    for name, value in small.items():
        if name in axes:
            axes[name] = axes[name].model_copy(update={"value": value})
    for letter, name in (("H", "hidden_size"), ("I", "intermediate_size")):
        text = re.sub(rf"\b{letter} (=|==) {definition.constants[name]}\b", rf"{letter} \1 {small[name]}", text)
    return definition.model_copy(update={"axes": axes, "reference": text})
