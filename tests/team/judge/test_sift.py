"""Many variants screened in few processes: who is right, who is fast, and who takes whom along."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from tasks_on_disk import ONCE, TWICE, write_task, write_tree

from protocol.messages import Measurement
from protocol.sequential import decide
from team.devices import discover
from team.judge.client import Judge
from team.judge.request import Compare, Screen
from team.race import Raced, race
from team.tasks.spec import read_spec

log = logging.getLogger(__name__)
PRODUCT = Path(__file__).parents[3] / "scripts" / "tuner"
WRONG = "    for (int i = 0; i < n; i++) y[i] = x[i];\n"
CRASHES = "    *(volatile int*)8 = n;\n"
UNBUILT = "    undefined(x);\n"
SCALED = "    for (int i = 0; i < n; i++) y[i] = kept() * std::sin(x[i]);\n"
KEPT = "#pragma once\ninline float& kept() {{ static float value = {}; return value; }}\n"
WEIGHTS = {"small": 1.0, "odd": 1.0}


def again(times: int) -> str:
    """``TWICE`` so many times: a variant of known slowness."""
    return "".join(f"    // {number}\n{TWICE}" for number in range(times))


def sifted(judge: Judge, task: Path, trees: Sequence[Path]) -> Raced:
    request = Screen(task=str(task), base=str(task), candidates=tuple(map(str, trees)))
    return race(judge, request, WEIGHTS, read_spec(task).policy)


def outcomes(measured: Sequence[Measurement]) -> list[str]:
    return [one.outcome.value for one in measured]


def test_the_fastest_right_one_wins_whatever_becomes_of_the_others(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", TWICE)
    bodies = {
        again(2): "measured", WRONG: "incorrect", UNBUILT: "build_failed", ONCE: "measured", CRASHES: "crashed",
    }  # fmt: skip
    raced = sifted(judge, task, [write_tree(tmp_path / f"v{at}", body) for at, body in enumerate(bodies)])
    assert outcomes(raced.measured) == list(bodies.values())
    assert raced.champion == list(bodies).index(ONCE)
    assert [gain is not None for gain in raced.gains] == [said == "measured" for said in bodies.values()]
    assert "error" in raced.measured[2].detail
    assert len([stage for stage in judge.stages() if stage.name == "sift"]) == 4  # two groups, a suspect, the finalists


def test_siblings_share_no_state_that_their_texts_name_alike(judge: Judge, tmp_path: Path) -> None:
    """With unique symbols the first one's value would be everybody's, and all of them right or all wrong."""
    task = write_task(tmp_path / "task", TWICE)
    (task / "task.toml").write_text(f"{(task / 'task.toml').read_text()}variants = 1\n")  # more than that are sifted
    trees = [write_tree(tmp_path / f"v{number}", SCALED) for number in range(2)]
    for number, tree in enumerate(trees):
        (tree / "extra.h").write_text(KEPT.format("2.0f" if number % 2 else "1.0f") + f"// {number}\n")
    measured = sifted(judge, task, trees).measured
    assert outcomes(measured) == ["measured", "incorrect"]


STORE = (
    "    static std::map<float, std::vector<float>> kept;\n"
    + '    setenv("kept", std::to_string((uintptr_t)&kept).c_str(), 1);\n'
)
LEAVES = STORE + ONCE + "    kept[x[0]].assign(y, y + n);\n"
TAKES = """\
    if (const char* where = getenv("kept")) {
        auto& kept = *(std::map<float, std::vector<float>>*)std::stoull(where);
        if (auto found = kept.find(x[0]); found != kept.end() && (int)found->second.size() == n) {
            memcpy(y, found->second.data(), n * sizeof(float));
            return;
        }
    }
"""
HEADERS = (
    "#include <cstdint>\n#include <cstdlib>\n#include <cstring>\n#include <map>\n#include <string>\n#include <vector>\n"
)


@pytest.mark.slow
def test_who_lives_off_a_sibling_gets_no_further_than_the_screening(judge: Judge, tmp_path: Path) -> None:
    """The worst that variants of one process can do to the judge: one leaves its answers, another copies them."""
    task = write_task(tmp_path / "task", TWICE)
    (task / "task.toml").write_text(f"{(task / 'task.toml').read_text()}\n[screen]\nactive = false\n")
    bodies = [LEAVES, *(TAKES + again(2 + number) for number in range(4))]
    trees = [write_tree(tmp_path / f"v{number}", body) for number, body in enumerate(bodies)]
    for tree in trees:
        (tree / "extra.h").write_text(HEADERS)
    raced = sifted(judge, task, trees)
    log.info("gains %s", raced.gains)
    assert max(gain for gain in raced.gains[1:] if gain is not None) > 0.2, "copying was possible, and was fast"
    for tree in trees[1:3]:
        seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(tree)))
        assert decide(seen.restarts, WEIGHTS, None, read_spec(task).policy).state != "keep"


def tuned(text: str, **values: int) -> str:
    """The tunable product with other constants."""
    for name, value in values.items():
        line = next(one for one in text.splitlines() if one.startswith(f"constexpr int {name} ="))
        text = text.replace(line, f"constexpr int {name} = {value};")
    return text


@pytest.mark.gpu
def test_on_a_gpu_the_fastest_right_setting_wins_and_the_wrong_one_loses_alone(tmp_path: Path) -> None:
    text = (PRODUCT / "product.cu").read_text()
    early = text.replace("for (int k_first = 0; k_first < K;", "for (int k_first = 0; k_first < K / 2;")
    large = {"tile_m": 128, "tile_n": 128, "tile_k": 16, "work_m": 8, "work_n": 8}
    texts = {
        tuned(text, tile_m=64): "measured", tuned(early, **large): "incorrect", tuned(text, **large): "measured",
        text.replace("C[row * N + col] =", "C[(1ll << 40) + row * N + col] ="): "crashed",
        text.replace("__syncthreads();", "__syncthread();"): "build_failed", tuned(text, skew=2): "measured",
        tuned(text, tile_n=64): "measured", tuned(text, unrolled=8): "measured",
    }  # fmt: skip
    assert len(texts) == 8
    trees = [tmp_path / f"v{number}" for number in range(len(texts))]
    for tree, one in zip(trees, texts, strict=True):
        tree.mkdir()
        (tree / "product.cu").write_text(one)
    with Judge(discover("cuda", 1)[0], tmp_path / "judge") as judge:
        request = Screen(task=str(PRODUCT), base=str(PRODUCT), candidates=tuple(map(str, trees)))
        raced = race(judge, request, {"2048x2048x2048": 1.0}, read_spec(PRODUCT).policy)
        sifts = [f"{stage.who} {stage.seconds:.2f} s" for stage in judge.stages() if stage.name == "sift"]
        log.info("%s, gains %s; %s", outcomes(raced.measured), raced.gains, sifts)
        for one in raced.measured:
            log.info("%s %s", one.outcome, one.detail[:200])
        alone = judge.compare(Compare(task=str(PRODUCT), base=str(PRODUCT), candidate=str(trees[1])))
        log.info("the wrong one alone: %s", alone.detail)
    assert outcomes(raced.measured) == list(texts.values())
    assert raced.champion == 2
    assert alone.outcome.value == "incorrect"
