"""The API on a database of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.placement_api import Api


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the standard names and nothing else, to be copied."""
    api = Api(tmp_path_factory.mktemp("empty"))
    api.close()
    return api.path


@pytest.fixture
def api(tmp_path: Path, empty_database: Path) -> Iterator[Api]:
    api = Api(tmp_path, empty_database)
    yield api
    api.close()
