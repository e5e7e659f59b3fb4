"""``roost ask``: requests hosts from a scheduler, and prints them or the reasons of the refusal."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from roost.cli.bars import bar_of
from roost.cli.connection import ServiceConnection, connected_to
from roost.cli.numbers import WholeNumber
from roost.cli.options import key_lists, key_values
from roost.cli.output import (
    action_as_json,
    amounts_text,
    console,
    note,
    print_further,
    print_json,
    print_table,
    print_warnings,
)
from roost.cli.reasons_text import reasons_text, weights_table
from roost.cli.service_client import RequestRefused, ServiceClient
from roost.model.errors import OperatorError
from roost.model.reasons import MOST_MOVES, Reasons

SECONDS = 90.0
"""Seconds that the scheduler has for its response: longer than a run may take by default."""

REFUSED = 1
"""The exit status if too few hosts fit the request."""


class Addition(click.ParamType[tuple[str, int]]):
    """``HOST=N``: N more hosts that are equal to HOST."""

    name = "host=n"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, equals, number = value.rpartition("=")
        if not equals or not host or not (number.isascii() and number.isdigit()):
            self.fail(f"{value!r} is not HOST=N", param, ctx)
        return host, int(number)


@click.command(epilog="Example: roost ask --vcpus 4 --memory-mb 8192 --count 2 --alternates 1")
@click.option("--vcpus", type=WholeNumber(0), default=1, show_default=True, help="vCPUs.")
@click.option("--memory-mb", type=WholeNumber(0), default=0, help="Memory in MiB.")
@click.option("--disk-gb", type=WholeNumber(0), default=0, help="Root disk in GiB.")
@click.option(
    "--extra-spec",
    "extra_specs",
    multiple=True,
    callback=key_values,
    help="An extra spec of the flavor, as Nova's, KEY=VALUE.",
)
@click.option(
    "--hint", "hints", multiple=True, callback=key_lists, help="A scheduler hint, as Nova's, KEY=VALUE."
)
@click.option("--project", default="demo", show_default=True, help="Project that the instances belong to.")
@click.option("--user", default="demo", show_default=True, help="User that they belong to.")
@click.option("--count", type=WholeNumber(1, 1000), default=1, show_default=True, help="Number of instances.")
@click.option("--alternates", type=WholeNumber(0, 100), default=0, help="Further hosts for each instance.")
@click.option(
    "--spec",
    "spec_file",
    type=click.Path(path_type=Path),
    help="A JSON file with a whole request spec, Roost's or Nova's, instead of these options.",
)
@click.option(
    "--what-if",
    "limit",
    metavar="LIMIT",
    type=WholeNumber(1, 10_000),
    help="Claim nothing: say how many instances fit, up to LIMIT, where, and what binds then.",
)
@click.option("--explain", is_flag=True, help="Claim nothing: say what would come of it, and why.")
@click.option(
    "--moves",
    metavar="N",
    type=WholeNumber(1, MOST_MOVES),
    help="With --explain: if it does not fit, look for up to N instances that could move so that it does.",
)
@click.option("--drain", "drained", metavar="HOST", multiple=True, help="With --what-if: without this host.")
@click.option(
    "--add",
    "added",
    type=Addition(),
    multiple=True,
    help="With --what-if: as if there were N more hosts like HOST, without instances.",
)
@action_as_json
@connected_to("scheduler", "--scheduler")
def ask(
    connection: ServiceConnection,
    vcpus: int,
    memory_mb: int,
    disk_gb: int,
    extra_specs: dict[str, str],
    hints: dict[str, list[str]],
    project: str,
    user: str,
    count: int,
    alternates: int,
    spec_file: Path | None,
    limit: int | None,
    explain: bool,
    moves: int | None,
    drained: tuple[str, ...],
    added: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Ask a scheduler for hosts. They are claimed: delete the allocations of an instance to free its host.
    With --what-if or --explain nothing is claimed.

    If there are none, the exit status is 1, and the steps show how many hosts each of them left.
    """
    scheduler = ServiceClient(connection, SECONDS)
    spec: Any = {
        "project_id": project,
        "user_id": user,
        "flavor": {
            "name": "asked",
            "vcpus": vcpus,
            "memory_mb": memory_mb,
            "disk_gb": disk_gb,
            "extra_specs": extra_specs,
        },
        "scheduler_hints": hints,
    }
    spec = spec if spec_file is None else _read(spec_file)
    if limit is not None:
        supposed = {
            "request_spec": spec,
            "limit": limit,
            "drained": drained,
            "added": [{"like": like, "number": number} for like, number in added],
        }
        answer = scheduler.ask("POST", "/v1/scheduler/what-if", supposed)
        print_warnings(answer)
        (print_json if as_json else _print_what_if)(answer)
        return
    if explain:
        _explain(scheduler, {"request_spec": spec, "count": count, "moves": moves or 0}, as_json)
        return
    if moves is not None:
        raise click.UsageError("--moves needs --explain")
    if drained or added:
        raise click.UsageError("--drain and --add need --what-if")
    body = {
        "request_spec": spec,
        "num_alternates": alternates,
        **({"count": count} if spec_file is None or count > 1 else {}),
    }
    answer, error = _select(scheduler, body)
    print_warnings(answer if error is None else error)
    if as_json:
        print_json(answer)
    elif error is not None:
        click.echo(error["detail"])
        print_further(("step", "", "hosts left"), _funnel(error.get("steps", ())), 1)
        note(f"run {error['run']}")
    elif "selections" in answer:
        print_json(answer["selections"])
    else:
        _print(answer)
    if error is not None:
        sys.exit(REFUSED)


