#!/usr/bin/env bash
# A campaign on every GPU of this machine, with its summary: two_gpus.sh EXAMPLE EXPERIMENTS OUT_DIR
# Prints the campaign's lines, its status (with the GPUs' UUIDs) and which device verified which landing, and leaves
# status.json, log.json and landings.json in OUT_DIR for benchmarks/results/.
set -uo pipefail
example=$1 experiments=$2 out=$3
export KERNELTEAM_HOME="${KERNELTEAM_HOME:-$(mktemp -d)}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 -m team.cli demo "$example" --into "$work/task" --experiments "$experiments" | cut -c1-220
python3 -m team.cli status
python3 -m team.cli status --json >"$out/status-$example.json"
python3 -m team.cli log --json >"$out/log-$example.json"
python3 -m team.cli report --output "$out/report-$example.html" >/dev/null
python3 - "$out/landings-$example.json" <<'PY'
import json, sys
from protocol.events import LandingMeasured
from protocol.ledger import Ledger
from protocol.state import fold
from team.runs import find_run

with Ledger(find_run(None).ledger) as ledger:
    events = list(ledger.events())
state = fold(events)
rows = []
for event in events:
    if isinstance(event.body, LandingMeasured):
        experiment = state.experiments[event.body.experiment]
        made = experiment.measurement.device.id if experiment.measurement and experiment.measurement.device else ""
        rows.append({"experiment": experiment.number, "technique": experiment.plan.technique if experiment.plan else "",
                     "measured_on": made, "verified_on": event.body.device, "landing": experiment.landing})
json.dump(rows, open(sys.argv[1], "w"), indent=1)
elsewhere = sum(row["measured_on"] != row["verified_on"] for row in rows)
print(f"{len(state.judged)} experiments; {elsewhere} of {len(rows)} landings verified on another GPU than their own")
PY
