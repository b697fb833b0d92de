"""One run of the real command for every test that looks at what a run leaves: cheats, faults, and one honest kernel."""

import pytest
from cheating import CHEATS, HONEST, HOPELESS, REF, SLOW, WHOLE_EIGHTS, proposal
from optimizing import Ended, optimized, run_of, write_inputs


@pytest.fixture(scope="session")
def cheated(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Two iterations: one in which nobody is right, and one in which one branch is."""
    folder = tmp_path_factory.mktemp("cheated")
    names = list(CHEATS)
    first = {**HOPELESS, **{name: CHEATS[name] for name in names[:4]}}
    second = {**{name: CHEATS[name] for name in names[4:]}, "whole_eights": WHOLE_EIGHTS, "honest": HONEST}
    ideas = proposal("hopeless", first), proposal("direct", second)
    write_inputs(folder, *ideas, kernel=SLOW, ref=REF)
    status, said = optimized(folder, "--iterations", "2", "--branches", "8", "--warmup", "3")
    assert status == 0, said
    return Ended(run_of(folder), status, said)
