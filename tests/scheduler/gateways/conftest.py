"""A scheduler that reaches placement over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.clouds import Cloud, filled
from support.wire import Meddling, Room, nothing


@pytest.fixture
def within(tmp_path: Path, empty_database: Path) -> Callable[..., None]:
    def run(
        cloud: Cloud,
        work: Callable[[Room], Awaitable[None]],
        meddling: Meddling = nothing,
        limit: int | None = None,
        **options: object,
    ) -> None:
        async def main() -> None:
            async with filled(tmp_path / "roost.db", cloud, empty_database) as ledger:
                room = Room(ledger, cloud, meddling, limit, **options)
                async with room.placement:
                    await work(room)

        asyncio.run(main())

    return run
