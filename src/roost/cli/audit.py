"""``roost audit``: findings and repairs of the conductors' audit, and permission for repairs."""

import time
from typing import Any

import click

from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import as_json, note, print_json, print_table, utc
from roost.cli.service_client import ServiceClient, with_conductor
from roost.model.errors import OperatorError

PATH = "/v1/audit"
LOOK_SECONDS = 1.0
"""Seconds between two checks whether a round has ended."""


@click.command(
    epilog="Example: roost audit --dry-run\n\nExample: roost audit --repair --most 25",
)
@click.option("--now", is_flag=True, help="Ask for a round, and wait until it has ended.")
@click.option("--dry-run", is_flag=True, help="As --now, and the round repairs nothing.")
@click.option("--repair", is_flag=True, help="As --now, and permit the round as many repairs as --most says.")
@click.option("--most", type=WholeNumber(1), help="Make at most N repairs. Needs --repair.", metavar="N")
@click.option("--repairs", is_flag=True, help="Show the repairs that were made instead.")
@click.option(
    "--wait-seconds",
    type=Number(min=1.0),
    default=600.0,
    show_default=True,
    help="Seconds to wait for a round at most.",
)
@as_json
@with_conductor
def audit(
    conductor: ServiceClient,
    now: bool,
    dry_run: bool,
    repair: bool,
    most: int | None,
    repairs: bool,
    wait_seconds: float,
    as_json: bool,
) -> None:
    """Show what is wrong between claims, mappings and instances, and what would repair it.

    Conductors compare all the time, and repair what is certain. Many repairs at once wait for an operator:
    --repair --most N permits the next round N of them. Without it nothing is changed.

    Exit status: 0 nothing is wrong, 1 something is or a cell could not be read, 2 could not run.
    """
    if repair != (most is not None):
        raise click.UsageError("--repair and --most go together")
    if repair and dry_run:
        raise click.UsageError("--repair and --dry-run exclude each other")
    if repairs:
        _show_repairs(conductor, as_json)
        return
    if now or dry_run or repair:
        wanted = {"dry_run": True} if dry_run else {"most": most or 0}
        number = conductor.ask("POST", f"{PATH}/rounds", wanted)["round"]
        _wait(conductor, number, wait_seconds)
    findings: list[dict[str, Any]] = []
    found: dict[str, Any] = {}
    for found in conductor.pages(PATH, "findings", {}):
        findings += found["findings"]
    if not found["round"]:
        raise OperatorError("no round of the audit has ended yet: see roost audit --now")
    if as_json:
        print_json({**{name: value for name, value in found.items() if name != "next"}, "findings": findings})
    else:
        _print(found, findings)
    if found["found"] or found["unread"] or found["asks"]:
        raise SystemExit(1)


def _wait(conductor: ServiceClient, number: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while conductor.ask("GET", PATH, query={"limit": 1})["round"] < number:
        if time.monotonic() > until:
            raise OperatorError(
                f"round {number} of the audit has not ended after {seconds:g} s: is a conductor up? See "
                "roost service list --kind audit"
            )
        time.sleep(LOOK_SECONDS)


def _print(found: dict[str, Any], findings: list[dict[str, Any]]) -> None:
    if findings:
        rows = [
            (
                each["kind"],
                each["subject"],
                f"{each['detail']}; expected: {each['expected']}",
                _remedy(each),
            )
            for each in findings
        ]
        print_table(("finding", "subject", "what is there", "repair"), rows, named_by="subject")
    note(
        f"Round {found['round']} ended at {utc(found['ended_at'])}: {found['instances']} instances "
        f"compared, {found['found']} findings."
    )
    for cell, why in found["unread"].items():
        click.echo(f"roost: cell {cell} could not be read: {why}", err=True)
    if found["asks"]:
        click.echo(f"roost: {found['asks']}: roost audit --repair --most N", err=True)


def _remedy(finding: dict[str, Any]) -> str:
    if finding["action"] is None:
        return "none that is certain"
    if finding["waits_for"]:
        return f"{finding['action']} waits: {finding['waits_for']}"
    return str(finding["action"])


def _show_repairs(conductor: ServiceClient, as_json: bool) -> None:
    repairs = [each for page in conductor.pages(f"{PATH}/repairs", "repairs", {}) for each in page["repairs"]]
    if as_json:
        print_json({"repairs": repairs})
        return
    rows = [
        (
            utc(each["at"]),
            each["by"],
            each["finding"]["action"],
            each["finding"]["subject"],
            each["finding"]["detail"],
            each["result"] or "not known: its process died, or is at it",
        )
        for each in repairs
    ]
    print_table(("when (UTC)", "by", "repair", "subject", "why", "result"), rows, named_by="subject")
