"""Hosts that nobody reports for come from placement, and go with it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from roost.ledger import Ledger
from roost.model.inventory import Inventory
from roost.model.node import NodeReport
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.commands.providers import CreateProvider, DeleteProvider
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.scheduler.nodes.roots import HttpRoots, LedgerRoots, Roots, RootSource
from roost.scheduler.nodes.table import NodeTable
from roost.storage import DatabaseUnavailable
from support.clouds import NOW, Cloud, Provider, filled, flat, over_http, uuid_of

Work = Callable[[Ledger, NodeTable, ServiceHosts], Awaitable[None]]


def known(table: NodeTable) -> dict[str, str]:
    """The names of the nodes of a table by uuid."""
    found = {}
    for number in range(table.size):
        node = table.nodes[number]
        if table.index_of_node(node) == number:
            found[node] = table.hosts[number]
    return found


def on(folder: Path, cloud: Cloud, work: Work, *, http: bool = False) -> None:
    async def main() -> None:
        async with filled(folder / "roost.db", cloud) as ledger, over_http(ledger) as placement:
            table = NodeTable()
            roots: RootSource = HttpRoots(placement, 0.0) if http else LedgerRoots(ledger, 0.0)
            await work(ledger, table, ServiceHosts(table, None, roots))

    asyncio.run(main())


def test_hosts_come_and_go_with_their_providers(tmp_path: Path) -> None:
    async def work(ledger: Ledger, table: NodeTable, hosts: ServiceHosts) -> None:
        await hosts.refresh()
        assert known(table) == {uuid_of(0): f"name of {uuid_of(0)}"}
        assert table.enabled[0] and table.seen_since(NOW)[0]
        await ledger.execute(CreateProvider(uuid_of(1), "second", None))
        await ledger.execute(CreateProvider(uuid_of(2), "child", uuid_of(1)))
        await hosts.refresh()
        assert known(table)[uuid_of(1)] == "second"
        assert uuid_of(2) not in known(table)
        await ledger.execute(DeleteProvider(uuid_of(2)))
        await ledger.execute(DeleteProvider(uuid_of(1)))
        await hosts.refresh()
        assert set(known(table)) == {uuid_of(0)}

    for http in (False, True):
        folder = tmp_path / str(http)
        folder.mkdir()
        on(folder, flat(1), work, http=http)


def test_a_pool_is_no_host(tmp_path: Path) -> None:
    pool = Provider(uuid_of(9), {"DISK_GB": Inventory(10)}, traits=frozenset({SHARING_TRAIT}))

    async def work(ledger: Ledger, table: NodeTable, hosts: ServiceHosts) -> None:
        await hosts.refresh()
        assert set(known(table)) == {uuid_of(0)}
        await ledger.execute(SetTraits(uuid_of(9), frozenset(), None, add_custom=True))
        await hosts.refresh()
        assert set(known(table)) == {uuid_of(0), uuid_of(9)}

    for http in (False, True):
        folder = tmp_path / str(http)
        folder.mkdir()
        on(folder, Cloud([*flat(1).providers, pool], []), work, http=http)


def test_a_node_that_reports_is_its_agents_until_it_is_removed(tmp_path: Path) -> None:
    report = NodeReport(host="agents", node=uuid_of(0), cell="cell1", last_seen=NOW)

    async def work(ledger: Ledger, table: NodeTable, hosts: ServiceHosts) -> None:
        await hosts.refresh()
        table.update([report])
        await hosts.refresh()
        assert known(table) == {uuid_of(0): "agents"}
        table.remove([uuid_of(0)])
        await hosts.refresh()
        assert known(table) == {uuid_of(0): f"name of {uuid_of(0)}"}

    on(tmp_path, flat(1), work)


def test_claims_on_a_node_without_reports_do_not_stay_outstanding(tmp_path: Path) -> None:
    async def work(ledger: Ledger, table: NodeTable, hosts: ServiceHosts) -> None:
        await hosts.refresh()
        table.update([NodeReport(host="agents", node=uuid_of(1), cell="cell1", last_seen=NOW)])
        for number in (0, 1):
            index = table.index_of_node(uuid_of(number))
            assert index is not None
            table.claim(uuid_of(0xA0 + number), index, 512, 0)
        await hosts.refresh_all()
        assert [instance for instance, _ in table.outstanding] == [uuid_of(0xA1)]

    on(tmp_path, flat(2), work)


def test_an_outage_leaves_the_hosts_that_are_known() -> None:
    class Failing:
        """Tells one host, then fails, then tells two."""

        def __init__(self) -> None:
            self.calls = 0

        async def changed(self) -> Roots | None:
            self.calls += 1
            if self.calls == 2:
                raise DatabaseUnavailable("it is away")
            return {uuid_of(number): f"host{number}" for number in range(self.calls)}

    async def main() -> None:
        table = NodeTable()
        hosts = ServiceHosts(table, None, Failing())
        await hosts.refresh()
        await hosts.refresh()
        assert (len(table), hosts.failure) == (1, "it is away")
        await hosts.refresh()
        assert (len(table), hosts.failure) == (3, None)

    asyncio.run(main())
