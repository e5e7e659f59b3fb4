"""Requested and forced hosts, networks and ports in a request for instances over HTTP."""

import asyncio
from typing import Any

import pytest

from roost.model.request import RequestGroup, all_of
from roost.model.spec import RequestedDestination, RequestedNetwork, RequestSpec, UnreadKey
from support.conductor_api import ADMIN, FLAVOR, TOKEN, api, detail, hold

PORT = "1f0e5d3c-0000-4000-8000-00000000000a"
BANDWIDTH = {
    "request_groups": [
        {"id": "bw", "required": ["CUSTOM_PHYSNET_0"], "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}},
        {"id": "pps", "resources": {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 1}},
    ],
    "same_subtree": ["bw", "pps"],
}


def spec_of(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any]) -> RequestSpec:
    """The request spec that an administrator's request is stored with."""
    found: list[RequestSpec] = []

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            go = hold(now, monkeypatch)

            async def unchecked(spec: RequestSpec) -> tuple[UnreadKey, ...]:
                return ()  # The hosts and devices of these requests are not there.

            monkeypatch.setattr(now.scheduler, "check_request", unchecked)
            answer = await client.post("/v1/instances", json={"flavor": FLAVOR, **body}, headers=ADMIN)
            assert answer.status_code == 202, answer.text
            found.extend([each.spec async for each in now.requests.waiting()])
            go.set()
            await now.arrive()

    asyncio.run(run())
    [spec] = found
    return spec


def test_networks_and_ports_reach_the_spec(tmp_path, monkeypatch) -> None:
    networks = [
        {"network_id": "net", "segments": ["s1", "s2"]},
        {"port_id": PORT, "remote_managed": True, "resource_request": BANDWIDTH},
    ]
    spec = spec_of(tmp_path, monkeypatch, {"networks": networks})
    assert spec.requested_networks == (
        RequestedNetwork(network_id="net", segments=("s1", "s2")),
        RequestedNetwork(port_id=PORT, remote_managed=True),
    )
    assert spec.requested_resources == (
        RequestGroup({"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, "bw", all_of("CUSTOM_PHYSNET_0")),
        RequestGroup({"NET_PACKET_RATE_KILOPACKET_PER_SEC": 1}, "pps"),
    )
    assert spec.same_subtree == (frozenset({"bw", "pps"}),)


def test_ports_with_devices_reach_the_spec(tmp_path, monkeypatch) -> None:
    networks = [
        {"port_id": PORT, "vnic_type": "remote-managed", "physical_network": "net", "trusted": True},
        {"port_id": "p", "vnic_type": "accelerator-direct", "device_profile": "fpga"},
    ]
    spec = spec_of(tmp_path, monkeypatch, {"networks": networks})
    assert spec.requested_networks == (
        RequestedNetwork(port_id=PORT, remote_managed=True),
        RequestedNetwork(port_id="p", device_profile="fpga"),
    )
    [request] = spec.pci_requests
    assert request.id == PORT
    assert request.specs == ({"physical_network": "net", "remote_managed": "True", "trusted": "True"},)


def test_requested_and_forced_places_reach_the_spec(tmp_path, monkeypatch) -> None:
    requested = spec_of(tmp_path / "1", monkeypatch, {"requested_host": "a", "requested_node": "n"})
    assert requested.requested_destination == RequestedDestination(host="a", node="n")
    forced = spec_of(tmp_path / "2", monkeypatch, {"forced_host": "b", "forced_node": "n"})
    assert (forced.force_hosts, forced.force_nodes) == (("b",), ("n",))
    assert forced.requested_destination is None


def test_places_are_for_administrators(tmp_path) -> None:
    """No filter judges a forced host: here one that is disabled."""

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            for key, rule in (
                ("requested_host", "requested_destination"),
                ("requested_node", "requested_destination"),
                ("forced_host", "forced_host"),
                ("forced_node", "forced_host"),
            ):
                body = {"flavor": FLAVOR, key: "c"}
                refused = await client.post("/v1/instances", json=body, headers=TOKEN)
                assert refused.status_code == 403
                assert f"conductor:instances:create:{rule} " in detail(refused)
            assert [each async for each in now.requests.waiting()] == []
            table = now.scheduler.table
            index = table.hosts.index("c")
            table.enabled[index] = False
            hosts = []
            for key in ("requested_host", "forced_host"):
                body = {"flavor": FLAVOR, key: "c"}
                [uuid] = (await client.post("/v1/instances", json=body, headers=ADMIN)).json()["instances"]
                await now.settle()
                hosts.append((await client.get(f"/v1/instances/{uuid}", headers=ADMIN)).json()["host"])
            assert hosts == [None, "c"]

    asyncio.run(run())


BAD: list[tuple[dict[str, Any], str]] = [
    ({"forced_host": "a", "requested_host": "b"}, "requested and forced at once"),
    ({"forced_host": ""}, "forced_host"),
    ({"networks": [{}]}, "a network_id, a port_id or both"),
    ({"networks": [{"network_id": "net", "remote_managed": True}]}, "network net: only a port"),
    ({"networks": [{"network_id": "net", "resource_request": BANDWIDTH}]}, "network net: only a port"),
    (
        {"networks": [{"network_id": "net", "vnic_type": "direct"}]},
        "network net: only a port has a vnic_type",
    ),
    ({"networks": [{"network_id": "net", "trusted": True}]}, "network net: only a port has trusted"),
    ({"networks": [{"port_id": "p", "vnic_type": "fast"}]}, "vnic_type"),
    ({"networks": [{"port_id": "p", "vnic_type": "accelerator-direct"}]}, "device_profile go together"),
    ({"networks": [{"port_id": "p", "device_profile": "fpga"}]}, "device_profile go together"),
    ({"networks": [{"port_id": PORT}], "count": 2}, f"port {PORT} is of one instance, not of 2"),
    ({"networks": [{"port_id": PORT}] * 2}, f"port {PORT} is of one instance, not of 2"),
    (
        {"networks": [{"port_id": port, "resource_request": BANDWIDTH} for port in "ab"]},
        "2 request groups of ports have the id bw",
    ),
    (
        {"networks": [{"port_id": "p", "resource_request": {**BANDWIDTH, "same_subtree": ["x"]}}]},
        "same_subtree names x",
    ),
    (
        {"networks": [{"port_id": "p", "resource_request": {"request_groups": [{"id": "a b"}]}}]},
        "request_groups[0].id",
    ),
]


def test_bad_places_are_refused_with_the_value(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            for body, words in BAD:
                refused = await client.post("/v1/instances", json={"flavor": FLAVOR, **body}, headers=ADMIN)
                assert refused.status_code == 400, body
                assert words in detail(refused), (body, detail(refused))
            assert [each async for each in now.requests.waiting()] == []

    asyncio.run(run())
