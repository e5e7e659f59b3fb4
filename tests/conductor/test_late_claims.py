"""Claims that are made after the end of their instances, by conductors that were stopped, are freed."""

import pytest

from roost.conductor.super_conductor import SuperConductor
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.api_database.past import LOOKS, count_look, noted_instances_after
from support.conducting import VCPUS, Conductors, request
from support.several_conductors import ONE, Gate, found_dead, within


def test_a_claim_that_is_made_after_the_end_of_its_instance_is_freed(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(1))
        await gate.reached.wait()
        await found_dead(now)
        await other.delete([ONE])
        await other.step()
        await other.idle()
        await other.step()
        assert await now.requests.mappings([ONE]) == {}
        gate.opened.set()
        await now.arrive()
        assert await now.used() == 1
        await other.step()
        assert await now.used() == 0
        assert await now.instances() == {}

    within(tmp_path, work)


@pytest.mark.parametrize("deleted", [True, False])
def test_a_claim_that_comes_after_the_end_of_its_asker_and_its_instance_is_freed(
    tmp_path, monkeypatch, deleted
) -> None:
    """Its asker is killed; the scheduler claims later. The instance is deleted, or in cell0."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(1, vcpus=1 if deleted else VCPUS + 1))
        await gate.reached.wait()
        await now.super.close()
        if deleted:
            await other.delete([ONE])
        await other.step()
        await other.idle()
        await other.step()
        assert bool(await now.instances()) is not deleted
        late = ConsumerWrite(
            consumer=ONE,
            allocations={"node-a": {"VCPU": 1}},
            project_id="project",
            user_id="user",
            consumer_type="INSTANCE",
        )
        await now.placement.write_allocations([late])
        with monkeypatch.context() as outage:

            async def away(*_: object) -> None:
                raise ConnectionRefusedError("refused")

            outage.setattr(now.placement, "holdings", away)
            await other.step()
        assert await now.used() == 1
        await other.step()
        assert await now.used() == 0
        await now.check()
        for _ in range(LOOKS):
            await now.ledger.database.write(count_look())
        assert await now.ledger.database.read(noted_instances_after()) == {}

    within(tmp_path, work)


def test_an_instance_that_one_conductor_alone_has_carried_is_not_noted_at_its_end(tmp_path) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        await now.run(request(2))
        await now.settle()
        await now.super.delete([ONE])
        await now.settle()
        await now.super.step()
        assert set(await now.instances()) == {"i1"}
        assert await now.ledger.database.read(noted_instances_after()) == {}

    within(tmp_path, work)
