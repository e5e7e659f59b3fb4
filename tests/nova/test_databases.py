"""The tables of Nova, and the rows in them, are read as Nova itself reads them."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from roost.fleet.hardware.host_topology import decoded
from roost.fleet.hardware.pci_pools import pools_of
from roost.nova.database import tables
from roost.nova.database.urls import filled
from roost.nova.reports import report_of
from roost.storage import DatabaseMisconfigured
from support.nova import Nova

FAMILIES = {
    "String": {"String", "Enum", "IPAddress"},
    "Text": {"Text", "MediumText"},
    "Integer": {"Integer", "SoftDeleteInteger"},
    "BigInteger": {"BigInteger"},
    "DateTime": {"DateTime"},
    "Boolean": {"Boolean"},
    "Float": {"Float"},
}
"""The types of Nova that a type of ours stands for."""


@pytest.mark.parametrize(("name", "read"), [("api", tables.API), ("cell", tables.CELL)])
def test_each_table_column_and_key_that_is_read_is_in_novas_models(
    nova: Nova, name: str, read: sa.MetaData
) -> None:
    models = nova.ask("databases", "tables")[name]
    for table in read.sorted_tables:
        there = models[table.name]
        for column in table.columns:
            kind = there["columns"][column.name]
            ours = type(column.type).__name__
            assert kind in FAMILIES[ours], column
        keys = [[each.name for each in index.columns] for index in table.indexes]
        assert [key for key in keys if key not in there["keys"]] == [], table.name


def test_url_of_a_cell_is_filled_as_nova_fills_it(nova: Nova) -> None:
    urls = (
        "{scheme}://{username}:{password}@{hostname}:{port}/{path}_1?{query}#{fragment}",
        "mysql+pymysql://{username1}:{password1}@{hostname1}:{port1},{hostname2}:{port2}/x",
        "mysql+pymysql://a:b@c/d?charset=utf8",
        "mysql+pymysql://a:{{b}}@c/d",
        "mysql+pymysql://{nothing}/x",
        "mysql+pymysql://{/x",
    )
    templates = (
        "mysql+pymysql://nova:s%40cret@db.example:3307/nova_cell0?charset=utf8#f",
        "postgresql://nova@[::1]/nova",
        "mysql://u:p@one:1,v:q@two:2/x",
        "sqlite:////var/lib/nova.db",
    )
    cases = [(url, template) for url in urls for template in templates]
    for (url, template), expected in zip(cases, nova.ask("databases", "filled", cases=cases), strict=True):
        if expected is None:
            with pytest.raises(DatabaseMisconfigured):
                filled(url, template)
        else:
            assert filled(url, template) == expected, (url, template)


def rows(nova: Nova) -> list[dict[str, Any]]:
    """Rows of compute nodes, with JSON that Nova has written."""
    plain = {
        "id": 1,
        "uuid": "11111111-1111-4111-8111-111111111111",
        "host": "h",
        "hypervisor_hostname": "n",
        "vcpus": 8,
        "memory_mb": 1024,
        "local_gb": 100,
        "vcpus_used": 3,
        "memory_mb_used": 512,
        "local_gb_used": 7,
        "free_ram_mb": 512,
        "free_disk_gb": 90,
        "hypervisor_type": "QEMU",
        "hypervisor_version": 8_000_000,
        "cpu_info": json.dumps({"arch": "x86_64"}),
        "host_ip": "10.1.2.3",
        "supported_instances": json.dumps([["x86_64", "kvm", "hvm"], ["i686", "qemu", "hvm"]]),
        "metrics": None,
        "stats": json.dumps({"num_instances": 4, "io_workload": "2", "failed_builds": "1", "x": None}),
        "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 1.5,
        "disk_allocation_ratio": 1.0,
    }
    metric = {"timestamp": "2026-01-01T00:00:00.000000", "source": "s"}
    other = {
        "disk_available_least": 60,
        "host_ip": "fe80::1",
        "stats": json.dumps({}),
        "supported_instances": "[]",
        "metrics": json.dumps(
            [
                {**metric, "name": "cpu.frequency", "value": 2400},
                {**metric, "name": "cpu.percent", "value": 0.29},
                {**metric, "name": "numa.membw.max", "numa_membw_values": {"0": 5}},
            ]
        ),
    }
    written = nova.ask("databases", "written")
    return [{**plain, **each, **more} for each in written for more in ({}, other)]


def stored(row: dict[str, Any]) -> Any:
    """A row as SQLAlchemy reads it from a database."""
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        tables.compute_nodes.create(connection)
        connection.execute(sa.insert(tables.compute_nodes).values(**row))
        return connection.execute(sa.select(tables.compute_nodes)).one()


def test_report_of_a_row_has_what_novas_host_state_has(nova: Nova) -> None:
    given = rows(nova)
    for row, state in zip(given, nova.ask("databases", "host_states", rows=given), strict=True):
        report = report_of(stored(row), "cell")
        assert {
            "uuid": report.node,
            **{name: getattr(report, name) for name in state if name in report.__struct_fields__},
            "supported_instances": [[s.arch, s.hv_type, s.vm_mode] for s in report.supported_instances],
            "metrics": report.metrics,
            "ratios": [
                report.cpu_allocation_ratio,
                report.ram_allocation_ratio,
                report.disk_allocation_ratio,
            ],
            "cells": cells(report.numa_topology),
            "pools": [(each["product_id"], each["count"], each["numa_node"]) for each in state["pools"]],
        } == {**state, "pools": pools(report.pci_device_pools)}


def cells(reported: dict[str, object] | None) -> list[list[object]] | None:
    if reported is None:
        return None
    read = reported["nova_object.data"]["cells"]  # type: ignore[index]
    data = [each["nova_object.data"] for each in read]
    assert len(decoded(reported).cells) == len(data)
    return [[each["id"], sorted(each["cpuset"]), each["memory"]] for each in data]


def pools(reported: tuple[dict[str, object], ...]) -> list[tuple[object, int, object]]:
    return [(pool.properties["product_id"], pool.count, pool.numa_node) for pool in pools_of(reported)]
