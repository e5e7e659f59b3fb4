"""Moves of instances with ports and accelerators over HTTP."""

import asyncio

from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.sessions import OpenSession, SessionOpened, close_session
from roost.conductor.neighbours import Neighbours
from roost.model.move import has_attachments
from roost.model.request import RequestGroup
from roost.model.service_version import ATTACHED_MOVES, ATTACHMENTS
from roost.model.spec import Flavor, RequestSpec
from roost.state.cell_database.moves import read_all_moves, with_flavor
from support.conductor_api import ADMIN, FLAVOR, api, detail
from support.neighbour_app import neighbour_app

PROFILE = "accel:device_profile"


def test_instances_with_ports_move_once_all_processes_know_how_and_a_new_flavor_has_its_devices(
    tmp_path,
) -> None:
    async def run() -> None:
        async with (
            neighbour_app(f"sqlite:///{tmp_path / 'near.db'}") as app,
            api(tmp_path, Neighbours(app.api(), app.api())) as (now, client),
        ):
            await app.made("/v2/device_profiles", [{"name": "one", "groups": [{"resources:FPGA": "1"}]}])
            asked = {"flavor": FLAVOR, "networks": [{"network_id": await app.network("192.0.2.0/24")}]}
            with_port = (await client.post("/v1/instances", json=asked)).json()["instances"][0]
            plain = (await client.post("/v1/instances", json={"flavor": FLAVOR})).json()["instances"][0]
            await now.settle()
            cell = await now.cell_of(with_port)
            old = OpenSession(
                host="old", nonce="n", previous=(), service_version=ATTACHED_MOVES.since - 1, at=1.0
            )
            opened = await cell.write(old)
            assert isinstance(opened, SessionOpened)
            await now.super.watch.look()
            sized = {"flavor": {**FLAVOR, "extra_specs": {PROFILE: "one"}}}
            for path, body in (
                (f"/v1/instances/{with_port}/migrate", {}),
                (f"/v1/instances/{plain}/resize", sized),
            ):
                refused = await client.post(path, json=body, headers=ADMIN)
                assert (refused.status_code, detail(refused)) == (
                    409,
                    "instances with ports or accelerators move once all processes have version "
                    f"{ATTACHED_MOVES.since}",
                )
            await cell.write(close_session(SessionKey("old", "n", opened.epoch)))
            await now.super.watch.look()
            moved = await client.post(f"/v1/instances/{with_port}/migrate", json={}, headers=ADMIN)
            assert moved.status_code == 202, moved.text
            unknown = {"flavor": {**FLAVOR, "extra_specs": {PROFILE: "none"}}}
            wrong = await client.post(f"/v1/instances/{plain}/resize", json=unknown, headers=ADMIN)
            assert (wrong.status_code, "'none' is none of the device profiles" in detail(wrong)) == (
                400,
                True,
            )
            resized = await client.post(f"/v1/instances/{plain}/resize", json=sized, headers=ADMIN)
            assert resized.status_code == 202, resized.text
            of_plain = await now.cell_of(plain)
            move = (await of_plain.read(read_all_moves()))[resized.json()["uuid"]]
            assert [each.suffix for each in move.spec.requested_resources] == ["device_profile_0"]
            assert has_attachments(move.spec) and not has_attachments(move.source.spec)

    asyncio.run(run())


def test_a_new_flavor_takes_the_groups_of_the_former_one_away_and_leaves_those_of_ports() -> None:
    def group(suffix: str) -> RequestGroup:
        return RequestGroup({"FPGA": 1}, suffix)

    port = "11111111-1111-1111-1111-111111111111"
    before = RequestSpec(
        project_id="p",
        user_id="u",
        flavor=Flavor("f", 1, 1, extra_specs={PROFILE: "one"}),
        requested_resources=(group("device_profile_0"), group(f"device_profile_0{port}"), group(port)),
        needs_version=ATTACHMENTS.since,
    )
    plain, other = Flavor("plain", 1, 1), (group("device_profile_0"), group("device_profile_1"))
    of_ports = before.requested_resources[1:]
    assert with_flavor(before, plain, None).requested_resources == of_ports
    assert with_flavor(before, plain, other).requested_resources == (*of_ports, *other)
    assert has_attachments(with_flavor(before, plain, None))
