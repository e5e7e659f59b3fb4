"""A rich state in OpenStack Placement, made once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exchange.asking import Upstream
from exchange.rich_state import make


@pytest.fixture(scope="session")
def rich_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A SQLite file that OpenStack Placement has written, to be copied."""
    path = tmp_path_factory.mktemp("source") / "placement.db"
    with Upstream(f"sqlite:///{path}") as upstream:
        make(upstream)
    yield path
