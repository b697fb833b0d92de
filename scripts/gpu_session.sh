#!/usr/bin/env bash
# One short session on a machine with one GPU: gpu_session.sh OUT_DIR        (about two minutes; from the repository's root)
# Runs the Triton tests, the wall time of an experiment, the sanitizer's tests and a profile of the judge, one after the
# other (each wants the card for itself) and each under a limit of its own, so that the first results always arrive.
# Every part leaves its output in OUT_DIR; summary.txt there says how long each took and how it ended.
set -uo pipefail
out=$1
mkdir -p "$out"
export KERNELTEAM_HOME="${KERNELTEAM_HOME:-$(mktemp -d)}" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec > >(tee "$out/summary.txt") 2>&1

part() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 begun=$SECONDS status
    shift 2
    timeout --kill-after=3 --signal=INT "$limit" "$@" >"$out/$name.txt" 2>&1
    status=$?
    echo "$name: exit status $status after $((SECONDS - begun)) s"
    tail -n 4 "$out/$name.txt" | cut -c1-300
}

gpu_tests() { # SECONDS FILE...
    local limit=$1
    shift
    python3 -m pytest -p no:cacheprovider -m gpu --timeout="$limit" -rA --durations=0 --log-level=INFO -o addopts= "$@"
}
export -f gpu_tests

nvidia-smi -L
python3 -c 'import torch, triton; print("torch", torch.__version__, "triton", triton.__version__)'
part triton 50 bash -c 'gpu_tests 40 tests/gallery/test_gallery_triton.py'
part experiment 65 python3 scripts/bench_experiment.py --skip-load-inline --calibration 12 --out "$out"
sanitizer=tests/team/judge/test_sanitize.py
[ -e "$sanitizer" ] && part sanitizer 30 bash -c "gpu_tests 25 $sanitizer"
echo "all parts: $SECONDS s"
