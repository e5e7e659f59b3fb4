"""The plain reason of a refusal, which stands where no explanation comes in time."""

import msgspec
import pytest

from roost.model.spec import Flavor
from roost.scheduler import SchedulerOptions
from roost.scheduler.errors import NoValidHost
from roost.scheduler.options import DEFAULT_FILTERS
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import flat, spec
from support.scheduling import Room, Within


def test_a_numa_refusal_keeps_its_amounts_without_an_explanation(within: Within) -> None:
    """Under load explanations are dropped, or come later than a refusal waits for them."""
    options = SchedulerOptions(filters=(*DEFAULT_FILTERS, "NUMATopologyFilter"), explain_seconds=0.0)
    flavor = Flavor("numa", 4, 2048, 1, {"hw:numa_nodes": "2"})

    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost) as refused:
            await room.scheduler.select_destinations(
                HostRequest.new(msgspec.structs.replace(spec(), flavor=flavor), 1)
            )
        assert refused.value.reason == (
            "no host left after NUMATopologyFilter: hosts that pass it have room in NUMA cells for the guest "
            "(2 cells, 4 shared vCPUs, 2048 MiB)"
        )

    within(flat(2), work, options)
