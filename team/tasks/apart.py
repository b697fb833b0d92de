"""The inputs of a kernel, understood in a process of its own that sees no GPU.

The reference is human-owned code: it may never end, end its process, or touch CUDA while it loads. A context in the
process that conducts a run would be a stranger on the card for as long as the run lasts, and every measurement would be
thrown away.
"""

import multiprocessing
import os
from multiprocessing.connection import Connection

from team.errors import UserError
from team.tasks.signature import SignatureError
from team.tasks.skill_inputs import Read, SkillInputs

READ_S = 180.0  # seconds to load a reference and to run it on small shapes


def read_apart(inputs: SkillInputs, timeout_s: float = READ_S) -> Read:
    """As ``read_inputs``; a reference that does not come to an end is a ``UserError``, too."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_read, args=(inputs, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(timeout_s):
            raise UserError(f"The reference {inputs.reference} did not end within {timeout_s:g} s.", "Mend it.")
        found = ours.recv()
    except EOFError:
        raise UserError(f"The reference {inputs.reference} ended the process that ran it.", "Mend it.") from None
    finally:
        process.kill()
        process.join()
    if isinstance(found, Read):
        return found
    kind, what, remedy = found
    raise (SignatureError if kind == "signature" else UserError)(what, remedy)


def _read(inputs: SkillInputs, answer: Connection) -> None:
    """The other process: what it found, or the sentence about what is wrong."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from team.tasks.skill import read_inputs

    try:
        answer.send(read_inputs(inputs))
    except SignatureError as error:
        answer.send(("signature", error.what, error.remedy))
    except UserError as error:
        answer.send(("user", error.what, error.remedy))
