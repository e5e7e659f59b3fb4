"""A database with nothing but the standard names, to be copied; and a scheduler on one."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from roost.scheduler import SchedulerOptions
from support.clouds import Cloud, filled
from support.scheduling import Room, T


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "roost.db"

    async def make() -> None:
        async with filled(path, Cloud([], [])):
            pass

    asyncio.run(make())
    return path


@pytest.fixture
def within(tmp_path: Path, empty_database: Path) -> Callable[..., Any]:
    def run(cloud: Cloud, work: Callable[[Room], Awaitable[T]], options: SchedulerOptions | None = None) -> T:
        async def main() -> T:
            async with filled(tmp_path / "roost.db", cloud, empty_database) as ledger:
                return await work(Room(ledger, cloud, options))

        return asyncio.run(main())

    return run
