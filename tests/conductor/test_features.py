"""Features that processes of earlier versions do not know wait until all do, and never run without it."""

import asyncio
from itertools import count
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from roost.agent.protocol.questions import Opening, Poll
from roost.agent.protocol.types import Build, SessionKey
from roost.conductor.agent_endpoint.host_orders import work_for
from roost.conductor.agent_endpoint.sessions import OpenSession, SessionOpened, close_session
from roost.conductor.neighbours import Neighbours
from roost.model.instance import BuildResult, PowerResult, Requester
from roost.model.move import MoveWork
from roost.model.service_version import ATTACHMENTS, SERVICE_VERSION
from roost.model.spec import Flavor, RequestSpec
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.host_work import HostWork
from roost.state.cell_database.power import report_power, switch_power
from roost.state.leases import AcquireLease
from support.cells import instance
from support.conductor_api import ADMIN, FLAVOR, api, detail
from support.neighbour_app import neighbour_app
from support.served_agents import served

USER = Requester("u", "p", "req-1")
STOPPED = [PowerResult("i", 1, runs=False)]
NEEDING = RequestSpec(project_id="p", user_id="u", flavor=Flavor("f", 1, 1), needs_version=ATTACHMENTS.since)


def test_request_waits_for_the_last_old_agent(tmp_path) -> None:
    async def run() -> None:
        async with (
            neighbour_app(f"sqlite:///{tmp_path / 'near.db'}") as app,
            api(tmp_path, Neighbours(app.api(), app.api())) as (now, client),
        ):
            plain, cell = {"flavor": FLAVOR}, now.cells["cell1"]
            on_network = {**plain, "networks": [{"network_id": await app.network("192.0.2.0/24")}]}
            sessions = {}
            for number in range(5):
                opening = OpenSession(
                    host=f"old-{number}", nonce=f"n{number}", previous=(), service_version=1, at=1.0
                )
                opened = await cell.write(opening)
                assert isinstance(opened, SessionOpened)
                sessions[opening.host] = SessionKey(opening.host, opening.nonce, opened.epoch)
            # The task of a process is no process.
            task = AcquireLease(name="audit", kind="audit", holder="n0", host="", service_version=1, now=1.0)
            await now.requests.database.write(task)
            await now.super.watch.look()
            refused = await client.post("/v1/instances", json=on_network)
            assert (refused.status_code, detail(refused)) == (
                409,
                "ports and accelerators are attached to guests once all processes have service version 2: "
                "the agent of host old-0 of cell cell1 has 1, the agent of host old-1 of cell cell1 has 1, "
                "the agent of host old-2 of cell cell1 has 1 and 2 more; see GET /v1/services",
            )
            assert refused.json()["errors"][0]["code"] == "roost.feature_off"
            feature, *_ = (await client.get("/v1/services", headers=ADMIN)).json()["features"]
            assert (feature["name"], feature["since"], feature["held_back_by"]) == ("attachments", 2, 5)
            # What the others do goes on.
            assert (await client.post("/v1/instances", json=plain)).status_code == 202
            # Those that are down do not count, nor those that are new.
            for host, key in sessions.items():
                await cell.write(close_session(key))
                if host == "old-0":
                    new = OpenSession(
                        host=host, nonce="new", previous=(), service_version=SERVICE_VERSION, at=2.0
                    )
                    await cell.write(new)
            await now.super.watch.look()
            accepted = await client.post("/v1/instances", json=on_network)
            assert accepted.status_code == 202, accepted.text
            feature, *_ = (await client.get("/v1/services", headers=ADMIN)).json()["features"]
            assert feature["held_back_by"] == 0
            await now.arrive()
            [uuid] = accepted.json()["instances"]
            spec = (await now.instances())[uuid].spec
            assert spec is not None
            assert spec.needs_version == 2

    asyncio.run(run())


def test_without_neighbours_no_version_matters(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            opening = OpenSession(host="old", nonce="n", previous=(), service_version=0, at=1.0)
            await now.cells["cell1"].write(opening)
            await now.super.watch.look()
            networks = [{"network_id": "somewhere"}]
            answer = await client.post("/v1/instances", json={"flavor": FLAVOR, "networks": networks})
            assert answer.status_code == 202, answer.text

    asyncio.run(run())


def test_agent_that_comes_back_old_stops_and_starts_nothing(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as server:
            cell = server.world.cell
            client = server.client(await server.token("a"))
            opened = await client.ask(Opening(host="a", nonce="1", service_version=3))
            await cell.add([instance("i")])
            await cell.report([BuildResult("i", "a", 1)])
            polls = count(1)
            for runs, state, after in ((False, "stopped", "active"), (True, "started", "lost")):
                await cell.write(switch_power(instance="i", runs=runs, by=USER, at=1.0))
                for _ in range(200):
                    poll = Poll(
                        session=opened.session, counter=next(polls), service_version=3, wait_seconds=5.0
                    )
                    assert (await client.ask(poll)).orders == ()
                    there = (await cell.find(["i"]))["i"]
                    if there.state == after:
                        break
                why = "the agent of its host has service version 3, and this needs 4"
                assert (there.state, there.reason) == (after, f"the guest could not be {state}: {why}")
                if not runs:
                    # As if it had been stopped.
                    await cell.write(switch_power(instance="i", runs=False, by=USER, at=1.0))
                    await cell.write(lambda connection: report_power(connection, "a", STOPPED, 1.0))

    asyncio.run(run())


@pytest.mark.parametrize(("version", "refused", "left"), [(4, True, 0), (4, False, 1), (5, True, 1)])
def test_agent_that_starts_all_guests_builds_none_that_is_to_be_stopped(version, refused, left) -> None:
    """A target that was told to start it builds it as any version does: it is stopped afterwards."""
    stopped = MoveWork("build", msgspec.structs.replace(instance("i", attempt=2), starts=False))

    class Context:
        async def write(self, database: str, work: Any) -> Any:
            return [SimpleNamespace(instance="i")] if refused else []

        def record(self, runs: Any, ended: Any) -> None:
            """Nothing is recorded."""

        def clock(self) -> float:
            return 1.0

    found = asyncio.run(work_for(Context(), "cell/c", "c", HostWork([], [], [stopped]), version))  # type: ignore[arg-type]
    assert len(found.moves) == left


def test_agent_that_comes_back_old_is_passed_over(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as server:
            client = server.client(await server.token("a"))
            opened = await client.ask(Opening(host="a", nonce="1", service_version=1))
            await server.world.cell.add([instance("new", spec=NEEDING, alternates="b"), instance("plain")])
            answer = await client.ask(Poll(session=opened.session, counter=1))
            assert [order.key for order in answer.orders if isinstance(order, Build)] == [("plain", 1)]
            there = (await server.world.cell.find(["new"]))["new"]
            [attempt] = await server.world.cell.read(ended_attempts_of("new"))
            assert (there.state, attempt.code) == ("failed", "AgentTooOld")
            assert attempt.reason == "the agent of host a has service version 1, and this needs 2"
            # Today's gets it.
            await server.world.cell.add([instance("next", spec=NEEDING)])
            found: set[tuple[str, int]] = set()
            for counter in range(2, 200):
                today = Poll(
                    session=opened.session,
                    counter=counter,
                    service_version=SERVICE_VERSION,
                    wait_seconds=5.0,
                    building=(("plain", 1),),
                )
                found = {order.key for order in (await client.ask(today)).orders}
                if found:
                    break
            assert found == {("next", 1)}

    asyncio.run(run())
