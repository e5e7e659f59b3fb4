"""The summary: its derived figures, its JSON and its table."""

import json
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from roost.bench.replay.summary import Latency, Summary, render

SUMMARY = Summary(
    workload="synthetic",
    hosts=120,
    cells=3,
    requests=700,
    asked=2000,
    placed=1900,
    placed_on_alternate=40,
    failed=10,
    refusals={"no host has [bold]CUSTOM_FPGA[/bold]": 30, "VCPU": 60},
    departures=1100,
    decisions=2050,
    wall_seconds=2.0,
    peak_rss_mib=210.4,
    peak_use={"VCPU": 0.853, "MEMORY_MB": 0.61},
    decision=Latency(1.25, 9.5),
    seed=42,
)


def text(summary: Summary) -> str:
    shown = StringIO()
    Console(file=shown, width=100, color_system=None).print(render(summary))
    return shown.getvalue()


def test_percentiles() -> None:
    latency = Latency.of([float(number) for number in range(101)])
    assert latency == Latency(50.0, 99.0)
    assert Latency.of([]) is None


def test_derived_figures() -> None:
    assert SUMMARY.refused == 90
    assert SUMMARY.unaccounted == 0
    assert SUMMARY.decisions_per_second == 1025
    assert SUMMARY.changes_per_second == 1500


def test_dict_is_plain_and_has_every_figure() -> None:
    plain = SUMMARY.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    derived = {"refused", "unaccounted", "decisions_per_second", "changes_per_second"}
    assert plain.keys() == set(Summary.__struct_fields__) | derived
    assert plain["decision"] == {"p50_ms": 1.25, "p99_ms": 9.5} and plain["claim"] is None


@pytest.mark.parametrize(
    "shown",
    [
        "synthetic: 120 hosts in 3 cells, seed 42",
        "instances asked for",
        "2,000",
        "95.0%",
        "no host has [bold]CUSTOM_FPGA[/bold]",
        "1,025 /s",
        "1.25 / 9.50 ms",
        "peak use of VCPU",
        "85.3%",
        "210 MiB",
    ],
)
def test_table_shows(shown: str) -> None:
    assert shown in text(SUMMARY)


def test_commonest_reason_comes_first() -> None:
    shown = text(SUMMARY)
    assert shown.index("    VCPU") < shown.index("no host has")


def test_what_is_unaccounted_for_is_shown_only_if_there_is_any() -> None:
    assert "unaccounted" not in text(SUMMARY)
    assert "unaccounted" in text(msgspec.structs.replace(SUMMARY, asked=2001))


def test_run_without_anything_can_be_shown() -> None:
    nothing = msgspec.structs.replace(
        SUMMARY, asked=0, placed=0, failed=0, refusals={}, decisions=0, wall_seconds=0.0, peak_use={}, cells=1
    )
    assert nothing.decisions_per_second == 0
    assert "120 hosts in 1 cell," in text(nothing)
