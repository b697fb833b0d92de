"""Devices of different SKUs in one campaign, where that is allowed: never compared with each other."""

from story import A, B, Story

from protocol import events as ev
from protocol.hardware import async_copy_of, cpu_arch, tensor_cores_of
from protocol.messages import DeviceInfo, Verdict, VerifyLanding
from protocol.policy import Policy

C = "explorer-2"


def mixed(allowed: bool = True) -> Story:
    """A and B on one SKU, C on another; A has a keep that waits to be verified."""
    story = Story(Policy(allow_mixed=allowed), (A, B, C))
    for name, sku in ((A, "H200"), (B, "H200"), (C, "L4")):
        device = DeviceInfo(kind="cuda", id=story.state.agents[name].member.device, name=sku)
        story.say(name, ev.AgentJoined(incarnation=name, device=device, pid=1))
    story.baselines()
    story.prepare(story.experiment(A, Verdict.KEEP, 0.05))
    return story


def test_a_landing_is_verified_on_its_authors_sku_alone() -> None:
    story = mixed()
    assert not isinstance(story.duty(C), VerifyLanding)
    assert not isinstance(story.duty(A), VerifyLanding)  # B is another device of the same SKU
    assert isinstance(story.duty(B), VerifyLanding)


def test_the_author_verifies_itself_when_its_sku_has_nobody_else() -> None:
    story = mixed()
    story.say(B, ev.AgentLost(why="killed"))
    assert isinstance(story.duty(A), VerifyLanding)
    assert not isinstance(story.duty(C), VerifyLanding)


def test_a_landing_does_not_wait_for_ever_for_a_sku_that_is_gone() -> None:
    story = mixed()
    for name in (A, B):
        story.say(name, ev.AgentLost(why="killed"))
    assert not isinstance(story.duty(C), VerifyLanding)
    story.now += story.state.policy.absent_after + 1.0
    assert isinstance(story.duty(C), VerifyLanding)


def test_levels_of_different_skus_are_not_compared() -> None:
    story = mixed()
    own = story.state.head_of(A)
    story.state.levels[story.state.main] = 9.0
    assert story.state.head_of(A) == own
    other = mixed(allowed=False)
    other.state.levels[other.state.main] = 9.0
    assert other.state.head_of(A) == other.state.main


def test_generations_follow_from_the_compute_capability() -> None:
    assert [tensor_cores_of(cc) for cc in ("6.1", "7.0", "7.5", "8.6", "8.9", "9.0", "12.0")] == [
        "", "1st", "2nd", "3rd", "4th", "4th", "5th",
    ]  # fmt: skip
    assert async_copy_of("7.5") == ""
    assert async_copy_of("8.0") == "cp.async"
    assert "TMA" in async_copy_of("9.0")
    assert cpu_arch("x86_64", ("avx", "avx2", "fma")) == "x86_64-avx2"
    assert cpu_arch("x86_64", ("avx2", "avx512f")) == "x86_64-avx512"
