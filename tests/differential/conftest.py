"""Both services, started once: upstream's takes a second and has one database for a whole process."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from differential.run import Both
from differential.services import Roost, Upstream
from roost.ledger import Ledger
from roost.storage import Database


async def _fill(path: Path) -> None:
    database = Database(f"sqlite:///{path}")
    await (await Ledger.open(database)).close()
    await database.close()


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("differential")
    asyncio.run(_fill(folder / "empty.db"))
    both = Both(Upstream(), Roost(folder, folder / "empty.db"))
    yield both
    both.roost.close()
    both.upstream.close()


@pytest.fixture
def both(services: Both) -> Both:
    """Both services, empty."""
    services.reset()
    return services
