"""Options of configuration files: every command warns of unknown ones, and the documentation has all."""

import importlib
import json
from pathlib import Path

import pytest

from roost.auth import Source
from roost.auth.source import Setting
from roost.cli.config import all_groups, describe_options, keystone_groups, markdown, sample_file
from roost.cli.configuration import SYSTEM_GROUPS, options_without_effect
from roost.conducting.options import read_conducting_options
from roost.model.errors import OperatorError
from support.processes import free_port, run_roost

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
BEGIN = "<!-- options: made by `roost config` -->\n"
END = "<!-- end of options -->\n"

MISSPELT = """
[conductor]
max_atempts = 4
[filter_scheduler]
enabled_filters = ComputeFilter
host_subsetsize = 3
[ledger]
keep_dais = 3
[placement_databse]
connection = sqlite:///x
"""
NAMES = ("max_atempts", "host_subsetsize", "keep_dais", "connection")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "roost.conf"
    path.write_text(MISSPELT)
    return path


def commands(tmp_path: Path) -> dict[str, tuple[str, ...]]:
    """Each command that reads a configuration, with arguments with which it fails right after."""
    (tmp_path / "data").write_text("no folder")
    port = ("--port", str(free_port()))
    nothing = f"sqlite:///{tmp_path}/none/x.db"
    return {
        "serve": ("serve", *port, "--database", f"sqlite:///{tmp_path}/x.db", "--set", "no.thing=1"),
        "up": ("up", *port, "--data-dir", f"{tmp_path}/data"),
        "replay": ("replay", "demo", "--no-plot", "--data-dir", f"{tmp_path}/data"),
        "import": ("db", "import-placement", "--from", nothing, "--database", nothing),
        "agent": (*agent(tmp_path), "--endpoint", "http://127.0.0.1:1"),
    }


def agent(tmp_path: Path) -> tuple[str, ...]:
    """The command of an agent without a token, and without an endpoint."""
    nowhere = ("--token-file", f"{tmp_path}/none", "--state-dir", f"{tmp_path}/state")
    return ("agent", "--host", "a", *nowhere)


@pytest.mark.parametrize("command", ["up", "replay", "import", "agent"])
def test_every_command_warns_of_options_that_there_are_not(tmp_path: Path, file: Path, command: str) -> None:
    done = run_roost(*commands(tmp_path)[command], "--config-file", file)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line for line in lines if "is ignored" in line] == [
        f"roost: {line}" for line in options_without_effect(Source((str(file),)))
    ]
    assert all(any(name in line for line in lines) for name in NAMES)


def test_near_names_are_suggested(file: Path) -> None:
    assert options_without_effect(Source((str(file),))) == [
        f"{file}: [conductor] max_atempts is ignored: no such option; did you mean max_attempts?",
        f"{file}: [filter_scheduler] host_subsetsize is ignored: no such option; "
        "did you mean host_subset_size?",
        f"{file}: [ledger] keep_dais is ignored: no such option; did you mean keep_days?",
        f"{file}: [placement_databse] connection is ignored: no such option; there is one in "
        "[placement_database]",
    ]


def test_the_environment_is_looked_at_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CONDUCTOR__MAX_ATEMPTS", "4")
    monkeypatch.setenv("OS_CONDUCTOR__MAX_ATTEMPTS", "4")
    assert options_without_effect(Source()) == [
        "environment: [conductor] max_atempts is ignored: no such option; did you mean max_attempts?"
    ]


def test_on_the_command_line_an_unknown_option_stops(tmp_path: Path, file: Path) -> None:
    done = run_roost(*commands(tmp_path)["serve"], "--config-file", file)
    assert (done.returncode, done.stderr) == (2, "roost: --set no.thing: no such option\n")


@pytest.mark.parametrize(
    "setting", ["agent.pol_seconds=3", "agent.poll_seconds=nan", "agent.poll_seconds=-1"]
)
def test_an_agent_refuses_a_wrong_setting(tmp_path: Path, setting: str) -> None:
    done = run_roost(*agent(tmp_path), "--endpoint", "http://127.0.0.1:1", "--set", setting)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert setting.partition("=")[0].partition(".")[2] in done.stderr


def test_an_agent_takes_a_right_setting(tmp_path: Path) -> None:
    done = run_roost(*agent(tmp_path), "--endpoint", "http://127.0.0.1:1", "--set", "agent.poll_seconds=3")
    assert "poll_seconds" not in done.stderr
    assert f"{tmp_path}/none" in done.stderr, "it comes as far as its token, which is not there"


@pytest.mark.parametrize("endpoint", ["foo", "cell1:8781", "ftp://cell1", "http://", "http://[1"])
def test_an_endpoint_that_is_no_url_ends_an_agent(tmp_path: Path, endpoint: str) -> None:
    done = run_roost(*agent(tmp_path), "--endpoint", endpoint)
    assert done.returncode == 2
    assert f"--endpoint {endpoint!r} is no URL" in done.stderr


@pytest.mark.parametrize("value", ["nan", "inf", "Infinity"])
def test_no_option_is_a_number_that_is_not_finite(tmp_path: Path, value: str) -> None:
    file = tmp_path / "roost.conf"
    file.write_text(f"[conductor]\nbuild_seconds_limit = {value}\n")
    for source, text in (
        (Source((str(file),)), "it is no finite number"),
        (Source((), (Setting("conductor", "build_seconds_limit", value),)), f"{value!r} is refused"),
    ):
        with pytest.raises(OperatorError, match=text) as refused:
            read_conducting_options(source)
        assert "build_seconds_limit" in str(refused.value)


def test_the_documentation_has_the_options_as_they_are() -> None:
    text = DOCUMENT.read_text()
    written = text.partition(BEGIN)[2].partition(END)[0]
    assert written == markdown(list(describe_options())), "write the output of `roost config` there"


def test_each_option_is_explained_in_sentences() -> None:
    for each in describe_options():
        assert each.help and each.help.endswith("."), each


def test_the_list_is_printed_as_a_table_or_as_json() -> None:
    assert run_roost("config").stdout == markdown(list(describe_options()))
    listed = json.loads(run_roost("config", "--json").stdout)
    assert {
        "group": "conductor",
        "option": "max_attempts",
        "type": "integer from 1",
        "default": "3",
    }.items() <= (next(each for each in listed if each["option"] == "max_attempts").items())


def test_the_groups_are_named_as_their_modules_name_them() -> None:
    assert {group: importlib.import_module(module).GROUP for group, module in SYSTEM_GROUPS.items()} == {
        group: group for group in SYSTEM_GROUPS
    }


def test_a_sample_has_every_option_and_each_line_of_it_is_taken(tmp_path: Path) -> None:
    text = sample_file({**all_groups(), **keystone_groups()})
    for each in describe_options():
        section = text[text.index(f"[{each.group}]\n") :].split("\n[", 1)[0]
        assert f"\n#{each.option} =" in section, each
    plugin = ("#auth_type", "#user_domain_name", "#endpoint_override")
    assert all(line in text for line in plugin)
    lines = [line[1:] if line.startswith("#") and line[1] != " " else line for line in text.splitlines()]
    taken = tmp_path / "roost.conf"
    kept = [line for line in lines if not line.endswith("=")]
    taken.write_text("\n".join(kept) + "\n[placement]\nauth_type = password\n")
    ignored = options_without_effect(Source((str(taken),)), schedules=True)
    assert not [line for line in ignored if "keystone_authtoken" not in line]
