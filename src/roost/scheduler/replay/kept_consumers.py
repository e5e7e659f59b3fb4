"""Consumers that a recorded run kept or handed over, as the ledger had them on the version of the run."""

from roost.fleet import Fleet
from roost.ledger import Held
from roost.model.allocation import Consumer, KeptAllocations
from roost.model.record import Run


def kept_consumers(fleet: Fleet, run: Run) -> dict[str, Held]:
    """Return the consumers of the instances that a run claimed beside what they hold, or that handed it to
    their migrations, by uuid."""
    return {
        each: Held(_consumer(fleet, run, each, kept), kept.allocations)
        for each, kept in {**run.beside, **run.handed}.items()
    }


def _consumer(fleet: Fleet, run: Run, instance: str, kept: KeptAllocations) -> Consumer:
    """Return a consumer; its group and assignment are those that the fleet knows."""
    rows = [row for row in map(fleet.find_row, kept.allocations) if row >= 0]
    groups = (name for name in fleet.groups.names() if fleet.groups.hosts_of(name, instance))
    roots = {fleet.uuid(fleet.root.item(row)) for row in rows}
    assignments = (fleet.assigned.on(root).get(instance) for root in roots)
    return Consumer(
        uuid=instance,
        project_id=run.project_id,
        user_id=run.user_id,
        generation=kept.generation,
        group=next(groups, None),
        assignment=next((each for each in assignments if each is not None), None),
    )
