"""What comparisons of Nova's filters and weighers with ours have in common: plugins, options and hosts."""

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from oslo_config import cfg

from roost.fleet.columns import Int64
from roost.scheduler.configuration import options_from
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_class import WEIGHER
from roost.scheduler.plugins.plugin_names import built_ins
from support.nova_worlds import Plain
from support.offering import MadeUp

OTHERS = {
    # Nova has no such filter any more.
    "AvailabilityZoneFilter",
    # test_numa.py and test_pci.py compare what they decide on.
    *("NUMATopologyFilter", "PciPassthroughFilter"),
}

OPTIONS: Mapping[str, Sequence[Mapping[str, Mapping[str, Any]]]] = {
    "IsolatedHostsFilter": [
        {"filter_scheduler": options}
        for options in (
            {},
            {"isolated_hosts": ["h1", "h3"], "isolated_images": ["i1"]},
            {"isolated_hosts": ["h1", "h3"]},
            {
                "isolated_hosts": ["h1", "h2"],
                "isolated_images": ["i0", "i1"],
                "restrict_isolated_hosts_to_isolated_images": False,
            },
        )
    ],
    "ImagePropertiesFilter": [
        {},
        {"filter_scheduler": {"image_properties_default_architecture": "x86_64"}},
    ],
    "AggregateImagePropertiesIsolation": [
        {},
        {
            "filter_scheduler": {
                "aggregate_image_properties_isolation_namespace": "hw_vif",
                "aggregate_image_properties_isolation_separator": "_",
            }
        },
    ],
    "MetricsFilter": [{}, {"metrics": {"weight_setting": ["heat=1.0", "power=-2"]}}],
    "IoOpsFilter": [{}, {"filter_scheduler": {"max_io_ops_per_host": 0}}],
    "NumInstancesFilter": [{}, {"filter_scheduler": {"max_instances_per_host": 1}}],
    "MetricsWeigher": [
        {},
        {"metrics": {"weight_setting": ["heat=1.0"]}},
        {"metrics": {"weight_setting": ["heat=1.0"], "required": False, "weight_multiplier": 0.0}},
        {"metrics": {"weight_setting": ["heat=1.0", "power=-2"], "required": False}},
        {"metrics": {"weight_setting": ["heat=1.5", "power=0"], "required": False}},
        {"metrics": {"weight_setting": ["heat=1.5"], "weight_of_unavailable": -5.0, "required": False}},
    ],
    "ImagePropertiesWeigher": [
        {},
        {"filter_scheduler": {"image_props_weight_multiplier": 2.0}},
        {
            "filter_scheduler": {
                "image_props_weight_multiplier": -1.0,
                "image_props_weight_setting": ["os_distro=2", "hw_vif_model=0.5"],
            }
        },
    ],
}


class Levels(MadeUp):
    """Hosts whose trees have what the plain hosts say."""

    def __init__(self, hosts: Sequence[Plain]) -> None:
        super().__init__([1] * len(hosts))
        self._hosts = hosts

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        if resource_class != "VCPU":
            return super()._sums(resource_class)
        total = [int(host["vcpus_total"] * host["cpu_allocation_ratio"]) for host in self._hosts]
        return np.array(total, dtype=np.int64), np.array([host["vcpus_used"] for host in self._hosts])


def ours_of(options: Mapping[str, Mapping[str, Any]], path: Path, **enabled: str) -> SchedulerOptions:
    """The options as a configuration file has them."""
    lines = ["[filter_scheduler]", *(f"{name} = {value}" for name, value in enabled.items())]
    for group, of_group in options.items():
        lines += [f"[{group}]", *(f"{name} = {_line(value)}" for name, value in of_group.items())]
    path.write_text("\n".join(lines))
    conf = cfg.ConfigOpts()
    conf(args=[], project="roost", default_config_files=[str(path)])
    return options_from(conf)


def _line(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


Case = tuple[str, Mapping[str, Mapping[str, Any]]]


def cases(kind: str) -> list[Case]:
    """Each plugin that Nova has too, with each of its options."""
    names = [each.name for each in built_ins(kind) if not each.beyond_nova]
    return [(name, options) for name in names if name not in OTHERS for options in OPTIONS.get(name, [{}])]


def multipliers(draw: random.Random) -> dict[str, dict[str, Any]]:
    """Options with a multiplier for each weigher, some of which are negative or 0."""
    found: dict[str, dict[str, Any]] = {
        "filter_scheduler": {},
        "metrics": {"required": False, "weight_setting": ["heat=1.0", "power=-0.5"]},
    }
    for each in built_ins(WEIGHER):
        group, name = each.multiplier_option
        if not each.beyond_nova and draw.random() < 0.8:
            least = -math.inf if each.least_multiplier is None else each.least_multiplier
            found[group][name] = max(least, draw.choice((-1.0, 0.0, 1.0, 2.5, -0.1, 1000.0)))
    return found
