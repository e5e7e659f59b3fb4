"""Filters and weighers say what Nova's say, but for the differences that docs/differences.md lists."""

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec, CannotWeigh
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_calls import ask_key, ask_weigher, verdict
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.pool.weights import HostWeights
from roost.scheduler.request.image_properties import CURRENT_NAMES, FLAGS, NUMBERS
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from support.clouds import table_of
from support.nova import Nova
from support.nova_comparison import Case, Levels, cases, multipliers, ours_of
from support.nova_words import OWN_PROPERTY
from support.nova_worlds import (
    NEW_INSTANCE,
    Plain,
    hosts_and_requests,
    progress_of,
    report_of,
    spec_of,
)
from support.offering import scheduling_request

DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"
ROW = re.compile(r"^\| `(\w+)` \| ([a-z ,]+) \|", re.MULTILINE)


@cache
def documented() -> set[tuple[str, str]]:
    """The intended differences: plugin and case."""
    rows: set[tuple[str, str]] = set(ROW.findall(DOCUMENT.read_text()))
    return rows


def compare(nova: Nova, kind: str, case: Case, path: Path, seeds: range, hosts: int, requests: int) -> None:
    name, options = case
    enabled = {"enabled_filters" if kind == FILTER else "weight_classes": name}
    ours = ours_of(options, path, **enabled)
    found = Plugins.enabled(ours)
    plugin = (found.filters if kind == FILTER else found.weighers)[0]
    for seed in seeds:
        some, asked = hosts_and_requests(seed, hosts, requests)
        table = table_of(map(report_of, some))
        view = HostView(table, Levels(some))
        ask = "verdicts" if kind == FILTER else "numbers"
        theirs = nova.ask("judging", ask, name=name, hosts=some, requests=asked, options=options)
        for one, expected in zip(asked, theirs, strict=True):
            if isinstance(expected, str):
                assert "is invalid" in expected or "invalid literal" in expected, expected
                continue
            posed = posed_by(one, ours)
            found = _answers(plugin, view, posed, progress_of(one, some, posed, table))
            for host, answer, nova_says in zip(some, found, expected, strict=True):
                if isinstance(answer, str) and isinstance(nova_says, str):
                    continue  # both refuse the request
                if answer != nova_says:
                    row = difference(name, host, one, nova_says, options)
                    assert (name, row) in documented(), (
                        f"{name} says {answer}, Nova's says {nova_says}: {host} {one} {options}"
                    )


def posed_by(one: Plain, ours: SchedulerOptions) -> SchedulingRequest:
    """The question that a plain request is."""
    posed = scheduling_request(of=spec_of(one), **msgspec.structs.asdict(ours))
    return msgspec.structs.replace(posed, instances=(one["instance"],))


def _answers(
    plugin: Any, view: HostView, posed: SchedulingRequest, progress: GroupPlacement
) -> Sequence[Any]:
    try:
        if not hasattr(plugin, "raw"):
            mask = verdict(plugin, view, posed, progress)
            return [True] * len(view) if mask is None else mask.tolist()
        judges = ask_key(plugin, posed) is not None
        raw = ask_weigher(plugin, view, posed, progress) if judges else None
    except (BadRequestSpec, CannotWeigh) as error:
        return [str(error)] * len(view)
    nothing = 100.0 if plugin.name == "PCIWeigher" else 0.0
    return [nothing] * len(view) if raw is None else raw.tolist()


def difference(
    name: str, host: Plain, request: Plain, nova_says: Any, options: Mapping[str, Any]
) -> str | None:
    """The case of docs/differences.md that a host and a request are, None if they are none."""
    raised = nova_says if isinstance(nova_says, str) else ""
    if "could not convert string to float" in raised or "not supported between instances" in raised:
        return "number compared with a text"
    if "pop from empty list" in raised:
        return "operator without a value"
    if name == "ComputeFilter" and host["silent"] < -60:
        return "clock ahead"
    if name == "JsonFilter" and "no attribute 'get'" in raised:
        return "key of a text"
    if name == "JsonFilter" and '["not"' in request["hints"]["query"][0][1:]:
        return "nested not"
    if name == "MetricsWeigher" and options.get("metrics", {}).get("required", True):
        return "metric not reported"
    if name == "AggregateInstanceExtraSpecsFilter" and "group_policy" in request["extra_specs"]:
        return "group policy"
    if name in ("AggregateImagePropertiesIsolation", "ImagePropertiesWeigher"):
        return "property of its own" if OWN_PROPERTY in request["properties"] else None
    if name == "DiskWeigher":
        return "disk in gibibytes" if nova_says == host["free_disk_mb"] else None
    if name == "CPUWeigher":
        return "whole processors" if host["vcpus_total"] * host["cpu_allocation_ratio"] % 1 else None
    if name.startswith("ServerGroup") and request["instance"] != NEW_INSTANCE:
        return "instance is there"
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
        "disk in gibibytes",
        "group policy",
        "instance is there",
        "key of a text",
        "metric not reported",
        "nested not",
        "number compared with a text",
        "operator without a value",
        "property of its own",
        "whole processors",
    }


def test_image_properties_are_those_that_nova_knows(nova: Nova) -> None:
    assert nova.ask("judging", "image_properties") == {
        "flags": sorted(FLAGS),
        "numbers": sorted(NUMBERS),
        "current_names": CURRENT_NAMES,
    }


def ordered(nova: Nova, path: Path, seeds: range, hosts: int, requests: int) -> None:
    names = list(dict.fromkeys(name for name, _ in cases(WEIGHER)))
    for seed in seeds:
        options = multipliers(random.Random(seed))
        ours = ours_of(options, path, weight_classes=", ".join(names))
        made = Plugins.enabled(ours).weighers
        some, asked = hosts_and_requests(seed, hosts, requests)
        for host in some:
            host["cpu_allocation_ratio"] = 4.0  # see "whole processors"
        for one in asked:
            one["properties"].pop(OWN_PROPERTY, None)  # see "property of its own"
            if one["group"] is not None:  # see "instance is there"
                one["group"]["members"][-1] = one["instance"] = NEW_INSTANCE
        table, offers = table_of(map(report_of, some)), Levels(some)
        theirs = nova.ask("judging", "weights", names=names, hosts=some, requests=asked, options=options)
        for one, expected in zip(asked, theirs, strict=True):
            if isinstance(expected, str):
                assert "is invalid" in expected or "invalid literal" in expected, expected
                continue
            posed = posed_by(one, ours)
            everyone = np.ones(hosts, dtype=np.bool_)
            progress = progress_of(one, some, posed, table)
            weighing = HostWeights(table, offers, everyone, made, posed, progress)
            found = [(some[place]["host"], weighing.weight(place)) for place in weighing.best(hosts).tolist()]
            by_name = dict(expected)
            for (host, weight), (_, nova_weight) in zip(found, expected, strict=True):
                assert weight == pytest.approx(by_name[host], rel=1e-9, abs=1e-6), (host, one, some, options)
                assert weight == pytest.approx(nova_weight, rel=1e-9, abs=1e-6), "another order, and no tie"


def test_hosts_are_in_novas_order_but_for_ties(nova: Nova, tmp_path: Path) -> None:
    ordered(nova, tmp_path / "roost.conf", range(4), hosts=20, requests=10)


@pytest.mark.nightly
def test_hosts_are_in_novas_order_but_for_ties_for_thousands(nova: Nova, tmp_path: Path) -> None:
    ordered(nova, tmp_path / "roost.conf", range(100, 200), hosts=40, requests=40)
