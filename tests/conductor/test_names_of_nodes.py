"""Names of hosts and of the nodes that agents report have one owner, in all cells."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agent.protocol.questions import Closing, Opening, Poll
from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.endpoint import EndpointTimes
from roost.conductor.agent_endpoint.service import AgentService
from roost.conductor.hosts.registry import HostRegistry
from roost.model.node import NodeReport
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.host_mappings import HostElsewhere
from roost.state.api_database.node_names import claim_names, owners_of_names, release_names
from roost.state.api_database.tables import host_mappings
from roost.state.cell_database.hosts import add_host_rows, describe_hosts, nodes_of_host, read_refused_hosts
from roost.storage import DatabaseUnavailable
from roost.web.errors import Conflict
from support.conducting import Conductors, conducting

MINE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


class Agents:
    """Agents of hosts that only report."""

    def __init__(self, now: Conductors, cell: str, **options: Any) -> None:
        self.cell = now.cells[cell]
        self.service = AgentService(
            self.cell, now.placement, api=now.ledger.database, times=EndpointTimes(poll=0.0), **options
        )
        self.refused: dict[str, str] | None = None
        self._sessions: dict[str, tuple[SessionKey, int]] = {}

    async def report(self, host: str, **nodes: str) -> list[str]:
        """Have a host report nodes (name -> uuid); returns the names of its nodes in the cell."""
        reports = [
            NodeReport(node=node, host=host, cell=self.cell.name, nodename=name)
            for name, node in nodes.items()
        ]
        if host not in self._sessions:
            await self.service.free_sessions()
            opened = await self.service.ask(Opening(host=host, nonce=f"{id(self)} of {host}"))
            self._sessions[host] = opened.session, 0
        session, counter = self._sessions[host]
        self._sessions[host] = session, counter + 1
        answer = await self.service.ask(
            Poll(session=session, counter=counter + 1, reports=tuple(reports), wait_seconds=0.0)
        )
        self.refused = answer.refused
        return [each.nodename for each in await self.cell.read(nodes_of_host(host))]


def using(directory: Path, use: Any) -> None:
    async def run() -> None:
        async with conducting(directory) as now:
            await use(now)

    asyncio.run(run())


def test_a_node_may_not_have_the_name_of_another_host(tmp_path: Path) -> None:
    async def use(now: Conductors) -> None:
        agents = Agents(now, "cell1")
        await agents.cell.write(add_host_rows({"added": "0" * 64}, 1.0))
        for name in ("b", "added"):
            assert await agents.report("a", **{name: MINE}) == ["a"], name
        # One bad node does not stop the others, nor the host.
        assert await agents.report("a", b=MINE, mine=OTHER) == ["a", "mine"]
        assert await agents.report("b", mine=MINE) == ["b"]

    using(tmp_path, use)


def test_who_is_refused_is_told_and_so_are_operators(tmp_path: Path) -> None:
    async def use(now: Conductors) -> None:
        agents = Agents(now, "cell1")

        async def told() -> str | None:
            described = (await agents.cell.read(describe_hosts(("a",))))["a"]
            assert (await agents.cell.read(read_refused_hosts())).get("a") == described.refused
            return described.refused

        await agents.cell.write(add_host_rows({"added": "0" * 64}, 1.0))
        await agents.report("a", mine=OTHER)
        assert (agents.refused, await told()) == ({}, None)
        await agents.report("a", added=MINE)
        reason = "the name added is that of another host"
        assert (agents.refused, await told()) == ({MINE: reason}, reason)
        # Polls without reports tell it again: an answer may have been lost.
        await agents.report("a")
        assert agents.refused == {MINE: reason}
        # Another process of the cell knows it too.
        later = Agents(now, "cell1")
        later._sessions = agents._sessions
        await later.report("a", mine=OTHER)
        assert (later.refused, await told()) == ({MINE: reason}, reason)
        await later.report("a", other=MINE)
        assert (later.refused, await told()) == ({}, None)
        await later.report("a", added=MINE)
        assert await told() == reason
        # A new session reports all nodes: what is not reported any more is forgotten.
        await later.service.ask(Closing(session=later._sessions.pop("a")[0]))
        await later.report("a", mine=OTHER)
        assert (later.refused, await told()) == ({}, None)

    using(tmp_path, use)


def test_new_names_that_look_like_anothers_are_refused_and_old_ones_stay(tmp_path: Path) -> None:
    async def use(now: Conductors) -> None:
        first, second = Agents(now, "cell1"), Agents(now, "cell2")
        hosts = HostRegistry(
            now.ledger.database, now.cells, now.placement, now.super.watch, now.aggregates.words
        )
        await hosts.add("cell1", ["rack1"])
        for name in ("rackl", "rackI", "RACK1"):
            with pytest.raises(Conflict, match=f"'{name}' cannot be added: its name looks like 'rack1'"):
                await hosts.add("cell2", [name])
            assert await second.report("d", **{name: MINE}) == ["d"]
            reason = f"the name {name} looks like rack1, that of another host"
            assert second.refused == {MINE: reason}
        # One owner may name its own nodes as it likes, and others may have what looks different.
        assert await first.report("a", nodeO=MINE, node0=OTHER) == ["a", "node0", "nodeO"]
        assert await second.report("d", racki=MINE) == ["d", "racki"]
        with pytest.raises(Conflict, match=r"'NODE0' cannot be added: .*'node0', that of a node of host 'a'"):
            await hosts.add("cell2", ["NODE0"])
        with pytest.raises(Conflict, match="'h0' and 'hO' cannot both be added"):
            await hosts.add("cell2", ["h0", "hO"])
        assert [each.host for each in (await hosts.lookup.page(10)).hosts if each.host.startswith("h")] == []

        # What is there already stays: a cloud may have had such names before they were refused.
        def had(connection: Connection) -> None:
            connection.execute(sa.update(host_mappings).values(look=None))

        await now.ledger.database.write(had)
        await hosts.add("cell2", ["rackl"])
        await now.ledger.database.write(claim_names("e", "cell1", {"Rack1": MINE}, frozenset({"Rack1"})))
        owners = await now.ledger.database.read(owners_of_names(("rack1", "rackl", "Rack1")))
        assert owners == {"rack1": "rack1", "rackl": "rackl", "Rack1": "e"}

    using(tmp_path, use)


def test_names_have_one_owner_across_cells(tmp_path: Path) -> None:
    async def use(now: Conductors) -> None:
        first, second = Agents(now, "cell1"), Agents(now, "cell2")
        assert await first.report("a", shared=MINE) == ["a", "shared"]
        assert await second.report("d", shared=OTHER) == ["d"]
        # Until an operator removes it from its host: then it is the next one's, who keeps it.
        await now.ledger.database.write(release_names("a", "cell1", MINE))
        assert await second.report("d", shared=OTHER) == ["d", "shared"]
        assert await now.ledger.database.read(owners_of_names(("shared",))) == {"shared": "d"}

    using(tmp_path, use)


@pytest.mark.parametrize("name", ["ho\u200bst", "h\u043est", "a b", "ho\u0301st", "x\n", "a/b"])
def test_a_node_may_not_have_a_name_that_looks_like_another_one(tmp_path: Path, name: str) -> None:
    async def use(now: Conductors) -> None:
        assert await Agents(now, "cell1").report("a", **{name: MINE}) == ["a"]

    using(tmp_path, use)


def test_a_node_that_is_stored_stays_while_nobody_can_be_asked(tmp_path: Path, monkeypatch: Any) -> None:
    async def use(now: Conductors) -> None:
        agents = Agents(now, "cell1")
        assert await agents.report("a", mine=MINE) == ["a", "mine"]

        async def down(work: object) -> None:
            raise DatabaseUnavailable("it is stopped")

        later = Agents(now, "cell1")
        monkeypatch.setattr(now.ledger.database, "write", down)
        later._sessions = agents._sessions
        assert await later.report("a", mine=MINE, new=OTHER) == ["a", "mine"]
        monkeypatch.undo()
        assert await later.report("a", mine=MINE, new=OTHER) == ["a", "mine", "new"]

    using(tmp_path, use)


def test_a_request_for_a_host_by_the_name_of_its_node_gets_that_host() -> None:
    """The scheduler reads what is stored, also by earlier versions."""
    table = NodeTable(
        [
            NodeReport(node=MINE, host="a", cell="cell1", nodename="b"),
            NodeReport(node=OTHER, host="b", cell="cell2"),
        ]
    )
    assert [table.nodes[each] for each in table.indexes_of_nodename("b")] == [OTHER]


def test_a_host_may_not_be_added_under_the_name_of_anothers_node(tmp_path: Path) -> None:
    async def use(now: Conductors) -> None:
        hosts = HostRegistry(
            now.ledger.database, now.cells, now.placement, now.super.watch, now.aggregates.words
        )
        assert await Agents(now, "cell1").report("a", wanted=MINE) == ["a", "wanted"]
        with pytest.raises((Conflict, HostElsewhere), match=r"'wanted'.*'a'"):
            await hosts.add("cell2", ["wanted"])
        await hosts.remove_node("a", MINE, "cell1")
        assert set(await hosts.add("cell2", ["wanted"])) == {"wanted"}
        assert await Agents(now, "cell1").report("a", wanted=MINE) == ["a"]

    using(tmp_path, use)
