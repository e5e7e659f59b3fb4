"""The numbers of a feed in the metrics."""

from roost.process.metrics import catalogue as metrics
from roost.process.metrics import nova_bridge
from roost.process.metrics.instruments import start_counting, stop_counting
from support.nova_clouds import FedTable, NovaCloud


def test_rows_are_counted_as_they_are_read(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    start_counting(metrics.CATALOGUE)
    try:
        for _ in range(2):
            fed.refresh(after=60.0)
            read = sum(fed.feed.rows_read.values())
            assert nova_bridge.NOVA_ROWS.labels().value == read > 0
    finally:
        stop_counting()
