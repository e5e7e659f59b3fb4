"""Values from outside are cleaned before they are stored; an unreadable row does not hide the others."""

import asyncio
import math

import msgspec
import pytest
import sqlalchemy as sa

from roost.model.instance import ASSIGNED, FAILED, BuildResult, Fault, Instance
from roost.model.node import NodeReport
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.tables import instances, nodes
from roost.storage import Database
from support.databases import Place
from support.driven_cell import DrivenCell
from support.upgrading import upgrade_empty

ODD = "no \udc80 IP\0"
CLEAN = "no \ufffd IP\ufffd"


def host(name: str = "a", **more: object) -> NodeReport:
    return NodeReport(host=name, node=f"node-{name}"[:36], cell="cell1", **more)  # type: ignore[arg-type]


def instance(uuid: str = "i0", **more: object) -> Instance:
    return msgspec.structs.replace(
        Instance(
            uuid=uuid,
            request_id="r",
            run="run",
            project_id="p",
            user_id="u",
            flavor="small",
            state=ASSIGNED,
            host="a",
            node="node-a",
            attempt=1,
        ),
        **more,
    )


def within(place: Place, work) -> None:
    async def main() -> None:
        database = Database(place.url)
        upgrade_empty(SCHEMA, database)
        try:
            await work(DrivenCell("cell1", database, lambda: 7.0))
        finally:
            await database.close()

    asyncio.run(main())


def test_reasons_of_failures(place: Place) -> None:
    async def work(cell: DrivenCell) -> None:
        await cell.add([instance(flavor=f"f\0{'x' * 300}")], [Fault("i0", 0, None, ODD, 1.0)])
        assert len((await cell.find(["i0"]))["i0"].flavor) == 255
        dropped = [BuildResult("\udc80", "a", 1), BuildResult("i0", ODD, 1)]
        await cell.report([BuildResult("i0", "a", 1, ODD), *dropped])
        found = (await cell.find(["i0"]))["i0"]
        assert (found.state, found.reason) == (FAILED, CLEAN)
        assert [fault.reason for fault in await cell.faults_of("i0")] == [CLEAN, CLEAN]
        await cell.abandon("i0", 1, ODD * 100_000)
        reason = (await cell.find(["i0"]))["i0"].reason
        assert reason is not None
        assert reason.startswith(CLEAN)
        assert len(reason) < 10_000

    within(place, work)


def test_reports_of_hosts(place: Place) -> None:
    metrics = {
        "heat": 20.0,
        "nan": math.nan,
        "inf": -math.inf,
        "text": "hot",
        "\udc80": 1,
        "many": 10**400,
        **{f"x{number}": 1.0 for number in range(2_000)},
    }

    async def work(cell: DrivenCell) -> None:
        odd = [
            host("odd\udc80"),
            host("odd\0"),
            host("x" * 300),
            host(""),
        ]
        fine = host("fine", metrics=metrics, stats={"ssd\0": "\udc80"}, failed_builds=-3)
        await cell.heartbeat([*odd, fine])
        [kept] = await cell.nodes()
        assert kept.host == "fine"
        assert kept.failed_builds == 0
        assert kept.metrics["heat"] == 20.0
        assert not {"nan", "inf", "text", "many"} & kept.metrics.keys()
        assert len(kept.metrics) == 1_000
        assert kept.stats == {"ssd\ufffd": "\ufffd"}

    within(place, work)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (nodes.c.facts, '{"metrics": {"heat": null, "power": 3}, "failed_builds": 2}'),
        (nodes.c.facts, "no JSON"),
        (nodes.c.facts, '{"supported_instances": [5], "failed_builds": 2}'),
        (instances.c.alternates, '[{"host": "b"}]'),
    ],
)
def test_rows_that_cannot_be_read_stand_for_what_can(place: Place, column: sa.Column[str], text: str) -> None:
    async def work(cell: DrivenCell) -> None:
        await cell.heartbeat([host("a"), host("b", metrics={"heat": 1.0})])
        await cell.add([instance(), instance("i1")])
        poison = sa.update(column.table).values({column: text})
        poison = poison.where(column.table.primary_key.columns[0].in_(("node-a", "i0")))
        await cell.database.write(lambda connection: connection.execute(poison))
        a, b = await cell.nodes()
        assert (a.host, b.metrics, a.supported_instances) == ("a", {"heat": 1.0}, ())
        assert a.metrics == {}
        assert a.failed_builds == (2 if "failed_builds" in text else 0)
        assert [each.alternates for each in await cell.in_state(ASSIGNED)] == [(), ()]

    within(place, work)
