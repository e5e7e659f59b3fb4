"""The service that answers an agent by its driver."""

import asyncio

import pytest

from roost.agent.driver_calls import DriverService
from roost.agent.errors import CannotStopGuests
from support.cells import instance


class Careful:
    """A driver that takes time to clean up a build that is ended."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def prepare(self, _) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            self.told.append("cleaned up")

    async def destroy(self, _) -> None:
        self.told.append("destroyed")


def test_instance_is_destroyed_when_its_build_that_was_left_has_ended() -> None:
    async def run() -> None:
        driver = Careful()
        service = DriverService(driver)
        building = asyncio.create_task(service.prepare(instance()))
        for _ in range(3):
            await asyncio.sleep(0)
        building.cancel()
        await asyncio.gather(building, return_exceptions=True)
        await service.destroy("i")
        assert driver.told == ["cleaned up", "destroyed"]

    asyncio.run(run())


def test_driver_that_stops_no_guests_says_so() -> None:
    async def run() -> None:
        service = DriverService(Careful())
        for call in (service.stop("i"), service.start_again(instance())):
            with pytest.raises(CannotStopGuests, match="the driver Careful cannot stop guests"):
                await call

    asyncio.run(run())
