"""Settings that are compared over one workload: their names, their figures, the table and the plot."""

import io
import itertools
import json
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from rich.console import Console

from bench.replay.test_command import trace  # noqa: F401
from roost.bench.errors import PlotUnavailable, ReplayError
from roost.bench.replay.comparison import (
    ReplaySetting,
    SettingOutcome,
    parse_settings,
    render_comparison,
)
from roost.bench.replay.comparison_plot import draw_comparison
from roost.bench.replay.occupancy import Occupancy, occupancy_of
from roost.bench.replay.state import UsageSamples
from roost.bench.replay.summary import Latency, Summary
from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source
from support.fleets import fleet_of, worlds
from support.oracle import Provider, World
from support.processes import run_roost


def test_settings_are_named_and_collect_options_and_files() -> None:
    found = parse_settings(["as-is", "pack:weights.ram=-1", "pack:/etc/a=b.conf", "pack:weights.cpu = a:b=c"])
    options = (Setting("weights", "ram", "-1"), Setting("weights", "cpu", "a:b=c"))
    assert found == (ReplaySetting("as-is"), ReplaySetting("pack", ("/etc/a=b.conf",), options))
    base = Source(("base.conf",), (Setting("weights", "ram", "2"),))
    assert found[0].source(base) == base
    merged = found[1].source(base)
    assert merged.files == ("base.conf", "/etc/a=b.conf")
    assert merged.settings == (Setting("weights", "ram", "2"), *options), "the last of equal settings counts"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["a"], "1 settings; from 2 to 7"),
        ([str(number) for number in range(8)], "8 settings; from 2 to 7"),
        (["a", "../b"], "'../b' is no name"),
        (["a", ":x.y=1"], "'' is no name"),
    ],
)
def test_settings_that_cannot_be_compared_are_refused(texts: list[str], words: str) -> None:
    with pytest.raises(OperatorError, match=words):
        parse_settings(texts)


@settings(deadline=None)
@given(worlds())
def test_hosts_in_use_and_their_bound_are_those_of_plain_counting(world: World) -> None:
    def root(uuid: str) -> str:
        parent = world[uuid].parent
        return uuid if parent is None else root(parent)

    trees: dict[str, list[Provider]] = {}
    for uuid, provider in world.items():
        trees.setdefault(root(uuid), []).append(provider)

    def capacities(name: str) -> list[int]:
        return [
            sum(max(each.inventories[name].capacity, 0) for each in tree if name in each.inventories)
            for tree in trees.values()
        ]

    classes = {name for each in world.values() for name in each.inventories}
    used = {name: sum(each.used.get(name, 0) for each in world.values()) for name in classes}
    occupied = sum(any(any(each.used.values()) for each in tree) for tree in trees.values())
    found = occupancy_of(fleet_of(world))
    assert found.in_use == occupied
    if any(amount > sum(capacities(name)) for name, amount in used.items()):
        return  # It is used beyond its capacity: no number of hosts would do.
    for number in range(len(trees) + 1):
        sufficient = all(
            any(sum(some) >= amount for some in itertools.combinations(capacities(name), number))
            for name, amount in used.items()
        )
        assert sufficient == (number >= found.fewest)


