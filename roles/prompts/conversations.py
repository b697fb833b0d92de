"""What a model is told before its first duty, and what a specialist is asked. Every number comes from the law."""

from protocol.messages import Briefing, Role
from protocol.policy import Policy
from roles.prompts.profiled import in_full
from roles.prompts.texts import ROLES, bullets
from roles.specialists import Specialist

_TOOLS = (
    "Your tools are the only way to see and change files. Read before you edit.",
    "Check a change before you hand it in: what does not build or is not right is lost.",
    "Hand in as soon as the change is made. What you say besides is recorded and read by nobody.",
)


def agent_text(role: Role) -> str:
    """What an explorer or exploiter is, and how it works here."""
    return "\n\n".join((ROLES[role], bullets("How you work", _TOOLS)))


def specialist_text(specialist: Specialist) -> str:
    """What a specialist is."""
    return f"{specialist.mission} {specialist.never}"


def question_text(specialist: Specialist, briefing: Briefing, question: str) -> str:
    """What a specialist is shown with a question: what it looks at, and nothing of the conversation."""
    shown = {
        "workloads": bullets(
            "Workloads", [f"{name}: " + ", ".join(f"{k} = {v}" for k, v in d.items()) for name, d in _dims(briefing)]
        ),
        "profile": bullets("Profile", _profile(briefing)),
        "source": "\n\n".join(f"## {path}\n\n```\n{text}\n```" for path, text in sorted(briefing.editable.items())),
    }
    parts = [shown[name] for name in specialist.looks_at if shown.get(name)]
    return "\n\n".join([f"# Task `{briefing.task}` ({briefing.language})", *parts, f"## Question\n\n{question}"])


def web_rules(law: Policy, uses: int) -> str:
    """How the web is searched, ``uses`` times at most in one go: the law's number, or what there is money for."""
    return bullets(
        "The web",
        (
            f"You may search {uses} times in one go, and only in: {', '.join(law.search_domains)}.",
            "Report only sources that a search of yours returned; nothing else is accepted.",
        ),
    )


def _dims(briefing: Briefing) -> list[tuple[str, dict[str, int]]]:
    return list(briefing.workloads.items())


def _profile(briefing: Briefing) -> list[str]:
    return list(in_full(briefing.profile)) if briefing.profile is not None else []
