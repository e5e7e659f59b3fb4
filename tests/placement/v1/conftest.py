"""The API with ``/v1`` on a database of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.v1_api import V1Api


@pytest.fixture
def v1(tmp_path: Path, empty_database: Path) -> Iterator[V1Api]:
    api = V1Api(tmp_path, empty_database)
    yield api
    api.close()
