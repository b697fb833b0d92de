"""The process that profiles one kernel. usage: python -m team.evidence.worker REQUEST.json ANSWER.json"""

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from protocol.messages import ProfileReport
from team.devices import open_device
from team.devices.cpu import CpuDevice
from team.errors import UserError
from team.evidence.compiled import compiler_report
from team.evidence.gpu import profile_kernel
from team.evidence.perf import profile_on_cpu
from team.evidence.profile import Answer, Request, with_remark
from team.evidence.sass import Undisassembled, disassemble
from team.evidence.subject import Tools
from team.judge.failures import Failed
from team.judge.kernels import KernelShop

FUNCTIONS, OPCODES = 8, 12  # of a build's machine code that a report shows


def profiled(request: Request) -> ProfileReport:
    """Build the kernel with the judge's flags and profile it."""
    device, keep = open_device(request.device), Path(request.keep)
    device.pin()
    shop = KernelShop(device, Path(request.scratch), request.law)
    try:
        task = shop.task(Path(request.trusted))
        kernel = shop.kernel(task, Path(request.tree), "candidate").artifact
        if not isinstance(device, CpuDevice):
            tools = Tools(device, shop.host, shop.native)
            report = profile_kernel(
                task, kernel, tools, request.commit, keep, request.pinned, request.workload, request.most
            )
            return with_machine_code(report, kernel.path)
        stand_in = compiler_report(task.spec, Path(request.tree), request.commit)
        return stand_in if task.spec.contract == "triton" else profile_on_cpu(task, kernel, shop.host, device, stand_in)
    finally:
        shop.close()


def with_machine_code(report: ProfileReport, artifact: Path) -> ProfileReport:
    """The report with the most frequent opcodes of every function that a build holds."""
    try:
        code = disassemble(artifact)
    except Undisassembled as failed:
        return with_remark(report, f"no machine code is shown: {failed.why}")
    functions = code.functions[:FUNCTIONS]
    counts = {one.name: dict(Counter(one.opcodes).most_common(OPCODES)) for one in functions}
    return report.model_copy(update={"sass": counts})


def main() -> None:
    """Answer one request; whoever asked may end this process, and with it what it started."""
    signal.signal(signal.SIGTERM, _leave)
    request = Request.model_validate_json(Path(sys.argv[1]).read_text())
    try:
        answer = Answer(report=profiled(request))
    except (UserError, Failed) as error:
        answer = Answer(why=str(error))
    fresh = Path(f"{sys.argv[2]}.{os.getpid()}")
    fresh.write_text(answer.model_dump_json())
    fresh.replace(sys.argv[2])


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    main()
