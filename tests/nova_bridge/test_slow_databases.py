"""A database of Nova that hangs holds up neither decisions nor the reads of others."""

import asyncio

from support.nova_clouds import FedTable, NovaCloud, cell_uuid


async def until_loaded(fed: FedTable) -> None:
    while not fed.feed.is_loaded or fed.feed.cells_down:
        await fed.feed.refresh()


def test_decision_does_not_wait_for_a_database_that_hangs(cloud: NovaCloud) -> None:
    fed = FedTable(cloud, patience_seconds=0.05)
    cloud.host("cell1", "a")
    cloud.host("cell2", "b")

    async def run() -> None:
        await until_loaded(fed)
        let_go = fed.hang("cell2")
        cloud.service("cell1", "a", disabled=True)
        cloud.service("cell2", "b", disabled=True)
        await fed.feed.words.look()
        assert fed.enabled == {"b"}
        assert "no answer" in fed.feed.cells_down[cell_uuid("cell2")]
        cloud.service("cell1", "a", disabled=False)
        await fed.feed.words.look()
        assert fed.enabled == {"a", "b"}
        let_go()
        while "b" in fed.enabled:
            await fed.feed.refresh()
        assert not fed.feed.cells_down
        await fed.end()

    asyncio.run(run())


def test_cell_that_hangs_holds_up_no_other_cell(cloud: NovaCloud) -> None:
    fed = FedTable(cloud, patience_seconds=0.05)
    cloud.host("cell1", "a")
    cloud.host("cell2", "b")

    async def run() -> None:
        await until_loaded(fed)
        let_go = fed.hang("cell2")
        cloud.node("cell1", "a", at=1.0, stats={"num_instances": 1})
        fed.now += 30.0
        while fed.table.report(fed.table.index("a") or 0).num_instances == 0:
            await fed.feed.refresh()
        let_go()
        await fed.end()

    asyncio.run(run())
