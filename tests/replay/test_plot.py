"""The plot of a replay is a PNG, and its columns have the right width."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from roost.replay.plot import column_seconds, draw, duration_text
from roost.replay.samples import UsageSamples

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
    code = "import sys, roost.replay.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
