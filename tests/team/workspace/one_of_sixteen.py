"""What each of sixteen agents does at once, in a module of its own.

A spawned process imports it. Which ``conftest`` it would find depends on the tests that were collected, and a worker
that fails to import leaves its pool waiting for ever.
"""

from pathlib import Path

from team.workspace.hub import Hub


def one_agent(run: str, number: int, repeats: int) -> str:
    hub = Hub.open(Path(run))
    for turn in range(repeats):
        tree = hub.worktree(f"agent-{number}")
        made = tree.commit({"kernel.cpp": f"// {number} {turn}\n"}, "x", {}, ("kernel.cpp",))
        tree.reset(made)
        tree.remove()
    return hub.resolve(f"agent/agent-{number}")
