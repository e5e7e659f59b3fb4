"""Device profiles and accelerator requests over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.neighbour_app import NeighbourApp, neighbour_app

PROFILES = "/v2/device_profiles"
ARQS = "/v2/accelerator_requests"
GROUPS = [{"resources:FPGA": "2", "trait:CUSTOM_ARRIA10": "required"}, {"resources:PGPU": "1"}]


def run(url: str, test: Callable[[NeighbourApp], Awaitable[None]]) -> None:
    async def running() -> None:
        async with neighbour_app(url) as app:
            await test(app)

    asyncio.run(running())


def binding(host: str, provider: str, instance: str) -> list[dict[str, str]]:
    values = {"/hostname": host, "/device_rp_uuid": provider, "/instance_uuid": instance}
    return [{"path": path, "op": "add", "value": value} for path, value in values.items()]


def test_requests_of_a_profile_are_bound_and_give_their_devices_back(database_url: str) -> None:
    async def test(app: NeighbourApp) -> None:
        await app.made(PROFILES, [{"name": "both", "groups": GROUPS}])
        made = await app.made(ARQS, {"device_profile_name": "both"})
        assert [each["device_profile_group_id"] for each in made] == [0, 0, 1]
        assert {each["state"] for each in made} == {"Initial"}
        body = {arq["uuid"]: binding("a", "p", "i") for arq in made[:2]}
        assert (await app.http.patch(ARQS, json=body)).status_code == 202
        # Once more changes nothing.
        assert (await app.http.patch(ARQS, json=body)).status_code == 202
        bound = await app.arqs(instance="i", bind_state="resolved")
        assert {each["state"] for each in bound} == {"Bound"}
        assert {each["attach_handle_info"]["device"] for each in bound} == {"0", "1"}
        taken = await app.http.patch(ARQS, json={made[0]["uuid"]: binding("b", "p", "other")})
        assert taken.status_code == 409
        assert (await app.http.delete(ARQS, params={"arqs": made[0]["uuid"]})).status_code == 204
        fresh = await app.http.patch(ARQS, json={made[2]["uuid"]: binding("a", "p", "other")})
        assert fresh.status_code == 202
        [other] = await app.arqs(instance="other")
        [left] = await app.arqs(instance="i")
        numbers = {each["attach_handle_info"]["device"] for each in (other, left)}
        assert numbers == {"0", "1"}
        assert (await app.http.delete(ARQS, params={"instance": "i"})).status_code == 204
        assert await app.arqs(instance="i") == []

    run(database_url, test)


def test_all_of_a_patch_is_carried_out_or_nothing(database_url: str) -> None:
    async def test(app: NeighbourApp) -> None:
        await app.made(PROFILES, [{"name": "both", "groups": GROUPS}])
        made = await app.made(ARQS, {"device_profile_name": "both"})
        missing = "ffffffff-ffff-ffff-ffff-ffffffffffff"
        body = {made[0]["uuid"]: binding("a", "p", "i"), missing: binding("a", "p", "i")}
        refused = await app.http.patch(ARQS, json=body)
        assert (refused.status_code, missing in refused.json()["faultstring"]) == (404, True)
        assert await app.arqs(instance="i") == []

    run(database_url, test)


def test_profiles_have_names_of_their_own_and_stay_while_they_are_used(database_url: str) -> None:
    async def test(app: NeighbourApp) -> None:
        profile = await app.made(PROFILES, [{"name": "gpu", "groups": [{"resources:PGPU": "1"}]}])
        again = await app.http.post(PROFILES, json=[{"name": "gpu", "groups": [{"resources:PGPU": "1"}]}])
        assert (again.status_code, "gpu" in again.json()["faultstring"]) == (409, True)
        [arq] = await app.made(ARQS, {"device_profile_name": "gpu"})
        path = f"{PROFILES}/{profile['uuid']}"
        assert (await app.http.delete(path)).status_code == 409
        await app.http.delete(ARQS, params={"arqs": arq["uuid"]})
        assert (await app.http.delete(path)).status_code == 204
        # Its name is free then.
        await app.made(PROFILES, [{"name": "gpu", "groups": [{"resources:PGPU": "1"}]}])

    run(database_url, test)


@pytest.mark.parametrize(
    ("groups", "named"),
    [
        ([], "at least 1 entry"),
        ([{"color": "red"}], "color"),
        ([{"resources:FPGA": "many"}], "many"),
        ([{"resources:FPGA": "0"}], "resources:FPGA"),
        ([{"trait:CUSTOM_A": "perhaps"}], "perhaps"),
    ],
)
def test_wrong_profiles_are_refused(tmp_path, groups: object, named: str) -> None:
    async def test(app: NeighbourApp) -> None:
        answer = await app.http.post(PROFILES, json=[{"name": "p", "groups": groups}])
        assert (answer.status_code, named in answer.json()["faultstring"]) == (400, True)
        unknown = await app.http.post(ARQS, json={"device_profile_name": "p"})
        assert unknown.status_code == 404

    run(f"sqlite:///{tmp_path / 'near.db'}", test)
