"""A replay over HTTP: the same requests through the conductor's API, many instances in one."""

import asyncio
from pathlib import Path

import httpx
import pytest

from roost.bench.errors import ReplayError
from roost.bench.replay.remote import RemoteReplay, alike, body_of
from roost.bench.replay.runner import layout_of
from roost.bench.replay.workload import Bin, Host, Workload, WorkloadHostTree, WorkloadRequest, into_bins
from roost.conductor.http import create_app
from roost.conductor.instances.types import MOST_AT_ONCE, WantedInstances
from roost.model.request import RequestGroup, all_of
from roost.model.spec import Flavor
from roost.web.auth import NoAuth
from roost.web.auth.credentials import Caller, FixedCredentials
from support.systems import opened_system

HOSTS = tuple(Host(f"host-{number}", WorkloadHostTree({"VCPU": 8, "MEMORY_MB": 4096})) for number in range(2))


class LosesFirst(httpx.ASGITransport):
    """The way to a conductor, on which the first answer to each request of a kind is lost."""

    lost: frozenset[str] = frozenset()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if request.method not in self.lost:
            self.lost |= {request.method}
            raise httpx.ReadError("lost")
        return answer


def asked(at: int, *lifetimes: int | None, vcpus: int = 1, **more: object) -> WorkloadRequest:
    return WorkloadRequest(at, "project", Flavor(f"v{vcpus}", vcpus, 256), lifetimes, **more)


def test_requests_for_equal_instances_are_one_request() -> None:
    apart = asked(2, None, None, group_policy="anti-affinity")
    bin_ = Bin(0, (asked(0, 5), asked(1, 6, vcpus=2), asked(2, 7, 8), apart, apart))
    first, second, third, fourth = alike(bin_)
    assert first == [bin_.requests[0], bin_.requests[2]]
    assert (second, third, fourth) == ([bin_.requests[1]], [apart], [apart])
    assert body_of(first)["count"] == 3
    groups = [body_of(each)["group"] for each in (third, fourth)]
    assert groups[0] != groups[1]


def test_a_request_has_no_more_instances_than_the_api_takes() -> None:
    many = asked(0, *[None] * 600)
    assert [sum(each.count for each in group) for group in alike(Bin(0, (many, many, many)))] == [600] * 3
    few = asked(0, *[None] * (MOST_AT_ONCE // 2))
    assert [len(group) for group in alike(Bin(0, (few, few, few)))] == [2, 1]


def test_request_groups_cannot_be_asked_for_over_http() -> None:
    group = RequestGroup({"VGPU": 1}, "1", all_of())
    work = Workload("test", HOSTS, into_bins([asked(0, None, requested_resources=(group,))]))
    caller = Caller(FixedCredentials("http://roost", "admin"), httpx.AsyncClient())
    with pytest.raises(ReplayError, match="request groups"):
        asyncio.run(RemoteReplay(work, caller).run())


def test_every_instance_is_accounted_for_and_departures_are_gone(tmp_path: Path) -> None:
    work = Workload(
        "test",
        HOSTS,
        into_bins(
            [
                asked(0, 300, None, vcpus=2),
                asked(10, 300, None, vcpus=2),
                asked(20, None, vcpus=64),
                asked(700, *[None] * 4),
            ]
        ),
    )
    done: list[int] = []

    async def run() -> None:
        async with opened_system(tmp_path, layout_of(work, 2)) as system:
            app = create_app(
                system.super_conductor,
                system.requests,
                system.aggregates,
                system.groups,
                system.placement,
                NoAuth(),
            )
            client = httpx.AsyncClient(transport=LosesFirst(app))
            caller = Caller(FixedCredentials("http://roost", "admin"), client)
            summary = await RemoteReplay(work, caller).run(done.append)
            await caller.close()
            left = [each for cell in system.cells.values() for each in await cell.every()]
        assert (summary.asked, summary.placed, summary.departures) == (9, 8, 2)
        assert summary.refused == 1 and summary.unaccounted == 0
        assert summary.settling is not None
        assert len(left) == 7

    asyncio.run(run())
    assert done == [1, 2]


def test_wanted_instances_have_all_that_is_sent(tmp_path: Path) -> None:
    request = asked(0, None, availability_zone="az1", required_traits=frozenset({"CUSTOM_A"}))
    body = body_of([request])
    assert set(body) <= set(WantedInstances.__struct_fields__)
