"""From each source that ``kernelteam init`` takes to a judged baseline, with the commands that a user types.

    python scripts/bench_sources.py --out DIR [--trace DIR] [--seconds 280] [--only PART ...]

Every source of ``SOURCES`` is given to ``kernelteam init``, several side by side; what came of it goes to one
``kernelteam eval --quick``, task after task: right by the judge, and timed with an interval. Where there is no baseline
without a person's hand (a kernel file's reference is its author's to write; nobody has written a first kernel of every
operator) the row shows the sentence that the user reads; a kernel file is then evaluated once more with its reference
in place. FlashInfer-Trace definitions come from ``--trace``, one of each kind; the others are files of this repository.

After each row ``sources.json`` and ``sources.txt`` in DIR hold what is known. The exit status is 1 when a source ended
otherwise than ``SOURCES`` says, or was not reached.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OURS = ROOT / "benchmarks" / "sources"
SET = ROOT / "benchmarks" / "kernelbench_set"
EXAMPLES = ROOT / "examples"
NAIVE = EXAMPLES / "softmax_cuda"
BASELINE, SENTENCE = "baseline", "sentence"
UNWRITTEN = "There is no first kernel"  # what init says of an operator that has none
SIDE_BY_SIDE = min(8, len(os.sched_getaffinity(0)))


@dataclass
class Source:
    """What a user has, the words of ``init``, and how it should end. ``reference`` is what its author then writes."""

    name: str
    given: str
    words: tuple[str, ...] = ()
    wanted: str = BASELINE
    reference: str = ""
    task: str = ""
    notes: list[str] = field(default_factory=list)
    ended: str = ""
    sentence: str = ""
    workloads: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def trace(kind: str, op_type: str, definition: str, wanted: str = BASELINE) -> Source:
    """A FlashInfer-Trace definition."""
    return Source(f"FlashInfer-Trace {kind}", f"@trace/definitions/{op_type}/{definition}.json", wanted=wanted)


SOFTMAX = ("--dim", "rows=8192", "--dim", "cols=4096")
SHAPES = ("--shape", "input=rows,cols", "--shape", "output=rows,cols")
ROWS = ("--example", "torch.randn(rows, cols), torch.rand(cols)", "--dim", "rows=8192", "--dim", "cols=2048")
SOURCES = (
    Source("CUDA file", f"{NAIVE}/softmax.cu", (*SOFTMAX, *SHAPES), SENTENCE, f"{NAIVE}/reference.py"),
    Source("CUDA file without shapes", f"{NAIVE}/softmax.cu", SOFTMAX, SENTENCE),
    Source("Triton file", f"{OURS}/row_softmax.py", SOFTMAX, SENTENCE, f"{OURS}/row_softmax_reference.py"),
    Source("Triton file without setup", f"{EXAMPLES}/softmax_triton/softmax.py", SOFTMAX, SENTENCE),
    Source("KernelBench, Triton", f"{SET}/level3/02_attention_block.py"),
    Source("KernelBench, CUDA", f"{SET}/level2/02_conv_norm_relu.py", ("--language", "cuda")),
    Source("GPU MODE, Triton", f"{OURS}/gpu_mode/weighted_rows/task.yml"),
    Source("GPU MODE, CUDA", f"{OURS}/gpu_mode/weighted_rows", ("--language", "cuda")),
    Source("PyTorch function, Triton", f"{OURS}/model.py:rms_norm", ROWS),
    Source("PyTorch function, CUDA", f"{OURS}/model.py:rms_norm", (*ROWS, "--language", "cuda")),
    Source("PyTorch function, unknown", f"{OURS}/model.py:determinant", ("--example", "torch.randn(8, 8)"), SENTENCE),
    trace("rmsnorm", "rmsnorm", "rmsnorm_h128"),
    trace("fused_add_rmsnorm", "rmsnorm", "fused_add_rmsnorm_h2048"),
    trace("gemm", "gemm", "gemm_n128_k2048"),
    trace("rope", "rope", "rope_with_cos_sin_cache_neox_style_d128_rd64"),
    trace("gqa paged decode", "gqa_paged", "gqa_paged_decode_h16_kv2_d128_ps64"),
    trace("gqa paged prefill", "gqa_paged", "gqa_paged_prefill_causal_h16_kv2_d128_ps64"),
    trace("gqa ragged prefill", "gqa_ragged", "gqa_ragged_prefill_causal_h16_kv2_d128"),
    trace("dsa indexer", "dsa_paged", "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"),
    trace("dsa attention", "dsa_paged", "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"),
    trace("mla paged", "mla_paged", "mla_paged_decode_h16_ckv512_kpe64_ps64", SENTENCE),
    trace("mla ragged", "mla_ragged", "mla_ragged_prefill_causal_h16_qk192_vo128", SENTENCE),
    trace("mamba", "mamba_ssu", "mamba_ssu_decode_h64_d64_s128_ng4", SENTENCE),
    trace("gdn", "gdn", "gdn_decode_qk4_v8_d128_k_last", SENTENCE),
    trace("sampling", "sampling", "top_k_sampling_from_probs_v128256", SENTENCE),
    trace("moe", "moe", "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048", SENTENCE),
)  # fmt: skip


class Bench:
    """One run over the sources."""

    def __init__(self, asked: argparse.Namespace, scratch: Path) -> None:
        self._asked, self._scratch = asked, scratch
        self._until = time.monotonic() + asked.seconds
        self._lock = threading.Lock()
        self.rows = [one for one in SOURCES if not asked.only or any(part in one.name for part in asked.only)]

    def carry_out(self) -> None:
        """Make every task, then judge every kernel that has a reference; the tasks' folders tell the rows apart."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as hands:
            list(hands.map(self._made, range(len(self.rows))))
        written = [self._with_reference(one) for one in self.rows if one.task and one.reference]
        self.rows = [*written, *self.rows]
        self._judged([one for one in self.rows if one.task])
        self._write()

    def _made(self, number: int) -> None:
        """``kernelteam init``, and what it says of the new task."""
        one, begun = self.rows[number], time.monotonic()
        folder = self._scratch / f"source-{number}"
        given = one.given.replace("@trace", str(self._asked.trace))
        command = [sys.executable, "-m", "team.cli", "init", given, *one.words, "--folder", str(folder)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=self._asked.seconds
            )
        except subprocess.TimeoutExpired:
            return
        one.seconds["init"] = round(time.monotonic() - begun, 1)
        if done.returncode == 0:
            one.task, notes = str(folder), done.stdout.splitlines()[:-1]
            one.notes = [note for note in notes if not note.startswith("Workloads: ")]
            if unwritten := [note for note in notes if note.startswith(UNWRITTEN)]:
                one.task = ""
                self._ends(one, SENTENCE, unwritten[0])
        else:
            self._ends(one, SENTENCE if done.returncode == 2 else "crashed", done.stderr)

    def _with_reference(self, one: Source) -> Source:
        folder = Path(f"{one.task}-written")
        shutil.copytree(one.task, folder)
        shutil.copyfile(one.reference, folder / "reference.py")
        return Source(f"{one.name}, its reference written", one.given, one.words, task=str(folder))

    def _judged(self, rows: Sequence[Source]) -> None:
        """``kernelteam eval`` of all of them by one judge, as long as the time reaches."""
        command = [sys.executable, "-m", "team.cli", "eval", *(one.task for one in rows), "--quick", "--json"]
        begun = time.monotonic()
        with (self._scratch / "eval.txt").open("w") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
            stop = threading.Timer(max(1.0, self._until - begun), process.terminate)
            stop.start()
            try:
                assert process.stdout is not None
                for one, line in zip(rows, process.stdout, strict=False):
                    found, now = json.loads(line), time.monotonic()
                    one.seconds["eval"], begun = round(now - begun, 1), now
                    one.workloads = found.get("workloads", {})
                    self._ends(one, SENTENCE if "refused" in found else BASELINE, found.get("refused", ""))
            finally:
                stop.cancel()
                process.kill()
                process.wait()
        if unreached := [one for one in rows if not one.ended]:
            self._ends(unreached[0], "not reached", (self._scratch / "eval.txt").read_text()[-400:])

    def _ends(self, one: Source, how: str, sentence: str) -> None:
        one.ended = how
        one.sentence = " ".join(sentence.removeprefix("kernelteam: ").split())
        self._write()

    def _write(self) -> None:
        with self._lock:
            write(self.rows, self._asked.out, time.monotonic() - self._until + self._asked.seconds)


