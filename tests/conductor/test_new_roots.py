"""The roots of trees that an agent may make through its endpoint."""

import asyncio

import pytest

from roost.agents.errors import AccessRefused
from roost.agents.questions import Opening, Poll, WriteProviders
from roost.agents.types import CreateProvider
from roost.model.node import NodeReport
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
