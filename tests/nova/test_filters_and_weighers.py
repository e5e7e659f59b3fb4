"""Filters and weighers say what Nova's say, but for the differences that docs/differences.md lists."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from oslo_config import cfg

from roost.fleet.columns import Int64
from roost.scheduler.asking import ask_key, ask_weigher, verdict
from roost.scheduler.nodes import NodeTable
from roost.scheduler.offers import HostView
from roost.scheduler.options import SchedulerOptions, options_from
from roost.scheduler.plugin_names import FILTER, WEIGHER, built_ins
from roost.scheduler.plugins import filters, weighers
from roost.scheduler.question import Progress, Question
from roost.scheduler.weighing import Weighing
from support.nova import Nova
from support.nova_worlds import Plain, hosts_and_requests, report_of, spec_of
from support.offering import MadeUp, question

DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"
ROW = re.compile(r"^\| `(\w+)` \| ([a-z ,]+) \|", re.MULTILINE)

OTHERS = {
    # Server groups are compared by tests of the ledger's groups.
    *("ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"),
    *("ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher"),
    # Nova has no such filter any more.
    "AvailabilityZoneFilter",
    # They judge by objects that are not fitted yet: the documentation says what they do instead.
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
    "MetricsWeigher": [
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


def documented() -> set[tuple[str, str]]:
    """The intended differences: plugin and case."""
    rows: set[tuple[str, str]] = set(ROW.findall(DOCUMENT.read_text()))
    return rows


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
    names = [each.name for each in built_ins(kind) if not getattr(each, "beyond_nova", False)]
    return [(name, options) for name in names if name not in OTHERS for options in OPTIONS.get(name, [{}])]


def compare(nova: Nova, kind: str, case: Case, path: Path, seeds: range, hosts: int, requests: int) -> None:
    name, options = case
    enabled = {"enabled_filters" if kind == FILTER else "weight_classes": name}
    ours = ours_of(options, path, **enabled)
    plugin = (filters if kind == FILTER else weighers)(ours)[0]
    for seed in seeds:
        some, asked = hosts_and_requests(seed, hosts, requests)
        view = HostView(NodeTable(map(report_of, some)), Levels(some))
        ask = "verdicts" if kind == FILTER else "numbers"
        theirs = nova.ask("judging", ask, name=name, hosts=some, requests=asked, options=options)
        for one, expected in zip(asked, theirs, strict=True):
            posed = question(of=spec_of(one), **msgspec.structs.asdict(ours))
            found = _answers(plugin, view, posed)
            for host, answer, nova_says in zip(some, found, expected, strict=True):
                if answer != nova_says:
                    row = difference(name, host, one, nova_says)
                    assert (name, row) in documented(), (
                        f"{name} says {answer}, Nova's says {nova_says}: {host} {one} {options}"
                    )


def _answers(plugin: Any, view: HostView, posed: Question) -> list[Any]:
    if hasattr(plugin, "raw"):
        judges = ask_key(plugin, posed) is not None
        raw = ask_weigher(plugin, view, posed, Progress()) if judges else None
        minval = getattr(plugin, "minval", None)
        assert minval in (None, 0.0)
        return [0.0 if plugin.name != "PCIWeigher" else 100.0] * len(view) if raw is None else raw.tolist()
    mask = verdict(plugin, view, posed, Progress())
    return [True] * len(view) if mask is None else mask.tolist()


def difference(name: str, host: Plain, request: Plain, nova_says: Any) -> str | None:
    """The case of docs/differences.md that a host and a request are, None if they are none."""
    if isinstance(nova_says, str) and "could not convert string to float" in nova_says:
        return "number compared with a text"
    if name == "ComputeFilter" and host["silent"] < -60:
        return "clock ahead"
    query = (request["hints"].get("query") or ("",))[0]
    if name == "JsonFilter" and isinstance(nova_says, str):
        return "number compared with a text"
    if name == "JsonFilter" and '["not"' in query[1:]:
        return "nested not"
    if name == "DiskWeigher":
        return "disk in gibibytes" if nova_says == host["free_disk_mb"] else None
    return None


@pytest.mark.parametrize("case", cases(FILTER), ids=str)
def test_filters_say_what_novas_say(nova: Nova, case: Case, tmp_path: Path) -> None:
    compare(nova, FILTER, case, tmp_path / "roost.conf", range(2), hosts=25, requests=25)


@pytest.mark.parametrize("case", cases(WEIGHER), ids=str)
def test_weighers_give_novas_numbers(nova: Nova, case: Case, tmp_path: Path) -> None:
    compare(nova, WEIGHER, case, tmp_path / "roost.conf", range(2), hosts=25, requests=25)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [FILTER, WEIGHER])
def test_thousands_of_hosts_and_requests(nova: Nova, kind: str, tmp_path: Path) -> None:
    for case in cases(kind):
        compare(nova, kind, case, tmp_path / "roost.conf", range(100, 160), hosts=60, requests=60)


def test_every_documented_difference_is_met() -> None:
    assert {case for _, case in documented()} == {
        "clock ahead",
        "number compared with a text",
        "nested not",
        "disk in gibibytes",
    }


def ordered(nova: Nova, path: Path, seeds: range, hosts: int, requests: int) -> None:
    options = {"metrics": {"required": False, "weight_setting": ["heat=1.0"]}}
    names = [name for name, _ in cases(WEIGHER)]
    names = list(dict.fromkeys(names))
    ours = ours_of(options, path, weight_classes=", ".join(names))
    made = weighers(ours)
    for seed in seeds:
        some, asked = hosts_and_requests(seed, hosts, requests)
        table, offers = NodeTable(map(report_of, some)), Levels(some)
        theirs = nova.ask("judging", "weights", names=names, hosts=some, requests=asked, options=options)
        for one, expected in zip(asked, theirs, strict=True):
            posed = question(of=spec_of(one), **msgspec.structs.asdict(ours))
            everyone = np.ones(hosts, dtype=np.bool_)
            weighing = Weighing(table, offers, everyone, made, posed, Progress())
            found = [(some[place]["host"], weighing.weight(place)) for place in weighing.best(hosts).tolist()]
            by_name = dict(expected)
            for (host, weight), (_, nova_weight) in zip(found, expected, strict=True):
                assert weight == pytest.approx(by_name[host], rel=1e-9, abs=1e-6)
                assert weight == pytest.approx(nova_weight, rel=1e-9, abs=1e-6), "another order, and no tie"


def test_hosts_are_in_novas_order_but_for_ties(nova: Nova, tmp_path: Path) -> None:
    ordered(nova, tmp_path / "roost.conf", range(2), hosts=20, requests=10)


@pytest.mark.nightly
def test_hosts_are_in_novas_order_but_for_ties_for_thousands(nova: Nova, tmp_path: Path) -> None:
    ordered(nova, tmp_path / "roost.conf", range(100, 150), hosts=40, requests=40)
