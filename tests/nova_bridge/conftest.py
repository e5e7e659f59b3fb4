"""A Nova with two cells, and a node table that is fed from it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.nova_clouds import FedTable, NovaCloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[NovaCloud]:
    made = NovaCloud(tmp_path, "cell0", "cell1", "cell2")
    yield made
    made.close()


@pytest.fixture
def fed(cloud: NovaCloud) -> Iterator[FedTable]:
    made = FedTable(cloud)
    yield made
    made.close()
