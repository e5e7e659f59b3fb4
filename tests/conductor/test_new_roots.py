"""The roots of trees that an agent may make through its endpoint."""

import asyncio

import pytest

from roost.agent.protocol.errors import AccessRefused
from roost.agent.protocol.questions import Opening, Poll, ReadTree, WriteProviders
from roost.agent.protocol.types import CreateProvider, MoveProvider, SetTraits
from roost.model.node import NodeReport
from roost.state.cell_database.hosts import add_host_rows
from roost.storage import DatabaseUnavailable
from support.agents import hosts


def test_a_root_that_nobody_knows_is_made_under_the_name_of_its_host_or_after_a_report(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as there:
            session = (await there.service.ask(Opening(host="a", nonce="n"))).session
            metal = WriteProviders(session, "metal", (CreateProvider("metal", "node-of-b", None),))
            with pytest.raises(AccessRefused, match="'node-of-b'"):
                await there.service.ask(metal)
            own = WriteProviders(session, "own", (CreateProvider("own", "a", None),))
            assert (await there.service.ask(own)).refusal is None
            report = NodeReport(host="a", node="metal", nodename="metal", cell="cell1")
            await there.service.ask(Poll(session=session, counter=1, reports=(report,), wait_seconds=0.0))
            named = WriteProviders(session, "metal", (CreateProvider("metal", "metal", None),))
            assert (await there.service.ask(named)).refusal is None
            assert {each.name for each in await there.placement.tree("metal")} == {"metal"}

    asyncio.run(run())


def test_no_provider_gets_the_name_of_another_host(tmp_path) -> None:
    """Placement would refuse the host its own name later."""

    async def run() -> None:
        async with hosts(tmp_path) as there:
            await there.cell.write(add_host_rows({"later": "0" * 64}, 1.0))
            session = (await there.service.ask(Opening(host="a", nonce="n"))).session
            own = WriteProviders(session, "own", (CreateProvider("own", "a", None),))
            assert (await there.service.ask(own)).refusal is None
            for write in (CreateProvider("child", "later", "own"), MoveProvider("own", "later", None)):
                written = await there.service.ask(WriteProviders(session, "own", (write,)))
                assert written.done == 0
                assert "later" in written.refusal.text
            child = WriteProviders(session, "own", (CreateProvider("child", "a-later", "own"),))
            assert (await there.service.ask(child)).refusal is None
            assert {each.name for each in await there.placement.tree("own")} == {"a", "a-later"}

    asyncio.run(run())


def test_host_reports_no_node_whose_provider_is_another_ones(tmp_path) -> None:
    """The host of another cell, or an operator, has made it: nobody of this cell has reported it."""

    async def run() -> None:
        async with hosts(tmp_path) as there:
            for uuid, name in (
                ("of-other", "other"),
                ("shared", "nfs-share"),
                ("own", "a"),
                ("full", "a.example.org"),
                ("metal", "metal"),
            ):
                await there.placement.ensure_provider(uuid, name)
            await there.placement.ensure_provider("child", "a-child", "own")
            session = (await there.service.ask(Opening(host="a", nonce="n"))).session
            nodes = ("of-other", "shared", "own", "full", "metal", "child", "new")
            reports = tuple(NodeReport(host="a", node=node, nodename=node, cell="c") for node in nodes)
            polled = await there.service.ask(
                Poll(session=session, counter=1, reports=reports, wait_seconds=0.0)
            )
            assert await there.cell.node_uuids() == {"own", "full", "metal", "new"}
            assert not polled.wants_reports
            for root in ("of-other", "shared"):
                with pytest.raises(AccessRefused, match=f"{root} is no node of host a"):
                    await there.service.ask(ReadTree(session, root))
                write = SetTraits(root, frozenset(), 0)
                with pytest.raises(AccessRefused, match=f"{root} is no node of host a"):
                    await there.service.ask(WriteProviders(session, root, (write,)))

    asyncio.run(run())


def test_new_node_is_reported_again_when_placement_answers(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as there:

            async def away(_: str) -> None:
                raise DatabaseUnavailable("away")

            session = (await there.service.ask(Opening(host="a", nonce="n"))).session
            reports = (NodeReport(host="a", node="new", nodename="a", cell="c"),)
            with monkeypatch.context() as outage:
                outage.setattr(there.placement, "provider", away)
                polled = await there.service.ask(
                    Poll(session=session, counter=1, reports=reports, wait_seconds=0.0)
                )
            assert polled.wants_reports, "the sign of life counts, and the report is sent again"
            assert await there.cell.node_uuids() == frozenset()
            await there.service.ask(Poll(session=session, counter=2, reports=reports, wait_seconds=0.0))
            assert await there.cell.node_uuids() == {"new"}

    asyncio.run(run())