def _explain(scheduler: ServiceClient, body: dict[str, Any], as_json: bool) -> None:
    """Print what would come of a request; the exit status is 1 if it would be refused."""
    answer = scheduler.ask("POST", "/v1/scheduler/explain", body)
    print_warnings(answer)
    reasons = msgspec.convert(answer, Reasons)
    if as_json:
        print_json(answer)
    else:
        for part in reasons_text(reasons):
            console().print(part)
        if reasons.weighed:
            console().print(weights_table(reasons.weighed))
    if not reasons.weighed:
        sys.exit(REFUSED)


def _funnel(steps: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the rows of steps, each with the hosts that it left, as a bar and as a number."""
    first = steps[0]["left"] if steps else 0
    return [(each["name"], bar_of(each["left"], first), str(each["left"])) for each in steps]


def _print_what_if(answer: dict[str, Any]) -> None:
    """Print a response of ``/v1/scheduler/what-if``."""
    fits, on, hosts = answer["fits"], answer["on_hosts"], answer["hosts"]
    more = " or more" if answer.get("limited") or not answer.get("complete", True) else ""
    click.echo(f"{fits}{more} fit, on {on} of {hosts} hosts")
    if not answer.get("complete", True):
        click.echo("the time ended before an instance did not fit: more may fit")
    rows = []
    for share in answer.get("where", ()):
        names, left_out = share["names"].get("names", ()), share["names"].get("left_out", 0)
        named = ", ".join(names) + (f" and {left_out} more" if left_out else "")
        rows.append((str(share["instances"]), str(share["hosts"]), named))
    if rows:
        print_table(("instances each", "hosts", "names"), rows, 2)
    if left_out := answer.get("shares_left_out", 0):
        click.echo(f"and {left_out} smaller numbers of instances")
    if binds := answer.get("binds"):
        click.echo(f"the next one: {binds['sentence']}")


def _print(answer: Mapping[str, Any]) -> None:
    rows = []
    for each in answer["destinations"]:
        amounts: dict[str, int] = {}
        for resources in each["selected"]["allocations"].values():
            for name, amount in resources.items():
                amounts[name] = amounts.get(name, 0) + amount
        others = ", ".join(other["host"] for other in each["alternates"])
        rows.append((each["instance"], each["selected"]["host"], amounts_text(amounts), others))
    print_table(("instance", "host", "claimed", "alternates"), rows)
    note(f"run {answer['run']}")


def _read(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise OperatorError(f"request spec {path} cannot be read: {error}") from error


def _select(scheduler: ServiceClient, body: object) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return the response, and the error in it if no host was found.

    Raises `RequestRefused` for other refusals.
    """
    try:
        return scheduler.ask("POST", "/v1/select_destinations", body), None
    except RequestRefused as refused:
        if "run" not in refused.error:
            raise
        return refused.answer, refused.error
