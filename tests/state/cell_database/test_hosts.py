"""What is done with the hosts of a cell, on every database."""

import asyncio

from roost.model.instance import ACTIVE
from roost.model.node import NodeReport
from roost.model.operator_word import Subject
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.deletions import give_up_on_host
from roost.state.cell_database.disabled import add_host_row, enable_host, read_flags
from roost.state.cell_database.host_admission import read_host_tokens
from roost.state.cell_database.host_work import SESSION, session_name
from roost.state.cell_database.hosts import (
    add_host_rows,
    describe_hosts,
    hosts_after,
    nodes_of_host,
    note_providers,
    providers_made,
    remove_host_row,
)
from roost.state.cell_database.instance_search import describe_instances, search_instances
from roost.state.cell_database.nodes import keep_reports, read_reports
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
            await database.write(add_host_row("a", NOW))
            await database.write(add_host_row("a", NOW + 1))
            await database.write(keep_reports((NodeReport(node="n", host="a", cell="c"),)))
            await database.write(enable_host("a", False, "fan", NOW))
            assert [each.enabled for each in await database.read(read_reports("c"))] == [True]
            assert await database.read(read_flags("c")) == {Subject("c", "a")}
            await database.write(note_providers("n", ("n", "child")))
            await database.write(note_providers("n", ("child",)))
            assert await database.read(providers_made("n")) == {"n", "child"}
            await database.write(AddInstances((instance("i", state=ACTIVE, host="a", node="n"),), NOW))
            assert await database.read(hosts_after(5)) == ["a"]
            described = (await database.read(describe_hosts(("a", "b"))))["a"]
            assert (described.reason, described.added_at, described.instances) == ("fan", NOW, {ACTIVE: 1})
            assert [each.instances for each in await database.read(nodes_of_host("a"))] == [1]
            assert await database.read(search_instances(most=5, host="a", changed_since=NOW)) == ["i"]
            assert "instances have come" in (await database.write(remove_host_row("a", None)) or "")
            done = await database.write(give_up_on_host(host="a", reason="burned", at=NOW, cell="c"))
            assert done.instances == {"i"}
            found = (await database.read(describe_instances(("i",))))["i"].instance
            assert (found.state, found.reason) == ("abandoned", "burned")
            assert await database.write(add_host_rows({"a": "1", "b": "2"}, NOW)) == ["a"]
            assert await database.read(describe_hosts(("b",))) == {}
            assert await database.write(add_host_rows({"b": "2", "c": "3"}, NOW)) == []
            tokens = await database.read(read_host_tokens())
            assert {digest: token.host for digest, token in tokens.items()} == {"2": "b", "3": "c"}
            lease = await database.write(session_of("b"))
            assert "signs of life" in (await database.write(remove_host_row("b", None)) or "")
            assert await database.write(remove_host_row("b", lease)) is None
            assert {token.host for token in (await database.read(read_host_tokens())).values()} == {"c"}
        finally:
            await database.close()

    asyncio.run(run())
