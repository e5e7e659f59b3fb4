"""What a decision sees of a node table, for comparison."""

import math
from typing import Any

from msgspec.structs import replace

from roost.scheduler.nodes.table import NodeTable

COUNTED = ("num_instances", "num_io_ops", "free_ram_mb", "free_disk_mb", "failed_builds", "enabled", "alive")


def seen_in(table: NodeTable) -> dict[str, Any]:
    """Of each node its report but for the heartbeat, its numbers, its aggregates and the claims on it; and
    which columns any node has ever reported."""
    found: dict[str, Any] = {
        "columns": sorted(column for column in (*COUNTED, "free_pci_devices") if table.has(column)),
        "metadata": sorted(
            (key, value, tuple(sorted(all_))) for key, value, all_ in table.aggregates_by_metadata()
        ),
    }
    for node in table.nodes:
        index = table.index_of_node(node)
        if index is None:
            continue
        numbers = [getattr(table, name).item(index) for name in COUNTED]
        numbers += [table.metric(name).item(index) for name in table.report(index).metrics]
        report = replace(table.report(index), last_seen=0.0)
        found[node] = (
            {name: getattr(report, name) for name in type(report).__struct_fields__ if name != "aggregates"},
            [None if isinstance(each, float) and math.isnan(each) else each for each in numbers],
            table.cells[table.cell.item(index)],
            table.aggregates(index),
            sorted(table.outstanding.instances_on(index)),
            bool(table.enabled[index]),
        )
    return found
