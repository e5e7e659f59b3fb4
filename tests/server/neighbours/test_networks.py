"""Networks, pools of addresses and ports over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.neighbour_app import NeighbourApp, neighbour_app

NONE = "00000000-0000-0000-0000-000000000000"


def run(url: str, test: Callable[[NeighbourApp], Awaitable[None]]) -> None:
    async def running() -> None:
        async with neighbour_app(url) as app:
            await test(app)

    asyncio.run(running())


def test_addresses_run_out_and_come_back(database_url: str) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/30")
        body = {"port": {"network_id": network}}
        # Of the four addresses one is the network's, one the gateway's, one the broadcast.
        first = await app.made("/v2.0/ports", body)
        assert [each["ip_address"] for each in first["fixed_ips"]] == ["192.0.2.2"]
        refused = await app.http.post("/v2.0/ports", json=body)
        assert refused.status_code == 409
        error = refused.json()["NeutronError"]
        assert error["type"] == "IpAddressGenerationFailure"
        assert error["message"] == f"No more IP addresses available on network {network}."
        assert len(await app.ports()) == 1
        assert (await app.http.delete(f"/v2.0/ports/{first['id']}")).status_code == 204
        again = await app.made("/v2.0/ports", body)
        assert again["fixed_ips"][0]["ip_address"] == "192.0.2.2"

    run(database_url, test)


def test_no_two_ports_that_are_made_at_once_have_one_address(database_url: str) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/24", start="192.0.2.10", end="192.0.2.19")
        body = {"port": {"network_id": network}}
        answers = await asyncio.gather(*(app.http.post("/v2.0/ports", json=body) for _ in range(15)))
        assert sorted(each.status_code for each in answers) == [201] * 10 + [409] * 5
        found = [port["fixed_ips"][0]["ip_address"] for port in await app.ports()]
        assert sorted(found) == [f"192.0.2.{number}" for number in range(10, 20)]

    run(database_url, test)


def test_second_subnet_serves_when_the_first_is_full_and_each_version_has_an_address(
    database_url: str,
) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/24", start="192.0.2.9", end="192.0.2.9")
        for cidr in ("198.51.100.0/30", "2001:db8::/112"):
            await app.made("/v2.0/subnets", {"subnet": {"network_id": network, "cidr": cidr}})
        made = [await app.made("/v2.0/ports", {"port": {"network_id": network}}) for _ in range(2)]
        found = [[each["ip_address"] for each in port["fixed_ips"]] for port in made]
        fours = {four for four, _ in found}
        assert fours == {"192.0.2.9", "198.51.100.2"}
        assert [six for _, six in found] == ["2001:db8::2", "2001:db8::3"]

    run(database_url, test)


def test_port_changes_only_as_it_was_seen(database_url: str) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network()
        port = await app.made("/v2.0/ports", {"port": {"network_id": network}})
        path, body = f"/v2.0/ports/{port['id']}", {"port": {"binding:host_id": "a"}}
        seen = {"if-match": f"revision_number={port['revision_number']}"}
        assert (await app.http.put(path, json=body, headers=seen)).json()["port"]["binding:host_id"] == "a"
        late = await app.http.put(path, json={"port": {"binding:host_id": "b"}}, headers=seen)
        assert late.status_code == 412
        assert late.json()["NeutronError"]["type"] == "RevisionNumberConstraintFailed"
        assert (await app.http.delete(path, headers=seen)).status_code == 412
        assert (await app.http.get(path)).json()["port"]["binding:host_id"] == "a"

    run(database_url, test)


def test_what_is_used_is_not_removed(database_url: str) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/24")
        [subnet] = (await app.http.get("/v2.0/subnets")).json()["subnets"]
        port = await app.made("/v2.0/ports", {"port": {"network_id": network}})
        for path in (f"/v2.0/networks/{network}", f"/v2.0/subnets/{subnet['id']}"):
            assert (await app.http.delete(path)).status_code == 409
        for path in (f"/v2.0/ports/{port['id']}", f"/v2.0/subnets/{subnet['id']}"):
            assert (await app.http.delete(path)).status_code == 204
        assert (await app.http.delete(f"/v2.0/networks/{network}")).status_code == 204
        assert (await app.http.get(f"/v2.0/networks/{network}")).status_code == 404

    run(database_url, test)


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        ("subnets", {"subnet": {"network_id": NONE, "cidr": "192.0.2.0/24"}}, 404, NONE),
        ("subnets", {"subnet": {"network_id": NONE, "cidr": "192.0.2.1/24"}}, 400, "192.0.2.1/24"),
        ("subnets", {"subnet": {"network_id": NONE, "cidr": "10.0.0.0/8"}}, 400, "10.0.0.0/8"),
        ("ports", {"port": {"network_id": NONE}}, 404, NONE),
        ("ports", {"port": {"network_id": NONE, "qos_policy_id": "q"}}, 400, "qos_policy_id"),
        ("ports", {"port": {"network_id": "n"}}, 400, "network_id"),
        ("ports", {"port": {"network_id": NONE, "mac_address": "02:00"}}, 400, "mac_address"),
        ("networks", {"network": {"id": NONE}}, 400, NONE),
    ],
)
def test_wrong_bodies_are_refused(
    tmp_path, path: str, body: dict[str, object], status: int, named: str
) -> None:
    async def test(app: NeighbourApp) -> None:
        answer = await app.http.post(f"/v2.0/{path}", json=body)
        assert (answer.status_code, named in answer.json()["NeutronError"]["message"]) == (status, True)
        assert (await app.http.get(f"/v2.0/{path}")).json() == {path: []}

    run(f"sqlite:///{tmp_path / 'near.db'}", test)


def test_only_those_with_the_role_are_served(tmp_path) -> None:
    async def test(app: NeighbourApp) -> None:
        answer = await app.http.get("/v2.0/ports", headers={"x-auth-token": "somebody"})
        assert answer.status_code == 403
        assert (await app.http.get("/v2.0/ports?color=red")).status_code == 400

    run(f"sqlite:///{tmp_path / 'near.db'}", test)
