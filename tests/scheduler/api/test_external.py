"""``/v1/nova/external``: the hosts of a fork of Nova in Roost's order."""

import asyncio
from pathlib import Path
from typing import Any

import httpx

from roost.scheduler import SchedulerOptions
from support.clouds import NOW, Cloud, flat, report, uuid_of
from support.nova_specs import made, request_spec
from support.scheduling_api import SchedulingApi, scheduling


def uneven() -> Cloud:
    """Four hosts: each has more memory than the one before; the last does not report."""
    cloud = flat(4)
    for number, provider in enumerate(cloud.providers):
        memory = provider.inventories["MEMORY_MB"]
        provider.inventories["MEMORY_MB"] = type(memory)(memory.total + 1024 * number)
    silent = report("host3", uuid_of(3), last_seen=NOW - 1000)
    return Cloud(cloud.providers, [*cloud.reports[:3], silent])


def asked(folder: Path, *names: str, cloud: Cloud | None = None, **body: Any) -> httpx.Response:
    """The response to a fork of Nova that has found some hosts."""
    sent = {
        "spec": request_spec(),
        "context": {"user": "user", "project_id": "project"},
        "hosts": [{"host": name, "hypervisor_hostname": f"{name}.example"} for name in names],
        "weights": dict.fromkeys(names, 1.0),
        "rebuild": False,
        "resize": False,
        "live": False,
        "vmware": False,
        **body,
    }

    async def main() -> httpx.Response:
        async with scheduling(folder, cloud or uneven(), SchedulerOptions()) as api:
            response = await api.client.post("/v1/nova/external", json=sent)
            await unchanged(api)
            return response

    return asyncio.run(main())


async def unchanged(api: SchedulingApi) -> None:
    """Nothing is claimed or recorded, and nothing counts as claimed."""
    assert api.held() == {}
    assert not api.service.scheduler.table.outstanding
    runs = await api.client.get("/v1/scheduler/records")
    assert runs.json()["records"] == []


def test_the_best_host_is_first_and_no_host_is_lost(tmp_path: Path) -> None:
    response = asked(tmp_path, "host3", "host0", "host2", "nobody", "host1")
    assert response.status_code == 200
    assert response.json() == {"hosts": ["host2", "host1", "host0", "host3", "nobody"]}


def test_equal_hosts_stay_in_novas_order(tmp_path: Path) -> None:
    response = asked(tmp_path, "host2", "host0", "host1", cloud=flat(3))
    assert response.json() == {"hosts": ["host2", "host0", "host1"]}


def test_a_rebuild_stays_as_it_is(tmp_path: Path) -> None:
    there = made("Destination", "1.4", host="host1", node=None, cell=None)
    hints = {"_nova_check_type": ["rebuild"]}
    spec = request_spec(scheduler_hints=hints, requested_destination=there)
    response = asked(tmp_path, "host1", "host2", spec=spec)
    assert response.json() == {"hosts": ["host1", "host2"]}


def test_no_hosts(tmp_path: Path) -> None:
    assert asked(tmp_path).json() == {"hosts": []}


def test_a_request_spec_that_cannot_be_read(tmp_path: Path) -> None:
    response = asked(tmp_path, "host1", spec={"nova_object.name": "Nothing"})
    assert response.status_code == 400


def test_it_is_for_services(tmp_path: Path) -> None:
    async def main() -> int:
        async with scheduling(tmp_path, flat(1)) as api:
            member = {"x-auth-token": "user:project", "x-roles": "member"}
            body = {"spec": request_spec(), "hosts": []}
            response = await api.client.post("/v1/nova/external", json=body, headers=member)
            return response.status_code

    assert asyncio.run(main()) == 403


def test_the_outstanding_claim_of_the_instance_stays(tmp_path: Path) -> None:
    instance = uuid_of(0xA0)

    async def main() -> None:
        async with scheduling(tmp_path, uneven(), SchedulerOptions()) as api:
            table = api.service.scheduler.table
            index = table.index_of_node(uuid_of(0))
            assert index is not None
            table.claim(instance, index, 512, 1024)
            table.built(instance)
            before = table.outstanding.of(instance)
            # Of a request that finds a host, and of one that finds none.
            for memory in (512, 10**9):
                flavor = made("Flavor", "1.2", name="f", vcpus=1, memory_mb=memory, root_gb=1, ephemeral_gb=0,
                    swap=0, extra_specs={}, flavorid="1", is_public=True)  # fmt: skip
                sent = {"spec": request_spec(flavor=flavor, instance_uuid=instance), "hosts": []}
                together = [api.client.post("/v1/nova/external", json=sent) for _ in range(3)]
                for response in await asyncio.gather(*together):
                    assert response.status_code == 200
                assert table.outstanding.of(instance) == before

    asyncio.run(main())
