"""What the audit tells of hosts and aggregates in placement."""

import asyncio
from typing import Any

import httpx
import sqlalchemy as sa

from conductor.audit.test_over_http import PATH, run_round
from roost.conductor.audit.places import LEFT_PROVIDER, MISSING_PROVIDER, WRONG_AGGREGATE
from roost.conductor.audit.rounds import audit_tenure
from roost.model.names import provider_uuid
from roost.model.vocabulary import SHARING_TRAIT
from roost.state.cell_database.tables import nodes
from roost.state.leases import LeaseTimes, Tenure
from support.conducting import Conductors
from support.conductor_api import ADMIN, api

OTHERS = "11111111-1111-4111-8111-111111111111"


async def findings(now: Conductors, client: httpx.AsyncClient, tenure: Tenure) -> list[dict[str, Any]]:
    """What a round finds of places."""
    await run_round(now, tenure)
    found = (await client.get(PATH, headers=ADMIN)).json()["findings"]
    return [each for each in found if each["kind"] in (LEFT_PROVIDER, MISSING_PROVIDER, WRONG_AGGREGATE)]


def test_all_providers_are_where_they_belong(tmp_path) -> None:
    async def run() -> None:
        tenure = audit_tenure("here", LeaseTimes())
        async with api(tmp_path) as (now, client):
            # A host of another program, and a pool that agents have made.
            await now.placement.ensure_provider(OTHERS, "compute-1")
            await now.placement.ensure_provider(provider_uuid("storage"), "storage")
            await now.placement.set_traits(provider_uuid("storage"), [SHARING_TRAIT])
            assert await findings(now, client, tenure) == []

    asyncio.run(run())


def test_provider_of_a_host_that_no_cell_has_is_left_over(tmp_path) -> None:
    async def run() -> None:
        tenure = audit_tenure("here", LeaseTimes())
        async with api(tmp_path) as (now, client):
            root = provider_uuid("gone")
            await now.placement.ensure_provider(root, "gone")
            await now.placement.ensure_provider(provider_uuid("gone-gpu"), "gone-gpu", root)
            [found] = await findings(now, client, tenure)
            assert (found["kind"], found["subject"], found["action"]) == (LEFT_PROVIDER, root, None)
            assert "gone and 1 below it" in found["detail"]
            # It was added to a cell since, and its agent has not reported yet.
            body = {"cell": "cell1", "hosts": ["gone"]}
            answer = await client.post("/v1/hosts", json=body, headers=ADMIN)
            assert answer.is_success, answer.text
            assert await findings(now, client, tenure) == []

    asyncio.run(run())


def test_node_without_its_provider_and_node_in_wrong_aggregates_are_told(tmp_path) -> None:
    async def run() -> None:
        tenure = audit_tenure("here", LeaseTimes())
        async with api(tmp_path) as (now, client):
            made = await client.post("/v1/aggregates", json={"name": "rack"}, headers=ADMIN)
            aggregate = made.json()["uuid"]
            [cell] = [each for each in now.cells.values() if each.name == "cell1"]
            there = await cell.read(
                lambda connection: connection.execute(sa.select(nodes.c.node)).scalars().all()
            )
            node = sorted(there)[0]
            await now.placement.set_aggregates(node, [aggregate, OTHERS])
            [found] = await findings(now, client, tenure)
            assert (found["kind"], found["subject"]) == (WRONG_AGGREGATE, node)
            assert found["detail"] == f"placement has it in {aggregate}", found
            assert "mirror" in found["waits_for"]
            await now.placement.delete_provider(node)
            [found] = await findings(now, client, tenure)
            assert (found["kind"], found["subject"]) == (MISSING_PROVIDER, node)
            assert "cell cell1" in found["detail"]

    asyncio.run(run())
