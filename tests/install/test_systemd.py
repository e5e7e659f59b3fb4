"""The systemd units: systemd accepts them, they are sandboxed, and their commands are ones that Roost has."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from roost.cli.configuration import options_without_effect
from roost.cli.main import roost_command
from roost.process.option_source import Source
from support.processes import ROOST
from support.waiting import patience

FOLDER = Path(__file__).parents[2] / "packaging" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
SYSTEMD_ANALYZE = shutil.which("systemd-analyze")
LARGEST_EXPOSURE = 1.5
"""Of 10. systemd calls up to 2 "safe"; what is left is the network and the host's root directory."""

with_systemd = pytest.mark.skipif(SYSTEMD_ANALYZE is None, reason="systemd-analyze is not installed")
each_unit = pytest.mark.parametrize("unit", UNITS)


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert SYSTEMD_ANALYZE is not None
    command = [SYSTEMD_ANALYZE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=patience(60), check=False)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as they are installed, with the program where it is here. A template has an instance."""
    for unit in UNITS:
        text = (FOLDER / unit).read_text().replace("/opt/roost/bin/roost", str(ROOST))
        (tmp_path / unit).write_text(text)
        (tmp_path / unit.replace("@.", "@8778.")).write_text(text)
    return tmp_path


def section(unit: str, name: str = "Service") -> dict[str, list[str]]:
    """The settings of a section; a setting may occur several times."""
    found: dict[str, list[str]] = {}
    inside = ""
    for line in (FOLDER / unit).read_text().splitlines():
        if line.startswith("["):
            inside = line.strip("[]")
        elif inside == name and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@with_systemd
@each_unit
def test_systemd_accepts_a_unit_without_a_warning(unit: str, installed: Path) -> None:
    checked = analyze("verify", "--man=no", installed / unit.replace("@.", "@8778."))
    # Other units of the machine are loaded as well and may have faults of their own.
    said = [line for line in checked.stderr.splitlines() if unit.partition("@")[0].partition(".")[0] in line]
    assert checked.returncode == 0 and said == [], checked.stderr


@with_systemd
@each_unit
def test_a_unit_is_sandboxed(unit: str, installed: Path) -> None:
    rated = analyze("security", "--offline=true", "--no-pager", installed / unit)
    assert rated.returncode == 0, rated.stderr
    [exposure] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", rated.stdout)
    assert float(exposure) <= LARGEST_EXPOSURE, rated.stdout


def test_all_units_have_the_same_sandbox() -> None:
    first, *others = ((FOLDER / unit).read_text() for unit in UNITS)
    assert others

    def sandbox(text: str) -> str:
        return text[text.index("CapabilityBoundingSet=") : text.index("[Install]")]

    assert all(sandbox(each) == sandbox(first) for each in others)


@each_unit
def test_a_unit_runs_a_command_of_roost(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    [line] = section(unit)["ExecStart"]
    program, name, *arguments = shlex.split(line.replace("%i", "8778"))
    assert program == "/opt/roost/bin/roost"
    command = roost_command.get_command(click.Context(roost_command), name)
    assert command is not None
    [variable] = [each for each in arguments if each.startswith("$")]
    command.make_context(name, [each for each in arguments if each != variable])
    first, *options = section(unit)["Environment"]
    assert first == f"{variable[1:]}="
    for each in options:
        name, _, value = each.partition("=")
        monkeypatch.setenv(name, value)
    assert options_without_effect(Source(()), schedules=True) == []


@each_unit
def test_a_unit_runs_under_the_account_that_sysusers_makes(unit: str) -> None:
    accounts = [
        line.split()[1]
        for line in (FOLDER / "roost.sysusers.conf").read_text().splitlines()
        if line.startswith("u ")
    ]
    assert section(unit)["User"] == section(unit)["Group"] == accounts == ["roost"]


def test_every_unit_is_read_as_one_of_systemd() -> None:
    """A file that is no unit would make the tests above pass for nothing."""
    assert UNITS == [
        "roost-dashboard.service",
        "roost-nova-scheduler.service",
        "roost-placement@.service",
        "roost.service",
    ]
    for unit in UNITS:
        parser = configparser.RawConfigParser(strict=False)
        parser.read(FOLDER / unit)
        assert parser.sections() == ["Unit", "Service", "Install"]
