"""Server groups and assignments, which OpenStack Placement has no columns for."""

import asyncio
from pathlib import Path

from roost.model.allocation import GroupClaim
from roost.model.assignment import AssignedCell, Assignment
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from support.clouds import filled, flat, holding, uuid_of
from support.exchange.exchanging import at, exported, imported

MEMBER, OTHER = uuid_of(0xA), uuid_of(0xB)


def test_an_export_says_which_consumers_it_keeps_without_group_or_assignment(tmp_path: Path) -> None:
    source = tmp_path / "roost.db"
    held = {uuid_of(0): {"VCPU": 1}}
    member = ConsumerWrite(
        consumer=MEMBER,
        allocations=held,
        project_id="p",
        user_id="u",
        generation=None,
        group=GroupClaim("the-group", "affinity"),
        assignment=Assignment(uuid_of(0), (AssignedCell(0, 0, pinned=((0, 1),)),)),
    )

    async def fill() -> None:
        async with filled(source, flat(1)) as ledger:
            await ledger.execute(WriteAllocations((member, holding(OTHER, held))))

    asyncio.run(fill())
    report = exported(at(source), at(tmp_path / "placement.db"))
    assert [(each.kind, each.subject, each.detail) for each in report.anomalies] == [
        ("no-groups", f"consumer {MEMBER}", "kept outside of server group the-group"),
        ("no-assignments", f"consumer {MEMBER}", f"kept without its assignment on node {uuid_of(0)}"),
    ]
    assert report.copied["consumers"] == 2
    again = imported(at(tmp_path / "placement.db"), at(tmp_path / "again.db"))
    assert (again.copied["consumers"], again.anomalies) == (2, [])
