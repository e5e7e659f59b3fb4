"""The forms of results and of errors: tables, JSON, values, chosen columns, names alone."""

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from roost.cli.main import COMMANDS, roost_command
from roost.cli.output import as_json, print_facts, print_further, print_json, print_table, text_of
from roost.cli.service_client import RequestRefused, ServiceClient

HOSTS = [
    {"host": "a", "since": 0.0, "instances": 3},
    {"host": "b", "since": 86400.5, "instances": None},
]
FOUND: dict[str, Any] = {
    "uuid": "u1",
    "changed_at": 0.0,
    "claim": {"node-1": {"VCPU": 4, "MEMORY_MB": 8192}},
    "reason": None,
    "enabled": True,
}


@click.command()
@as_json
def hosts(as_json: bool) -> None:
    if as_json:
        print_json({"hosts": HOSTS, "cells_down": []})
        return
    rows = [(str(each["host"]), text_of("since", each["since"]), str(each["instances"])) for each in HOSTS]
    print_table(("host", "since (UTC)", "instances"), rows, 1)
    print_further(("more",), [("beside",)])


@click.command()
@as_json
def changes(as_json: bool) -> None:
    print_table(("at (UTC)", "host"), [(text_of("since", 0.0), "a")], named_by="host")


@click.command()
@as_json
def shown(as_json: bool) -> None:
    print_json(FOUND) if as_json else print_facts(FOUND)


def run(command: click.Command, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_a_table_has_a_line_for_each_row_and_times_as_times() -> None:
    assert run(hosts).output.splitlines() == [
        "host  since (UTC)          instances",
        "a     1970-01-01 00:00:00          3",
        "b     1970-01-02 00:00:00       None",
        "",
        "more",
        "beside",
    ]


def test_values_are_for_programs() -> None:
    values = run(hosts, "--format", "value")
    assert values.output == "a\t1970-01-01 00:00:00\t3\nb\t1970-01-02 00:00:00\tNone\n"
    assert run(hosts, "--format", "value", "--columns", "instances,Host").output == "3\ta\nNone\tb\n"
    assert run(hosts, "--quiet").output == "a\nb\n"
    assert run(shown, "--quiet").output == "u1\n"
    assert run(changes, "--quiet").output == "a\n"
    claim = run(shown, "--format", "value", "--columns", "claim")
    assert claim.output == "8192 MEMORY_MB, 4 VCPU of node-1\n"


def test_columns_are_chosen_in_every_form() -> None:
    assert run(hosts, "--columns", "since").output.splitlines()[0] == "since (UTC)"
    assert json.loads(run(hosts, "--json", "--columns", "host").output) == {
        "hosts": [{"host": "a"}, {"host": "b"}],
        "cells_down": [],
    }
    assert json.loads(run(shown, "--format", "json", "--columns", "enabled,uuid").output) == {
        "enabled": True,
        "uuid": "u1",
    }
    assert run(shown, "--columns", "enabled").output == "field    value\nenabled  yes\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--columns", "hots"], "no column 'hots': there are host, since, instances"),
        (["--json", "--columns", "hots"], "no column 'hots'"),
        (["--json", "--format", "table"], "--json and --format table exclude each other"),
        (["--quiet", "--json"], "--quiet prints names alone"),
        (["--quiet", "--columns", "host"], "--quiet prints names alone"),
    ],
)
def test_what_excludes_each_other_is_told(arguments: list[str], says: str) -> None:
    done = run(hosts, *arguments)
    assert (done.exit_code, says in done.output) == (2, True), done.output


def refusing(self: ServiceClient, *_: Any) -> Any:
    error = {"status": 409, "code": "conductor.conflict", "detail": "it is in use"}
    raise RequestRefused(409, "it is in use", {"errors": [error]})


def test_errors_are_json_where_results_are(monkeypatch) -> None:
    refused = run(roost_command, "cell", "list", "--json", "--url", "http://127.0.0.1:9")
    assert (refused.exit_code, refused.stdout) == (2, "")
    told = json.loads(refused.stderr)
    assert (told["exit_status"], told["errors"][0]["code"]) == (2, "roost.could_not_run")
    assert "http://127.0.0.1:9" in told["errors"][0]["detail"]
    wrong = run(roost_command, "cell", "list", "--format", "json", "--nonsense")
    assert json.loads(wrong.stderr)["errors"][0]["code"] == "roost.usage"
    monkeypatch.setattr(ServiceClient, "ask", refusing)
    refused = run(roost_command, "cell", "remove", "c", "--json")
    assert (refused.exit_code, json.loads(refused.stderr)["errors"][0]["code"]) == (1, "conductor.conflict")
    assert run(roost_command, "cell", "remove", "c").stderr == "roost: it is in use\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["instanc", "list"], "instance"),
        (["instance", "lst"], "list"),
        (["cel"], "cell"),
        (["instance", "list", "--stat", "x"], "--state"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(words: list[str], meant: str) -> None:
    done = run(roost_command, *words)
    assert done.exit_code == 2
    assert meant in done.stderr.partition("Did you mean")[2], done.stderr


def test_the_help_of_a_group_says_of_each_command_what_it_does_in_a_whole_sentence() -> None:
    context = click.Context(roost_command)
    commands = [roost_command.get_command(context, name) for name in COMMANDS]
    groups = [roost_command, *(each for each in commands if isinstance(each, click.Group))]
    assert len(groups) > 5
    for group in groups:
        _, _, listed = run(group, "--help").output.partition("Commands:\n")
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            sentence = command.get_short_help_str(1000)
            assert sentence.endswith("."), f"{group.name} {name}"
            assert sentence in " ".join(listed.split()), f"{group.name} {name}"


def test_every_command_that_has_a_result_has_its_forms() -> None:
    without = {"agent", "cell-conductor", "completion", "conductor", "man", "neighbours", "scheduler"}
    without |= {"dashboard", "serve", "up"}
    # They print no result, but a file or a sentence.
    silent = {"all", "peer-setup", "power-off", "render", "sample", "clean", "release", "revoke"}

    def leaves(command: click.Command) -> list[click.Command]:
        if not isinstance(command, click.Group):
            return [command]
        return [leaf for each in command.commands.values() for leaf in leaves(each)]

    context = click.Context(roost_command)
    for name in sorted(COMMANDS.keys() - without):
        command = roost_command.get_command(context, name)
        assert command is not None
        for leaf in leaves(command):
            options = {option for each in leaf.params for option in each.opts}
            assert leaf.name in silent or {"--json", "--format"} <= options, f"{name} {leaf.name}"
