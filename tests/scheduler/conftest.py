"""A database with nothing but the standard names, to be copied."""

import asyncio
from pathlib import Path

import pytest

from support.clouds import Cloud, filled


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "roost.db"

    async def make() -> None:
        async with filled(path, Cloud([], [])):
            pass

    asyncio.run(make())
    return path
