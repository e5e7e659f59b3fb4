"""The questions of conductors reach the scheduler and placement, and others are refused."""

import asyncio
from typing import Any

import pytest

from roost.conductor.questions import (
    AllocationsOf,
    ClaimAlternate,
    SelectDestinations,
    WriteConsumers,
    placement_service,
    scheduler_service,
)
from roost.model.spec import Selection
from roost.process.context import UnknownService
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import holding, spec

FAILED = Selection("h1", "n1", "c", {}, {}, 1.0)


class Called:
    """Answers each call with its name and arguments."""

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **named: Any) -> Any:
            return name, arguments, named

        return call


def test_the_scheduler_is_asked():
    ask = scheduler_service(Called())
    request = HostRequest(spec(1), ("a",), 2, 1, {"a": 3}, request_id="r")
    found = asyncio.run(ask(SelectDestinations(request)))
    assert found == ("select_destinations", (request,), {})
    use = ClaimAlternate(
        spec=spec(1), instance="a", failed=FAILED, reason="no", alternates=(), run="run", request_id="r"
    )
    assert asyncio.run(ask(use)) == (
        "use_alternate",
        (spec(1), "a", FAILED, "no", ()),
        {"run": "run", "request_id": "r"},
    )


def test_placement_is_asked():
    ask = placement_service(Called())
    assert asyncio.run(ask(AllocationsOf(("a", "b")))) == ("holdings", (("a", "b"),), {})
    write = holding("a", {"n1": {"VCPU": 1}})
    assert asyncio.run(ask(WriteConsumers((write,)))) == ("write_allocations", ((write,),), {})


@pytest.mark.parametrize("service", [scheduler_service, placement_service])
def test_who_is_asked_something_else_refuses(service):
    others = (
        AllocationsOf(("a",))
        if service is scheduler_service
        else ClaimAlternate(
            spec=spec(1), instance="a", failed=FAILED, reason="no", alternates=(), run="run", request_id="r"
        )
    )
    with pytest.raises(UnknownService, match="is not asked for"):
        asyncio.run(service(Called())(others))
