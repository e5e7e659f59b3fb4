"""The audit in simulated time: it repairs what a doubled message broke, and nothing else."""

import pytest

from machine.simulation.cloud_world import KINDS, CloudWorld
from machine.simulation.scripted import Scripted
from machine.simulation.seeds import simulate
from roost.conductor.audit.findings import FREE_CLAIM
from roost.conductor.audit.repairing import DONE
from roost.conductor.audit.store import AskForRound, BeginRepair, ReadFindings, ReadRepairs, ReadState
from roost.conductor.comparison import LEAKED_CLAIM
from roost.model.instance import ACTIVE
from support.clouds import spec

ONE = "instance0"
SEEDS = range(3)
SCHEDULES = 2


class Audited(Scripted):
    """A scripted cloud whose conductors audit."""

    audits = True


class Doubling(CloudWorld):
    """A cloud in which a claim may arrive again after the end of its instance."""

    doubles_claims = True


def claim_again(cloud: Scripted, *uuids: str) -> None:
    """What a second server answers to a claim that a proxy sends a second time."""
    for uuid in uuids:
        cloud.placement.select(spec(1), (uuid,), 0, 1, {})


def gone(cloud: Scripted, *uuids: str) -> None:
    """Instances are built and deleted."""
    cloud.doubles_claims = True
    cloud.request(*uuids)
    for uuid in uuids:
        cloud.wait_for(uuid, ACTIVE)
    cloud.delete(*uuids)
    cloud.wait(20.0)
    assert not any(map(cloud.placement.held, uuids))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_claim_that_arrives_again_after_its_instance_is_freed_with_its_proof(seed: int) -> None:
    with Audited(seed=seed) as cloud:
        gone(cloud, ONE)
        claim_again(cloud, ONE)
        held = cloud.placement.held(ONE)
        assert held is not None
        cloud.wait_for_rounds(2)
        assert cloud.placement.held(ONE) is None
        [repair] = cloud.read("api", ReadRepairs(None, 10))
        assert (repair.finding.kind, repair.finding.subject) == (LEAKED_CLAIM, ONE)
        assert (repair.finding.action, repair.result) == (FREE_CLAIM, DONE)
        proof = {"generation": held.consumer.generation, "allocations": held.allocations}
        assert repair.finding.proof == {"claim": proof, "mapping": None, "rows": {}, "is_past": True}
        cloud.finish()


def test_a_claim_of_the_same_type_that_no_conductor_made_is_left_alone() -> None:
    with Audited() as cloud:
        gone(cloud, ONE)
        claim_again(cloud, "of-another-program")
        cloud.wait_for_rounds(3)
        assert cloud.placement.held("of-another-program") is not None
        [(_, finding)] = cloud.read("api", ReadFindings(0, 10))
        assert "another program" in finding.waits_for
        cloud.placement.free(("of-another-program",))
        cloud.finish()


def test_nothing_is_freed_while_its_host_does_not_report() -> None:
    with Audited() as cloud:
        gone(cloud, ONE)
        claim_again(cloud, ONE)
        for agent in cloud.agents:
            agent.stop()
        cloud.wait_for_rounds(3)
        assert cloud.placement.held(ONE) is not None
        [(_, finding)] = cloud.read("api", ReadFindings(0, 10))
        assert "shows no sign of life" in finding.waits_for
        for agent in cloud.agents:
            agent.go_on()
        cloud.finish()
        assert cloud.placement.held(ONE) is None


def test_many_repairs_at_once_wait_for_an_operator_who_permits_them() -> None:
    uuids = [f"instance{number}" for number in range(4)]
    with Audited() as cloud:
        for uuid in uuids:
            gone(cloud, uuid)
        claim_again(cloud, *uuids)
        cloud.wait_for_rounds(3)
        assert all(map(cloud.placement.held, uuids))
        state = cloud.read("api", ReadState())
        assert state.report.findings == 4
        assert "4 repairs are due" in state.report.asks
        cloud.network.databases["api"].run(AskForRound(3), True)
        cloud.wait_for_rounds(1)
        assert sum(cloud.placement.held(uuid) is not None for uuid in uuids) == 1
        # The one that is left is few enough.
        cloud.finish()
        assert not any(map(cloud.placement.held, uuids))
        assert len(cloud.read("api", ReadRepairs(None, 10))) == 4


def test_a_claim_that_changes_between_the_looks_and_the_repair_is_left_alone() -> None:
    with Audited() as cloud:
        gone(cloud, ONE)
        claim_again(cloud, ONE)

        def claim_anew(process: object) -> float:
            cloud.placement.free((ONE,))
            claim_again(cloud, ONE)
            cloud.placement.select(spec(1), (ONE,), 0, 1, {ONE: 1})
            return 0.0

        cloud.before(BeginRepair, claim_anew, "super")
        cloud.wait_for_rounds(1)
        [repair] = cloud.read("api", ReadRepairs(None, 10))
        assert "refused" in repair.result
        assert cloud.placement.held(ONE) is not None
        cloud.finish()
        assert cloud.placement.held(ONE) is None


@pytest.mark.parametrize("kind", ["weather", "crashes"])
def test_claims_that_are_doubled_end_repaired(kind: str) -> None:
    simulate(lambda seed: Doubling(KINDS[kind], seed), range(SCHEDULES), kind)
