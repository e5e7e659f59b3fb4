"""The reason of a refusal as the tenant gets it."""

import msgspec
import pytest

from roost.model.reasons import Reasons
from roost.model.spec import Flavor
from roost.scheduler import SchedulerOptions
from roost.scheduler.api.refusals import PUBLIC_REASON, public_reason
from roost.scheduler.errors import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import flat, spec
from support.scheduling import Room, Within


def test_it_names_the_run_and_no_host(within: Within) -> None:
    async def work(room: Room) -> None:
        large = msgspec.structs.replace(spec(), flavor=Flavor("large", 4000, 2048, 1))
        with pytest.raises(NoValidHost) as refused:
            await room.scheduler.select_destinations(HostRequest.new(large, 1))
        assert "host0" in refused.value.reason
        assert public_reason(refused.value) == (
            f"no host has 4000 VCPU free; it fits with 8 VCPU instead of 4000 (run {refused.value.run})"
        )

    within(flat(2), work, SchedulerOptions(explain_seconds=20.0))


def test_without_an_explanation_nothing_of_the_operators_reason_is_told() -> None:
    error = NoValidHost("a run", "no host left after ComputeFilter: compute-7 is down", (), ())
    assert public_reason(error) == "no host can take the request (run a run)"


def test_it_is_one_line_and_short_and_ends_with_the_run() -> None:
    reasons = Reasons(sentence="compute-7", public="no host passes\nan odd\x00 filter " + "x" * 300)
    told = public_reason(NoValidHost("a run", "compute-7", (), (), reasons))
    assert len(told) == PUBLIC_REASON
    assert told.startswith("no host passes an odd\ufffd filter x") and told.endswith("x… (run a run)")
