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
    select = SelectDestinations(
        spec=spec(1), instances=("a",), num_alternates=2, min_count=1, request_id="r", generations={"a": 3}
    )
    name, arguments, named = asyncio.run(ask(select))
    assert (name, arguments) == ("select_destinations", (spec(1), 1, 2))
    assert named == {
        "instances": ("a",),
        "min_count": 1,
        "request_id": "r",
        "global_request_id": None,
        "generations": {"a": 3},
    }
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
