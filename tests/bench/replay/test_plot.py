"""The plot of a replay is a PNG, and its columns have the right width."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from roost.bench.replay.plot import column_seconds, draw, duration_text
from roost.bench.replay.state import UsageSamples

EVEN = (0.1, 0.2, 0.5, 0.7, 0.9)
SPREAD = {"VCPU": EVEN, "MEMORY_MB": EVEN}


def samples(*seconds: int) -> UsageSamples:
    taken = UsageSamples()
    for second in seconds:
        taken.add(second, {"VCPU": 0.5, "MEMORY_MB": 0.25}, SPREAD, placed=3, refused=1, on_alternate=1)
    return taken


@pytest.mark.parametrize(
    "seconds", [(1800000,), (0, 300, 600), (0, 300, 86400), tuple(range(0, 3_000_000, 300))]
)
def test_picture_is_a_png_of_the_promised_size(tmp_path: Path, seconds: tuple[int, ...]) -> None:
    path = tmp_path / "use.png"
    draw(samples(*seconds), path, "a title")
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:]) == (1600, 900)


def test_nothing_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no samples"):
        draw(UsageSamples(), tmp_path / "use.png")
    assert not list(tmp_path.iterdir())


def test_bins_without_resource_classes_can_be_drawn(tmp_path: Path) -> None:
    taken = UsageSamples()
    taken.add(0, {}, {}, placed=0)
    draw(taken, tmp_path / "use.png")
    assert (tmp_path / "use.png").exists()


def test_bins_must_have_the_same_resource_classes() -> None:
    taken = samples(0)
    with pytest.raises(ValueError, match=r"shares of \['VCPU'\], but of \['MEMORY_MB', 'VCPU'\] before"):
        taken.add(300, {"VCPU": 0.5}, {"VCPU": EVEN}, placed=0)
    assert taken.seconds == [0]


def test_bins_must_be_in_order() -> None:
    taken = samples(300)
    with pytest.raises(ValueError, match="a bin at 300, but one at 300 before"):
        taken.add(300, {"VCPU": 0.5, "MEMORY_MB": 0.5}, SPREAD, placed=0)


@pytest.mark.parametrize(
    ("seconds", "width"),
    [
        ([0], 300),
        ([0, 300, 900], 300),
        ([0, 600, 1200], 600),
        (range(0, 1200 * 300, 300), 300),
        (range(0, 1201 * 300, 300), 600),
    ],
)
def test_column_is_a_bin_or_as_many_as_needed_to_show_all(seconds: list[int], width: int) -> None:
    assert column_seconds(seconds) == width


@pytest.mark.parametrize(
    ("seconds", "shown"), [(300, "5 min"), (10800, "3 h"), (5400, "90 min"), (45, "45 s")]
)
def test_durations_are_in_their_greatest_whole_unit(seconds: int, shown: str) -> None:
    assert duration_text(seconds) == shown


def test_matplotlib_is_not_imported_until_something_is_drawn() -> None:
    code = "import sys, roost.bench.replay.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def figure_of(
    monkeypatch: pytest.MonkeyPatch, path: Path, taken: UsageSamples, in_order: bool = False
) -> Figure:
    """The figure that is drawn."""
    drawn: list[Figure] = []
    save = Figure.savefig

    def kept(self: Figure, *arguments: object, **options: object) -> None:
        drawn.append(self)
        save(self, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", kept)
    draw(taken, path / "use.png", in_order=in_order)
    return drawn[0]


@pytest.mark.parametrize(("share", "least", "most"), [(0.011, 1.1, 2.0), (0.9, 90, 105), (1.4, 140, 160)])
def test_axis_of_use_fits_the_greatest_use(monkeypatch, tmp_path: Path, share, least, most) -> None:
    taken = UsageSamples()
    taken.add(0, {"VCPU": share}, {"VCPU": (share,) * 5}, placed=1)
    for axes in figure_of(monkeypatch, tmp_path, taken).axes[:2]:
        assert least <= axes.get_ylim()[1] <= most


def test_spread_is_that_of_the_fullest_class_and_alternates_are_told_apart(
    monkeypatch, tmp_path: Path
) -> None:
    taken = UsageSamples()
    spread = {"DISK_GB": (0.0,) * 5, "VCPU": (0.05, 0.25, 0.5, 0.75, 0.95)}
    taken.add(0, {"DISK_GB": 0.1, "VCPU": 0.5}, spread, placed=5, on_alternate=2, refused=1, failed=3)
    _, hosts, counts = figure_of(monkeypatch, tmp_path, taken).axes
    assert hosts.get_ylabel() == "VCPU of a host, %"
    assert [each.get_text() for each in hosts.get_legend().get_texts()] == [
        "90 % of hosts",
        "50 % of hosts",
        "median host",
    ]
    assert {each.get_text() for each in counts.get_legend().get_texts()} == {
        "placed at once, 3",
        "placed on an alternate, 2",
        "refused, 1",
        "failed, 3",
    }


@pytest.mark.parametrize(
    ("seconds", "in_order", "label"),
    [
        ((0, 300, 86400 * 30), False, "virtual time, days"),
        ((0, 3600, 36000), False, "virtual time, hours"),
        ((0, 300, 1200), False, "virtual time, minutes"),
        ((0,), False, "virtual time, seconds"),
        ((0, 200, 400), True, "requests, in order of arrival"),
    ],
)
def test_time_is_in_a_unit_of_which_it_has_several(
    monkeypatch, tmp_path: Path, seconds, in_order, label
) -> None:
    figure = figure_of(monkeypatch, tmp_path, samples(*seconds), in_order)
    assert figure.axes[2].get_xlabel() == label
