"""Options of configuration files: every command warns of unknown ones, and the documentation has all."""

import importlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from roost.cli.config import all_groups, describe_options, keystone_groups, markdown, sample_file
from roost.cli.configuration import READ_GROUPS, SYSTEM_GROUPS, options_without_effect, unread
from roost.model.errors import OperatorError
from roost.placement.options import read_options
from roost.process.option_source import Setting, Source
from roost.server.all_in_one.data_directory import in_directory
from roost.server.neighbours.options import read_neighbour_options
from roost.server.options import read_conducting_options, read_scheduling_options
from roost.server.programs import check_options
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


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("OS_PLACEMENT_DATABSE__CONNECTION", "OS_PLACEMENT_DATABASE__CONNECTION"),
        ("OS_PLACEMENT_DATABASE_CONNECTION", "OS_PLACEMENT_DATABASE__CONNECTION"),
        ("os_api__auth_strategy", "OS_API__AUTH_STRATEGY"),
        ("OS_CONDUCTR__MAX_ATTEMPTS", "OS_CONDUCTOR__MAX_ATTEMPTS"),
    ],
)
def test_a_misspelt_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    for other in ("OS_USERNAME", "OS_AUTH_URL", "OS_PROJECT_NAME", "OS_IDENTITY_API_VERSION", "OS_CACERT"):
        monkeypatch.setenv(other, "of a client")
    monkeypatch.setenv(name, "1")
    assert options_without_effect(Source(), schedules=True) == [
        f"environment: {name} is ignored: no such option; did you mean {meant}?"
    ]


@pytest.mark.parametrize("way", ["file", "environment", "command line"])
def test_what_nova_has_among_its_defaults_counts_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\nservice_down_time = 7\ndefault_availability_zone = here\n")
    source = Source((str(file),))
    if way == "environment":
        source = Source()
        monkeypatch.setenv("OS_DEFAULT__SERVICE_DOWN_TIME", "7")
        monkeypatch.setenv("OS_DEFAULT__DEFAULT_AVAILABILITY_ZONE", "here")
    elif way == "command line":
        named = {"service_down_time": "7", "default_availability_zone": "here"}
        source = Source((), tuple(Setting("DEFAULT", *each) for each in named.items()))
    options = read_scheduling_options(source, hosts_needed=False).scheduler
    assert (options.service_down_time, options.default_availability_zone) == (7.0, "here")
    assert options_without_effect(source, schedules=True) == []


def test_each_group_is_read_by_a_command() -> None:
    groups = {*all_groups(), *keystone_groups(), "simulated", "libvirt", "redfish"}
    read = {group for groups in READ_GROUPS.values() for group in groups}
    assert groups - read == set()


@pytest.mark.parametrize("command", ["serve", "scheduler", "conductor", "cell-conductor", "neighbours", "up"])
def test_a_command_reads_no_other_groups_than_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    registered: set[str] = set()
    register = Source.register

    def note(self: Source, conf: Any, groups: Any) -> None:
        registered.update(groups)
        register(self, conf, groups)

    monkeypatch.setattr(Source, "register", note)
    source = in_directory(
        Source((), (Setting("cell_a", "connection", f"sqlite:///{tmp_path}/a.db"),)), tmp_path
    )
    read: Any = {
        "serve": read_options,
        "scheduler": read_scheduling_options,
        "neighbours": read_neighbour_options,
        "conductor": read_conducting_options,
        "cell-conductor": partial(read_conducting_options, cell="a"),
        "up": read_conducting_options,
    }[command]
    options = read(source)
    check_options(command, options)
    assert options.shown()
    assert len(registered) > 5
    assert [group for group in registered if unread(command, group)] == []


def test_an_option_that_a_command_does_not_read_is_refused(tmp_path: Path) -> None:
    done = run_roost("up", "--data-dir", tmp_path / "data", "--set", "simulated.profile=bare-metal")
    assert (done.returncode, done.stderr) == (
        2,
        "roost: --set simulated.profile has no effect: roost up does not read [simulated]; "
        "it is read by roost agent\n",
    )
    assert not (tmp_path / "data").exists()


def test_an_agent_reads_the_options_of_its_driver_alone(tmp_path: Path) -> None:
    done = run_roost(
        *agent(tmp_path),
        "--endpoint",
        "http://127.0.0.1:1",
        "--driver",
        "redfish",
        "--set",
        "simulated.vcpus=3",
    )
    assert done.returncode == 2
    assert "the driver redfish does not read [simulated]" in done.stderr


def test_what_is_misspelt_is_named_although_the_start_fails(tmp_path: Path, file: Path) -> None:
    failing = ("--set", "overload.query_seconds=soon")
    done = run_roost("serve", "--config-file", file, *failing)
    assert done.returncode == 2
    assert all(name in done.stderr for name in NAMES)
    assert done.stderr.splitlines()[-1].startswith("roost: configuration: overload.query_seconds: 'soon'")


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


def test_the_groups_are_named_as_their_structs_name_them() -> None:
    for group, path in SYSTEM_GROUPS.items():
        module, name = path.split(":")
        assert getattr(importlib.import_module(module), name).group == group


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
