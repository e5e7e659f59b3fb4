"""The hosts that a command is about: those that are named, of cells, of host aggregates, or all."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from roost.cli.service_client import ServiceClient, part_of_path

F = TypeVar("F", bound=Callable[..., Any])


class HostSelection(NamedTuple):
    """A selection of hosts, as a command line makes it."""

    hosts: tuple[str, ...]
    cells: tuple[str, ...]
    aggregates: tuple[str, ...]
    everything: bool

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is selected."""
        return not (self.hosts or self.cells or self.aggregates or self.everything)

    def names(self, conductor: ServiceClient) -> list[str]:
        """Return the names of the selected hosts. Raises `click.UsageError` if there are none."""
        selected = set(self.hosts)
        for cell in (None,) if self.everything else self.cells:
            for page in conductor.pages("/v1/hosts", "hosts", {"cell": cell}):
                selected.update(each["host"] for each in page["hosts"])
        for aggregate in self.aggregates:
            shown = conductor.ask("GET", f"/v1/aggregates/{part_of_path(aggregate)}")
            selected.update(each["host"] for each in shown["members"] if each["host"] is not None)
        if not selected:
            raise click.UsageError("no hosts are selected: name HOST, --cell, --aggregate or --all")
        return sorted(selected)


def host_selection(command: F) -> F:
    """Add the options of a selection of hosts to a command, which gets it as ``selection``."""

    @wraps(command)
    def run(
        *arguments: Any,
        hosts: tuple[str, ...],
        cells: tuple[str, ...],
        aggregates: tuple[str, ...],
        everything: bool,
        **named: Any,
    ) -> Any:
        selection = HostSelection(hosts, cells, aggregates, everything)
        return command(*arguments, selection=selection, **named)

    decorated: Any = run
    for add in (
        click.option("--all", "everything", is_flag=True, help="All hosts."),
        click.option("--aggregate", "aggregates", multiple=True, help="All hosts of this host aggregate."),
        click.option(
            "--cell", "cells", multiple=True, help="All hosts of this cell; may be given several times."
        ),
        click.argument("hosts", nargs=-1, metavar="[HOST]..."),
    ):
        decorated = add(decorated)
    return decorated  # type: ignore[no-any-return]
