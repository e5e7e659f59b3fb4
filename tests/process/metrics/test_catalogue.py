"""The catalogue: Prometheus' conventions, bounded labels, and the page that is made from it."""

import re
from pathlib import Path

import pytest

from roost.cli.metrics import SECTIONS, markdown, section_of
from roost.conductor import http as conductor
from roost.placement.http.operations import OPERATIONS as PLACEMENT
from roost.placement.v1.operations import OPERATIONS as V1
from roost.process.metrics.catalogue import CATALOGUE, AnyMetric
from roost.process.metrics.instruments import Histogram

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
BEGIN = "<!-- metrics: made by `roost metrics` -->\n"
END = "<!-- end of metrics -->\n"

UNITS = ("seconds", "bytes")
"""Prometheus' base units, as far as metrics here have one."""
SCALED = re.compile(
    r"_(ms|msec|milliseconds|micros\w*|minutes|hours|kb|kib|mb|mib|gb|kilobytes|percent)(_|$)"
)
RESERVED = {"le", "quantile", "pid", "job", "instance"}
OPEN_LABELS = {
    *(
        (name, label)
        for name in ("roost_capacity_units", "roost_used_units")
        for label in ("resource_class", "zone")
    ),
    ("roost_event_loop_hold_seconds", "operation"),
    ("roost_http_request_duration_seconds", "operation"),  # the rows of the operations, see below
    ("roost_http_request_duration_seconds", "status"),  # of HTTP
    ("roost_scheduler_refusals_total", "cause"),  # filters of the configuration, and four words
    ("roost_scheduler_removed_hosts_total", "filter"),  # filters of the configuration
    ("roost_build_info", "version"),
    ("roost_build_info", "python"),
    ("roost_process_start_time_seconds", "process"),
    ("roost_process_resident_memory_bytes", "process"),
    ("roost_process_cpu_seconds_total", "process"),
    ("roost_process_open_fds", "process"),
}
"""Labels whose values are known only at run time; each has been looked at."""

each_metric = pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)


@each_metric
def test_names_follow_the_conventions(metric: AnyMetric) -> None:
    assert re.fullmatch(r"roost_[a-z]+(_[a-z0-9]+)+", metric.name)
    assert not SCALED.search(metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not metric.name.endswith(("_count", "_sum", "_bucket", "_created"))
    name = metric.name.removesuffix("_total")
    for unit in UNITS:
        assert unit not in name or name.endswith(f"_{unit}")
    if isinstance(metric, Histogram) and "duration" in name:
        assert name.endswith("_duration_seconds")


@each_metric
def test_labels_are_bounded(metric: AnyMetric) -> None:
    for label in metric.described_labels:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", label.name)
        assert label.name not in RESERVED
        assert (label.values is None) == ((metric.name, label.name) in OPEN_LABELS)
        for value in label.values or ():
            assert f"`{value}`" in label.text


@each_metric
def test_texts_are_sentences(metric: AnyMetric) -> None:
    for text in (metric.help, metric.advice, *(label.text for label in metric.described_labels)):
        assert text[0].isupper() or text[0] in "`0"
        assert text.endswith(".")
    assert metric.help.count(". ") == 0, "Prometheus shows it in one line"


@each_metric
def test_buckets_are_ascending(metric: AnyMetric) -> None:
    if isinstance(metric, Histogram):
        assert list(metric.bounds) == sorted(set(metric.bounds))
        assert len(metric.bounds) <= 16


def test_names_are_unique_and_none_is_the_series_of_another() -> None:
    names = [metric.name.removesuffix("_total") for metric in CATALOGUE]
    assert len(names) == len(set(names))
    assert len(names) >= 30


@each_metric
def test_texts_name_only_metrics_and_operations_that_exist(metric: AnyMetric) -> None:
    names = {each.name for each in CATALOGUE}
    operations = {f"{row.method} {row.path}" for row in (*PLACEMENT, *V1, *conductor.OPERATIONS)}
    text = " ".join((metric.advice, *(label.text for label in metric.described_labels)))
    for code in re.findall(r"`([^`]+)`", text):
        if code.startswith("roost_"):
            assert code in names
        if re.match("(GET|PUT|POST|DELETE) ", code):
            assert code in operations


def test_the_page_has_all_metrics_as_they_are() -> None:
    text = PAGE.read_text()
    written = text.partition(BEGIN)[2].partition(END)[0]
    assert written == markdown(), "put the output of `roost metrics` into docs/metrics.md"
    assert {section_of(metric) for metric in CATALOGUE} == set(SECTIONS.values())
