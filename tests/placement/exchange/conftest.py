"""A rich state in OpenStack Placement, which is made once."""

from pathlib import Path

import pytest

from support.exchange.asking import Ours, Upstream
from support.exchange.exchanging import at
from support.exchange.rich_state import make


@pytest.fixture(scope="session")
def rich_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file of OpenStack Placement, to be copied."""
    path = tmp_path_factory.mktemp("source") / "placement.db"
    with Upstream(f"sqlite:///{path}") as upstream:
        make(upstream)
    return path


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of Roost with only the standard names, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "roost.db"
    with Ours(at(path)):
        pass
    return path
