"""Metrics that are counted during one test only."""

from collections.abc import Iterator

import pytest

from roost.process.metrics.catalogue import CATALOGUE
from roost.process.metrics.instruments import start_counting, stop_counting


@pytest.fixture
def counted() -> Iterator[None]:
    start_counting(CATALOGUE)
    yield
    stop_counting()
