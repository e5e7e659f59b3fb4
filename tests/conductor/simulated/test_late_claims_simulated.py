"""Claims that outlive their instances, each as a schedule in steps: they are found and freed."""

import pytest

from roost.model.instance import ERROR
from roost.state.api_database.build_requests import MapInstances
from roost.state.api_database.past import note_late_claims
from support.simulation.process import Process
from support.simulation.scripted import Scripted

ONE = "instance0"
FREED = "a claim that came after the end of its instance is freed"
SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dies", [False, True])
def test_a_claim_that_comes_after_its_instance_has_failed_in_a_cell_is_freed(dies: bool, seed: int) -> None:
    """``dies``: its asker does, before it can note that it has claimed."""
    with Scripted(seed=seed, build_seconds=10.0, hosts=4) as cloud:
        # The second owner places the instance. All its builds fail, its claim is freed, and it is in error.
        cloud.fail(ONE, 1, 2, 3)
        cloud.build_in(1.0)
        cloud.pause_before("select_destinations", 60.0, "super")
        if dies:
            cloud.before(note_late_claims, lambda process: cloud.restart_after(process, 1.0), "super")
        cloud.request(ONE)
        assert cloud.wait_for(ONE, ERROR, seconds=50.0).host is not None
        assert cloud.placement.held(ONE) is None
        cloud.wait(90.0)
        assert len(cloud.said(FREED)) == 1
        assert cloud.placement.held(ONE) is None
        cloud.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_claim_of_a_deleted_instance_in_no_cell_is_freed_by_another_conductor(seed: int) -> None:
    with Scripted(seed=seed) as cloud:
        seen = []

        def die(process: Process) -> float:
            seen.append((cloud.row(ONE), cloud.placement.held(ONE) is not None))
            return cloud.restart_after(process, 1.0)

        def delete(process: Process) -> float:
            cloud.delete(ONE)
            # For longer than the user waits for an answer of this one.
            return 10.0

        # It is deleted between its claim and its mapping, and is in no cell from then on.
        cloud.before(MapInstances, delete, "super")
        cloud.before("holdings", die, "super")
        cloud.request(ONE)
        cloud.wait(60.0)
        # The conductor that carried the deletion was dead; its lease said who worked on it, for some seconds.
        assert seen == [(None, True)]
        assert cloud.placement.held(ONE) is None
        cloud.finish()