def outcome(
    name: str, in_use: list[int], refused: list[int], seconds: list[int] | None = None
) -> SettingOutcome:
    samples = UsageSamples()
    for second, hosts, no in zip(seconds or range(0, 300 * len(in_use), 300), in_use, refused, strict=True):
        share = {"VCPU": hosts / 10}
        samples.add(
            second, share, {"VCPU": (0.0,) * 5}, placed=1, refused=no, occupancy=Occupancy(hosts, hosts // 2)
        )
    summary = Summary(
        workload="test",
        hosts=10,
        cells=1,
        requests=3,
        asked=9,
        placed=len(in_use),
        placed_on_alternate=0,
        failed=1,
        refusals={"no [room]": sum(refused)} if any(refused) else {},
        departures=0,
        decisions=3,
        wall_seconds=1.0,
        peak_rss_mib=1.0,
        peak_use={"VCPU": max(in_use, default=0) / 10},
        decision=Latency(1.0, 2.5) if name == "a" else None,
    )
    return SettingOutcome.of(ReplaySetting(name, (), (Setting("g", "o", name),)), summary, samples)


def test_hosts_needed_and_empty_hosts_are_of_the_whole_replay() -> None:
    found = outcome("a", [2, 8, 4], [0, 0, 3], [0, 300, 900])
    assert (found.hosts_needed, found.hosts_at_least, found.empty_least) == (8, 4, 2)
    # 8 hosts are empty for 300 seconds, 2 for 600, and 6 for the last bin of 300.
    assert found.empty_mean == (8 * 300 + 2 * 600 + 6 * 300) / 1200
    data = json.loads(json.dumps(found.to_dict()))
    assert data["over_time"]["hosts_in_use"] == [2, 8, 4]
    assert data["empty_hosts"] == {"mean": 4.5, "least": 2}
    assert data["options"] == {"g.o": "a"} and data["summary"]["refused"] == 3


def test_workload_without_requests_cannot_be_compared() -> None:
    with pytest.raises(ReplayError, match="no requests"):
        outcome("a", [], [])


def test_table_has_the_settings_side_by_side_with_differences_from_the_first() -> None:
    output = io.StringIO()
    compared = [outcome("a", [2, 8], [0, 0]), outcome("b", [2, 5], [1, 1])]
    Console(file=output, width=120).print(render_comparison(compared))
    lines = {line[:37].strip(): line[37:].split() for line in output.getvalue().splitlines()}
    assert lines["hosts needed, the most in use at once"] == ["8", "5", "(-3)"]
    assert lines["at least, by the amounts in use"] == ["4", "2", "(-2)"]
    assert lines["empty hosts, mean over time"] == ["5.0", "6.5", "(+1.5)"]
    assert lines["no [room]"] == ["0", "2", "(+2)"], "a reason is no markup"
    assert lines["peak use of VCPU"] == ["80.0%", "50.0%"]
    assert lines["decision latency, p50 / p99"] == ["1.00", "/", "2.50", "ms", "–"]


@pytest.mark.parametrize("number", [2, 7])
def test_plot_is_drawn_in_the_format_of_its_name(tmp_path: Path, number: int) -> None:
    compared = [outcome(f"setting-{each}", [1, each + 1], [0, each]) for each in range(number)]
    draw_comparison(compared, tmp_path / "plot.png", "a title")
    head = (tmp_path / "plot.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", head[16:20]) == (1600,)
    draw_comparison(compared, tmp_path / "plot.SVG", "a title", in_order=True)
    assert "<svg" in (tmp_path / "plot.SVG").read_text()
    with pytest.raises(PlotUnavailable, match=r"plot.gif: the name must end in one of .png, .svg, .pdf"):
        draw_comparison(compared, tmp_path / "plot.gif", "a title")


def compare(trace: Path, data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:  # noqa: F811
    return run_roost(
        "replay", "azure-v1", trace, "--data-dir", data, "--hosts", "3", "--cells", "1", *arguments
    )


PACKED = ("--compare", "pack:filter_scheduler.ram_weight_multiplier=-1.0")


def test_settings_are_replayed_one_after_the_other_and_plotted(trace: Path, tmp_path: Path) -> None:  # noqa: F811
    # With other weighers the instances are on other hosts. CPU is the tie that both weighers see.
    options = (
        *("--compare", "spread", *PACKED),
        *("--compare", "pack:filter_scheduler.cpu_weight_multiplier=-1.0"),
    )
    done = compare(trace, tmp_path / "data", "--json", *options)
    assert done.returncode == 0, done.stderr
    spread, pack = json.loads(done.stdout)["settings"]
    assert (spread["name"], pack["name"]) == ("spread", "pack")
    assert spread["summary"]["placed"] == pack["summary"]["placed"] == 5
    assert pack["hosts_needed"] == 1 < spread["hosts_needed"]
    assert pack["empty_hosts"]["mean"] > spread["empty_hosts"]["mean"]
    assert (tmp_path / "data" / "comparison.png").read_bytes().startswith(b"\x89PNG")

    # As after an interruption: one setting is not finished, and the other is not replayed again.
    state = tmp_path / "data" / "pack" / "replay.json"
    state.write_text(state.read_text().replace('"finished":true', '"finished":false'))
    kept = tmp_path / "data" / "spread" / "kept.db"
    kept.write_text("it was not replaced")
    again = compare(trace, tmp_path / "data", "--no-plot", *options)
    assert again.returncode == 0, again.stderr
    assert "hosts needed" in again.stdout and kept.exists()
    # All are finished: the next comparison is a new one.
    anew = compare(trace, tmp_path / "data", "--no-plot", *options)
    assert anew.returncode == 0, anew.stderr
    assert not kept.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--compare", "a"), "1 settings"),
        (("--compare", "a", "--compare", "b:filter_scheduler.ram_wieght=1"), "ram_wieght"),
        (("--compare", "a", *PACKED, "--plot", "plot.gif"), "plot.gif"),
        (("--compare", "a", *PACKED, "--url", "http://127.0.0.1:1"), "--compare changes options"),
        (("--compare", "a", "--compare", "b:/no/such.conf"), "/no/such.conf"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_runs(
    trace: Path,  # noqa: F811
    tmp_path: Path,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    refused = compare(trace, tmp_path / "data", *arguments)
    assert refused.returncode == 2 and words in refused.stderr, refused.stderr
    assert not (tmp_path / "data").exists()
