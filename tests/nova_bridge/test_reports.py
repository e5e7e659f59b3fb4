"""The report of a node has what its row says, also where Nova's JSON is not what it should be.

`tests/nova/test_databases.py` compares reports with Nova's own host states.
"""

from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from roost.nova.database import tables
from roost.nova.reports import report_of

ROW = {
    "id": 1,
    "uuid": "11111111-1111-4111-8111-111111111111",
    "host": "h",
    "hypervisor_hostname": "n",
    **dict.fromkeys(("vcpus", "memory_mb", "local_gb"), 10),
    **dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used"), 1),
    "free_ram_mb": 9,
    "free_disk_gb": 9,
    "hypervisor_type": "QEMU",
    "hypervisor_version": 1,
    "cpu_info": "",
}


def stored(**values: Any) -> Any:
    """A row as SQLAlchemy reads it from a database."""
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        tables.compute_nodes.create(connection)
        connection.execute(sa.insert(tables.compute_nodes).values(**{**ROW, **values}))
        return connection.execute(sa.select(tables.compute_nodes)).one()


def test_row_without_json_is_a_report() -> None:
    report = report_of(stored(), "cell", 7)
    assert (report.node, report.host, report.nodename, report.cell) == (ROW["uuid"], "h", "n", "cell")
    assert (report.service_version, report.vcpus_used, report.free_disk_mb) == (7, 1, 9 * 1024)
    assert (report.numa_topology, report.pci_device_pools, report.stats) == (None, (), {})


def test_free_disk_is_what_the_disk_has_if_that_is_less() -> None:
    assert report_of(stored(disk_available_least=-2), "cell").free_disk_mb == -2 * 1024
    assert report_of(stored(disk_available_least=20), "cell").free_disk_mb == 9 * 1024


def test_ratio_that_is_not_set_is_none() -> None:
    assert report_of(stored(cpu_allocation_ratio=0.0), "cell").cpu_allocation_ratio is None


@pytest.mark.parametrize("column", ["stats", "numa_topology", "pci_stats", "metrics", "supported_instances"])
@pytest.mark.parametrize("text", ["{", "NaN", "\ud800"])
def test_json_that_cannot_be_read_is_left_out_and_told(column: str, text: str) -> None:
    row: Any = SimpleNamespace(**{**dict(stored()._mapping), column: text})
    with capture_logs() as logs:
        report = report_of(row, "cell")
    assert [log["column"] for log in logs] == [column]
    assert report == report_of(stored(), "cell")


@pytest.mark.parametrize("column", ["stats", "numa_topology", "pci_stats", "metrics", "supported_instances"])
@pytest.mark.parametrize(
    "text", ["3", "[3]", '{"nova_object.data": {"objects": 3}}', '[{"name": [], "value": 1}]', "null"]
)
def test_json_of_another_form_does_no_harm(column: str, text: str) -> None:
    report = report_of(stored(**{column: text}), "cell")
    assert report.supported_instances == () and report.metrics == {} and report.num_instances == 0
