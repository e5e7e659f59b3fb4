"""What is done with the hosts of a cell, on every database."""

import asyncio

from roost.model.instance import ACTIVE
from roost.model.node import NodeReport
from roost.model.operator_word import Subject
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.disabled import AddHost, EnableHost, ReadFlags
from roost.state.cell_database.given_up import GiveUpOnHost
from roost.state.cell_database.host_tokens import ReadTokens
from roost.state.cell_database.hosts import (
    AddHosts,
    DescribeHosts,
    HostsAfter,
    NodesOfHost,
    NoteProviders,
    ProvidersMade,
    RemoveHost,
)
from roost.state.cell_database.instance_search import DescribeInstances, SearchInstances
from roost.state.cell_database.node_reports import KeepReports, ReadReports
from roost.state.cell_database.overdue_work import SESSION, session_name
from roost.state.leases import AcquireLease
from roost.storage import Database
from support.cells import NOW, instance
from support.upgrading import upgrade_empty


def session_of(host: str) -> AcquireLease:
    name = session_name(host)
    return AcquireLease(name=name, kind=SESSION, holder="n", host=host, service_version=1, now=NOW)


def test_host_from_its_addition_to_its_removal(database_url: str) -> None:
    async def run() -> None:
        database = Database(database_url)
        upgrade_empty(SCHEMA, database)
        try:
            await database.write(AddHost("a", NOW))
            await database.write(AddHost("a", NOW + 1))
            await database.write(KeepReports((NodeReport(node="n", host="a", cell="c"),)))
            await database.write(EnableHost("a", False, "fan", NOW))
            assert [each.enabled for each in await database.read(ReadReports("c"))] == [True]
            assert await database.read(ReadFlags("c")) == {Subject("c", "a")}
            await database.write(NoteProviders("n", ("n", "child")))
            await database.write(NoteProviders("n", ("child",)))
            assert await database.read(ProvidersMade("n")) == {"n", "child"}
            await database.write(AddInstances((instance("i", state=ACTIVE, host="a", node="n"),), NOW))
            assert await database.read(HostsAfter(5)) == ["a"]
            described = (await database.read(DescribeHosts(("a", "b"))))["a"]
            assert (described.reason, described.added_at, described.instances) == ("fan", NOW, {ACTIVE: 1})
            assert [each.instances for each in await database.read(NodesOfHost("a"))] == [1]
            assert await database.read(SearchInstances(most=5, host="a", changed_since=NOW)) == ["i"]
            assert "instances have come" in (await database.write(RemoveHost("a", None)) or "")
            done = await database.write(GiveUpOnHost(host="a", reason="burned", at=NOW, cell="c"))
            assert done.instances == {"i"}
            found = (await database.read(DescribeInstances(("i",))))["i"].instance
            assert (found.state, found.reason) == ("abandoned", "burned")
            assert await database.write(AddHosts({"a": "1", "b": "2"}, NOW)) == ["a"]
            assert await database.read(DescribeHosts(("b",))) == {}
            assert await database.write(AddHosts({"b": "2", "c": "3"}, NOW)) == []
            tokens = await database.read(ReadTokens())
            assert {digest: token.host for digest, token in tokens.items()} == {"2": "b", "3": "c"}
            lease = await database.write(session_of("b"))
            assert "signs of life" in (await database.write(RemoveHost("b", None)) or "")
            assert await database.write(RemoveHost("b", lease)) is None
            assert {token.host for token in (await database.read(ReadTokens())).values()} == {"c"}
        finally:
            await database.close()

    asyncio.run(run())
