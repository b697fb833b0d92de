"""``kernelteam profile``: one kernel profiled by hand, with the tools of a campaign's profile duty."""

import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocol.messages import ProfileReport
from protocol.state import CampaignState
from team.bench import tree_of
from team.devices import discover
from team.devices.cuda import CudaDevice
from team.devices.lock import exclusive
from team.errors import UserError
from team.evidence.profile import Place, measured
from team.report.reading import read_state
from team.runs import find_run, home
from team.scope import refuse_without_gpu
from team.tasks.spec import TaskSpec, read_spec

LOCK_WAIT_S = 10.0


@dataclass(frozen=True)
class Profiled:
    """A report and what it was taken on."""

    report: ProfileReport
    device: str

    def as_json(self) -> dict[str, Any]:
        """Plain values; what the rooflines derive is written out."""
        said = self.report.model_dump(mode="json")
        for line, one in zip(said["rooflines"], self.report.rooflines, strict=True):
            line |= {"share": one.share, "intensity": one.intensity, "flops_per_s": one.achieved_flops_per_s}
        return {"device": self.device, **said}


def profile_commit(name: str, task: Path, run: Path | None, workload: str, most: int) -> Profiled:
    """Profile what ``name`` means, as for ``kernelteam ab``; the profiler's report stays in the campaign's folder."""
    with tempfile.TemporaryDirectory(prefix="kernelteam-profiled-") as folder:
        trusted, tree = tree_of(name, task, run, Path(folder) / "trees")
        spec = read_spec(trusted)
        refuse_without_gpu(spec)
        _refuse_unknown(spec, workload)
        device = discover(spec.device, 1)[0]
        campaign = find_run(run) if run is not None or name in ("base", "result") else None
        keep = (campaign.folder if campaign else home()) / "profiles"
        pinned = pinned_set(read_state(campaign.folder)) if campaign else ""
        place = Place(device, Path(folder) / "scratch", keep)
        owned = exclusive(device.id, LOCK_WAIT_S) if isinstance(device, CudaDevice) else nullcontext()
        with owned:
            answer = measured(place, trusted, tree, tree.name, pinned, workload, most)
    if answer.report is None:
        raise UserError(f"{name} could not be profiled: {answer.why}", "See whether it runs: kernelteam eval TASK")
    return Profiled(answer.report, device.id)


def pinned_set(state: CampaignState) -> str:
    """The set of metrics that a campaign's profiles use; empty while none has counted anything."""
    profiles = [state.main_profile, *(agent.profile for agent in state.agents.values())]
    return next((one.bundle for one in profiles if one is not None and one.bundle), "")


def _refuse_unknown(spec: TaskSpec, workload: str) -> None:
    names = [one.name for one in spec.must_pass]
    if workload and workload not in names:
        raise UserError(f"Task {spec.name} has no workload '{workload}'.", f"Choose one of: {', '.join(names)}.")
