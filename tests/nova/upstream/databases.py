"""The columns of Nova's models, the URLs of cells, and what a host state has of a compute node."""

import nova.conf
from nova.db.api import models as api_models
from nova.db.main import models
from nova.objects import cell_mapping
from nova.scheduler import host_manager

from nova import context, objects

objects.register_all()
CONF = nova.conf.CONF
CONF([], project="nova", default_config_files=[], default_config_dirs=[])


def tables():
    """By database and table: the type of each column, and the columns of each index and unique key."""
    found = {}
    for name, base in (("api", api_models.BASE), ("cell", models.BASE)):
        found[name] = {table.name: _table(table) for table in base.metadata.sorted_tables}
    return found


def _table(table):
    keys = [[column.name for column in index.columns] for index in table.indexes]
    keys += [
        [column.name for column in key.columns]
        for key in table.constraints
        if type(key).__name__ in ("UniqueConstraint", "PrimaryKeyConstraint")
    ]
    return {
        "columns": {column.name: type(column.type).__name__ for column in table.columns},
        "keys": keys,
    }


def filled(cases):
    """For each URL and template the URL of a cell; null where Nova cannot fill it."""
    answers = []
    for url, template in cases:
        try:
            answers.append(cell_mapping.CellMapping._format_url(url, template))
        except Exception:
            answers.append(None)
    return answers


def host_states(rows):
    """For each row of compute_nodes what a host state has of it."""
    return [_host_state(row) for row in rows]


def _host_state(row):
    names = models.ComputeNode.__table__.columns.keys()
    full = {**dict.fromkeys(names), "deleted": 0, "mapped": 1, **row}
    node = objects.ComputeNode._from_db_object(context.get_admin_context(), objects.ComputeNode(), full)
    state = host_manager.HostState(node.host, node.hypervisor_hostname, "cell")
    state.update(compute=node)
    return {
        "uuid": state.uuid,
        "nodename": state.hypervisor_hostname,
        "free_ram_mb": state.free_ram_mb,
        "memory_mb": state.total_usable_ram_mb,
        "disk_gb": state.total_usable_disk_gb,
        "free_disk_mb": state.free_disk_mb,
        "vcpus": state.vcpus_total,
        "vcpus_used": state.vcpus_used,
        "num_instances": state.num_instances,
        "num_io_ops": state.num_io_ops,
        "failed_builds": state.failed_builds,
        "host_ip": None if state.host_ip is None else str(state.host_ip),
        "hypervisor_type": state.hypervisor_type,
        "hypervisor_version": state.hypervisor_version,
        "supported_instances": state.supported_instances,
        "metrics": {each.name: each.value for each in state.metrics if each.obj_attr_is_set("value")},
        "ratios": [state.cpu_allocation_ratio, state.ram_allocation_ratio, state.disk_allocation_ratio],
        "cells": None
        if state.numa_topology is None
        else [[cell.id, sorted(cell.cpuset), cell.memory] for cell in state.numa_topology.cells],
        "pools": [{**pool, "count": pool["count"]} for pool in state.pci_stats.pools],
    }


def written():
    """Columns of compute_nodes as Nova's objects write them: NUMA topologies and PCI pools."""
    page = objects.NUMAPagesTopology(size_kb=4, total=1000, used=0, reserved=1)
    numa = objects.NUMATopology(
        cells=[
            objects.NUMACell(
                id=number,
                cpuset={2 * number, 2 * number + 1},
                pcpuset={2 * number},
                memory=512,
                cpu_usage=0,
                memory_usage=0,
                pinned_cpus=set(),
                siblings=[{2 * number}, {2 * number + 1}],
                mempages=[page],
                socket=number,
                network_metadata=objects.NetworkMetadata(physnets={"p"}, tunneled=False),
            )
            for number in range(2)
        ]
    )
    pool = objects.PciDevicePool(
        vendor_id="8086", product_id="1520", numa_node=1, count=3, tags={"dev_type": "type-VF", "x": None}
    )
    legacy = '[{"vendor_id": "1", "product_id": "2", "count": 2, "numa_node": null, "dev_type": "type-PCI"}]'
    pools = objects.PciDevicePoolList(objects=[pool])
    from oslo_serialization import jsonutils

    return [
        {"numa_topology": numa._to_json(), "pci_stats": jsonutils.dumps(pools.obj_to_primitive())},
        {"numa_topology": None, "pci_stats": legacy},
        {"numa_topology": None, "pci_stats": None},
    ]
