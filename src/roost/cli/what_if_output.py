"""The parameter and the output of ``roost ask --what-if``."""

from typing import Any

import click

from roost.cli.output import print_table


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


def print_what_if(answer: dict[str, Any]) -> None:
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
