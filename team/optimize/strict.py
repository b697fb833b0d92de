"""Strict numerics: a change may not touch a bit. What a card declares is believed only where it says no.

A technique that reorders or rounds is refused before it is built. One that claims to be exact, and one that claims
nothing, is let through here and then held to it by the judge, which compares bits (``team.judge.identity``). The mode
is the task's: no plan carries one, so no mind can lower it. A precondition is whatever the reference's own
``make_inputs`` guarantees, since those are the inputs that are compared.
"""

from protocol.messages import Plan
from team.optimize.options import Options
from team.optimize.records import UNDECLARED, effect_of
from team.workspace.objects import Refused

_ALLOWED = ("bitwise_preserving", UNDECLARED)


def refuse_reordering(options: Options, plan: Plan) -> None:
    """Raise ``Refused`` for a plan whose technique says itself that it changes results."""
    if options.numerics_mode == "strict" and (effect := effect_of(plan)) not in _ALLOWED:
        raise Refused(f"strict numerics: {plan.technique} is {effect}, and only bitwise_preserving changes may run.")
