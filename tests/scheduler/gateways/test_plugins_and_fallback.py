"""Plugins that narrow and order a host's candidates, and dedicated processors by the fallback query, in the
process (also when the decision is kept) and over HTTP."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from roost.fleet.columns import Float64
from roost.model.allocation import Candidate
from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from roost.model.spec import RequestSpec, Selection
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.options import Workarounds
from roost.scheduler.request.scheduling_request import GroupPlacement, HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import GPU, NOW, Cloud, Kept, Provider, filled, flat, over_http, spec, uuid_of

BROKEN, BEST, PLAIN = (uuid_of(number) for number in (0x77, 0x78, 0x79))


class NoBrokenGpu:
    """A filter that lets no candidate through that takes the broken GPU."""

    name = "no_broken_gpu"

    def key(self, request: SchedulingRequest) -> str:
        return "always"

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> None:
        return None

    def narrow(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[Candidate]:
        return [each for each in candidates if BROKEN not in each.allocations]


class BestGpu:
    """A weigher that likes one GPU of a host best."""

    name = "best_gpu"
    multiplier_key = "best_gpu_weight_multiplier"
    default_multiplier = 1.0

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        return None

    def rank(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[float]:
        return [float(BEST in each.allocations) for each in candidates]


async def placed(
    tmp_path: Path, cloud: Cloud, wire: bool, options: SchedulerOptions, requests: Sequence[RequestSpec]
) -> list[Selection]:
    """The selection of each request, one after the other."""
    async with filled(tmp_path / "roost.db", cloud) as ledger, over_http(ledger) as placement:
        pools = HostPools(cloud.table(), options)
        gateway: Gateway = HttpGateway(placement, pools) if wire else LocalGateway(ledger, pools)
        scheduler = Scheduler(gateway, Kept(), lambda: NOW)
        return [
            (await scheduler.select_destinations(HostRequest.new(each, 1)))[0].selected for each in requests
        ]


@pytest.mark.parametrize("wire", [False, True], ids=["in the process", "over HTTP"])
def test_plugins_narrow_and_order_candidates(tmp_path: Path, wire: bool) -> None:
    cloud = flat(1)
    for uuid, total in ((BROKEN, 5), (BEST, 2), (PLAIN, 2)):
        cloud.providers.append(Provider(uuid, {GPU: Inventory(total)}, uuid_of(0)))
    options = SchedulerOptions(
        filters=("ComputeFilter", f"{__name__}.NoBrokenGpu"), weighers=(f"{__name__}.BestGpu",)
    )
    wanted = spec(requested_resources=(RequestGroup({GPU: 1}, "_gpu"),))
    found = asyncio.run(placed(tmp_path, cloud, wire, options, [wanted] * 4))
    assert [each.mappings["_gpu"] for each in found] == [[BEST], [BEST], [PLAIN], [PLAIN]]


@pytest.mark.parametrize("wire", [False, True], ids=["in the process", "over HTTP"])
def test_dedicated_processors_come_from_vcpu_where_there_is_no_pcpu(tmp_path: Path, wire: bool) -> None:
    cloud = flat(2)
    pcpu, *_ = cloud.providers
    pcpu.inventories["PCPU"] = Inventory(2)
    del pcpu.inventories["VCPU"]
    wanted = spec(2, extra_specs={"hw:cpu_policy": "dedicated"})
    for fallback, expected in ((True, ["PCPU", "VCPU"]), (False, ["PCPU"])):
        folder = tmp_path / str(fallback)
        folder.mkdir()
        options = SchedulerOptions(
            workarounds=Workarounds(disable_fallback_pcpu_query=not fallback),
            filters=("ComputeFilter",),
            weighers=(),
        )
        found = asyncio.run(placed(folder, cloud, wire, options, [wanted] * len(expected)))
        amounts = [each.allocations[each.node] for each in found]
        assert [name for each in amounts for name in each if name.endswith("CPU")] == expected