def row(one: Source) -> str:
    """A few lines: the source, how it ended, times with intervals or the sentence."""
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in one.seconds.items())
    verdict = one.ended or "not reached"
    strange = "" if one.ended == one.wanted else "UNEXPECTED "
    lines = [f"{one.name:44} {verdict:11} {strange}({spent})  {Path(one.given).name}"]
    for name, found in one.workloads.items():
        low, middle, high = found["nanoseconds"] or (0.0, 0.0, 0.0)
        time_us = f"{middle / 1e3:10.2f} us [{low / 1e3:.2f}, {high / 1e3:.2f}]" if middle else "not timed"
        lines.append(
            f"    {name[:36]:36} {time_us}, error {found['worst']:.3f} of its tolerance, {found['checks']} compared"
        )
    lines += [f"    {note}" for note in one.notes if note != one.sentence]
    return "\n".join([*lines, *([f"    {one.sentence}"] if one.sentence else [])])


def write(rows: Sequence[Source], out: Path, seconds: float) -> None:
    """Everything that is known, each file replaced at once."""
    right = sum(one.ended == one.wanted for one in rows)
    told = f"{right} of {len(rows)} rows as they should be, after {seconds:.0f} s"
    texts = {
        "json": json.dumps({"told": told, "rows": [asdict(one) for one in rows]}, indent=1),
        "txt": "\n".join([*map(row, rows), "", told]),
    }
    for suffix, text in texts.items():
        beside = out / f".sources.{suffix}"
        beside.write_text(text + "\n")
        beside.replace(out / f"sources.{suffix}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    known = os.environ.get("KERNELTEAM_FLASHINFER_TRACE", ROOT.parent / "shared" / "data" / "flashinfer-trace")
    parser.add_argument("--trace", type=Path, default=Path(known))
    parser.add_argument("--seconds", type=float, default=280.0)
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="of a source's name")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kt-sources-", ignore_cleanup_errors=True) as name:
        bench = Bench(asked, Path(name))
        bench.carry_out()
    print((asked.out / "sources.txt").read_text())
    return 0 if all(one.ended == one.wanted for one in bench.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
