#!/usr/bin/env bash
# What is measured and tested on a GPU: gpu_session.sh OUT_DIR [PART...]     (about twelve minutes; from the repository's root)
# Parts: experiment, decisions, sanitizer, runner, gallery, triton; all by default, one after the other, because each wants
# the card for itself, and each under a limit of its own. Every part leaves its output in OUT_DIR; summary.txt there says
# how long each took and how it ended. A campaign on two GPUs is scripts/two_gpus.sh.
set -uo pipefail
out=$1
shift
mkdir -p "$out"
export KERNELTEAM_HOME="${KERNELTEAM_HOME:-$(mktemp -d)}" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec > >(tee "$out/summary.txt") 2>&1

part() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 begun=$SECONDS status
    shift 2
    timeout --kill-after=5 --signal=INT "$limit" "$@" >"$out/$name.txt" 2>&1
    status=$?
    echo "$name: exit status $status after $((SECONDS - begun)) s"
    tail -n 4 "$out/$name.txt" | cut -c1-300
}

gpu_tests() { # NAME SECONDS FILE
    part "$1" "$2" python3 -m pytest -p no:cacheprovider -m gpu --timeout=90 -rA --log-level=INFO -o addopts= "$3"
}

nvidia-smi -L
python3 -c 'import torch, triton; print("torch", torch.__version__, "triton", triton.__version__)'
for name in "${@:-experiment decisions sanitizer runner gallery triton}"; do
    for each in $name; do
        case $each in
        experiment) part experiment 120 python3 scripts/bench_experiment.py --calibration 8 --out "$out" ;;
        decisions) part decisions 420 python3 scripts/bench_decisions.py --seconds 92 --out "$out" ;;
        sanitizer) gpu_tests sanitizer 60 tests/team/judge/test_sanitize.py ;;
        runner) gpu_tests runner 90 tests/team/judge/test_cuda_runner.py ;;
        gallery) gpu_tests gallery 270 tests/gallery/test_gallery_cuda.py ;;
        triton) gpu_tests triton 90 tests/gallery/test_gallery_triton.py ;;
        *) echo "there is no part '$each'" ;;
        esac
    done
done
echo "all parts: $SECONDS s"
