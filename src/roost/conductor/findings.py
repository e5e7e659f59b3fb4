"""Findings about a cloud in one sentence each, with a severity: for the terminal and for pages.

Each function takes what an operator's API says of one thing, and yields the findings about it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from roost.conductor.hosts.watch import DOWN, NO_CONDUCTOR, NO_HOST_UP
from roost.model.maintenance import PAUSED

Level = Literal["fails", "look", "note"]
"""The severity of a finding.

``fails``: requests or guests suffer now. ``look``: they will, or an operator has to decide. ``note``: an
operator wants it so, or it is not known.
"""

LEVELS: tuple[Level, ...] = ("fails", "look", "note")
"""All severities, worst first."""

MOST_NAMED = 5
"""Most names in one finding, beside their number."""

MANY_REFUSED = 5
MANY_REFUSED_SHARE = 0.5
"""Number and share of refused runs from which the cloud is to blame, and not the users."""


class StatusFinding(msgspec.Struct, frozen=True):
    """A problem in one sentence. ``level``: its severity. ``about``: the part of the cloud."""

    level: Level
    about: str
    says: str


def findings_of_process(
    name: str, kind: str, cell: str | None, state: str, began: str
) -> Iterator[StatusFinding]:
    """Yield the findings about a process. ``began``: its start, as text."""
    if state == DOWN:
        where = "" if cell is None else f" of cell {cell}"
        yield StatusFinding("look", name, f"the {kind}{where} is down; it began {began} UTC")


def findings_of_feature(name: str, held_back_by: int) -> Iterator[StatusFinding]:
    """Yield the findings about a feature. ``held_back_by``: number of processes of earlier versions."""
    if held_back_by:
        text = f"off, as {held_back_by} processes and agents are of earlier versions"
        yield StatusFinding("note", name, text)


def findings_of_cell(
    name: str, state: str, hosts: int, enabled: bool | None, reason: str | None
) -> Iterator[StatusFinding]:
    """Yield the findings about a cell. ``hosts``: the number with an agent's session."""
    about = f"cell {name}"
    if state == DOWN:
        yield StatusFinding("fails", about, "its database cannot be asked")
    elif state == NO_CONDUCTOR:
        yield StatusFinding("fails", about, "no conductor is up: nothing is built or deleted there")
    elif state == NO_HOST_UP:
        text = f"none of its {hosts:,} hosts is up: nothing is built or deleted there"
        yield StatusFinding("fails", about, text)
    if enabled is False:
        yield StatusFinding("note", about, f"disabled{_why(reason)}")


def hosts_down(cell: str, names: list[str]) -> StatusFinding:
    """Return the finding about the hosts of a cell that are down."""
    return StatusFinding("look", f"cell {cell}", some_of(names, "host is down", "hosts are down"))


def hosts_disabled(names: list[str]) -> StatusFinding:
    """Return the finding about the hosts that an operator has disabled."""
    one, many = "host is disabled by an operator", "hosts are disabled by an operator"
    return StatusFinding("note", "hosts", some_of(names, one, many))


def findings_of_audit(asks: str | None, found: int, rounds: int) -> Iterator[StatusFinding]:
    """Yield the findings about the audit. ``asks``: what it asks operators for. ``found``: contradictions in
    round ``rounds``."""
    if asks:
        yield StatusFinding("look", "audit", asks)
    elif found:
        yield StatusFinding("look", "audit", f"{found:,} contradictions in round {rounds}: see roost audit")


def finding_of_maintenance(uuid: str, state: str, left: int, reason: str | None) -> StatusFinding:
    """Return the finding about a maintenance that is under way. ``left``: the number of hosts."""
    hosts = "1 host is left" if left == 1 else f"{left:,} hosts are left"
    level: Level = "look" if state == PAUSED else "note"
    return StatusFinding(level, f"maintenance {uuid[:8]}", f"{state}, {hosts}{_why(reason)}")


def findings_of_refusals(
    refused: Counter[str], runs: int, minutes: int, *, more: bool
) -> Iterator[StatusFinding]:
    """Yield the findings about refusals. A few are due to users; many are due to the cloud.

    ``refused``: the number of refused runs by reason, of ``runs`` runs in the last ``minutes``. ``more``:
    these are the newest runs alone.
    """
    number_refused = refused.total()
    many = number_refused >= MANY_REFUSED and number_refused >= MANY_REFUSED_SHARE * runs
    for reason, number in refused.most_common(MOST_NAMED):
        among = f"{number:,} of the newest {runs:,} requests" if more else f"{number:,} in {minutes} min"
        yield StatusFinding("look" if many else "note", "refusals", f"{among}: {reason}")
    if more:
        text = f"more than {runs:,} requests in {minutes} min: the newest {runs:,} alone are counted"
        yield StatusFinding("note", "refusals", text)


def some_of(names: list[str], one: str, many: str) -> str:
    """Return the number of names and the first of them. ``one`` and ``many``: the words after the number."""
    shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    return f"{len(names):,} {one if len(names) == 1 else many}: {shown}"


def _why(reason: str | None) -> str:
    return f": {reason}" if reason else ""
