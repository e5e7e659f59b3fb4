"""A scheduler on a ledger of its own, for tests."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import (
    NOW,
    Cloud,
    Kept,
    spec,
    uuid_of,
)

T = TypeVar("T")

INSTANCES = [uuid_of(0xA0 + number) for number in range(9)]


class Room:
    """A scheduler on a ledger, its records, and what is held."""

    def __init__(self, ledger: Ledger, cloud: Cloud, options: SchedulerOptions | None) -> None:
        self.ledger = ledger
        self.kept = Kept()
        gateway = LocalGateway(ledger, HostPools(cloud.table(), options))
        self.passed = 0.0
        self.scheduler = Scheduler(gateway, self.kept, lambda: NOW, monotonic=lambda: self.passed)

    async def place(self, count: int = 1, alternates: int = 0, *args: int, **more: Any) -> list[str]:
        names = INSTANCES[:count]
        min_count = more.pop("min_count", None)
        destinations = await self.scheduler.select_destinations(
            HostRequest(
                spec(*args, **more), tuple(names), alternates, min_count=min_count or 0, request_id="req-1"
            )
        )
        return [each.selected.host for each in destinations]

    async def refusal(self, *args: Any, **more: Any) -> str:
        with pytest.raises(NoValidHost) as error:
            await self.place(*args, **more)
        assert error.value.run == self.kept.runs[-1].id
        assert error.value.steps == self.kept.runs[-1].steps
        return error.value.reason

    def held(self) -> dict[str, dict[str, dict[str, int]]]:
        held = self.ledger.database.read_now(held_by_all)
        return {consumer: one.allocations for consumer, one in held.items() if consumer in INSTANCES}


Within = Callable[..., Any]
