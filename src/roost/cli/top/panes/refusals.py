"""Refusals: the newest requests that found too few hosts, each with its cause."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from rich.text import Text

from roost.cli.tables import one_line
from roost.cli.top.panes.columns import Cell, PaneColumn
from roost.cli.top.panes.pane import PaneQuery, TableView
from roost.cli.top.service_reader import ServiceReader

PATH: Final = "/v1/scheduler/records"

PAGE: Final = 100
"""Runs of a request at most."""

MOST_KEPT: Final = 2000
"""Runs that are kept at most: the newest ones."""

RECENT_SECONDS: Final = 600.0
"""Age of the refusals that are counted by cause."""

REASONS_SECONDS: Final = 30.0
"""Age of a run up to which its reasons may still come."""

_OTHER: Final = "claims"
"""The cause of a refusal in which hosts were left, but none could be claimed."""


class RemovedHosts(msgspec.Struct, frozen=True):
    """A condition of a request, and the hosts that it removed."""

    name: str
    hosts: int


class WhyRefused(msgspec.Struct, frozen=True):
    """The reasons of a refusal: a sentence, all hosts, and the conditions that removed them in turn."""

    sentence: str = ""
    hosts: int = 0
    stages: list[RemovedHosts] = []


class LeftHosts(msgspec.Struct, frozen=True):
    """A step of a run, and the hosts that it left."""

    name: str
    left: int


class RefusedRun(msgspec.Struct, frozen=True):
    """A refused run of the scheduler. ``reasons`` are recorded a moment after the run."""

    id: str
    request_id: str
    instances: list[str]
    started_at: float
    refusal: str | None
    steps: list[LeftHosts] = []
    reasons: WhyRefused | None = None

    @property
    def cause(self) -> str:
        """The first condition that left no host; without reasons, the first step that did."""
        if self.reasons is not None:
            left = self.reasons.hosts
            for each in self.reasons.stages:
                left -= each.hosts
                if left <= 0:
                    return each.name
        return next((each.name for each in self.steps if not each.left), _OTHER)

    @property
    def sentence(self) -> str:
        """The sentence that says why no host was found."""
        return (self.reasons.sentence if self.reasons is not None else "") or self.refusal or ""


class RefusedRecord(msgspec.Struct, frozen=True):
    """A record of a run."""

    run: RefusedRun


class RefusedRecords(msgspec.Struct, frozen=True):
    """A page of records, the last one first."""

    records: list[RefusedRecord]
    next: str | None


_COLUMNS: Final = (
    PaneColumn("time", 8),
    PaneColumn("cause", 24),
    PaneColumn("request"),
    PaneColumn("number", 6, right=True, rank=1),
    PaneColumn("why", 60, rank=2),
)


class RefusalsPane:
    """The pane of refusals, the newest first.

    Only runs that are newer than the last known one are asked for, and older ones as they are scrolled to.
    ``clock``: seconds since the epoch.
    """

    title = "refusals"
    key = "r"
    pages = True
    sorts: Sequence[str] = ()
    searches = False

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._runs: list[RefusedRun] = []
        self._oldest_known = False

    def read(self, services: ServiceReader, query: PaneQuery) -> TableView:
        """Read new runs, and older ones if the query is for more than are known."""
        self._read_newer(services)
        while not self._oldest_known and len(self._runs) < min(query.first + query.rows, MOST_KEPT):
            self._read_older(services)
        rows: list[list[Cell]] = [
            [
                time.strftime("%H:%M:%S", time.localtime(each.started_at)),
                Text(one_line(each.cause), "yellow"),
                each.request_id,
                f"{len(each.instances):,}",
                each.sentence,
            ]
            for each in self._runs
        ]
        return TableView(self._summary(), _COLUMNS, rows, nothing="no request was refused")

    def _summary(self) -> Text:
        since = self._clock() - RECENT_SECONDS
        recent = Counter(each.cause for each in self._runs if each.started_at >= since)
        more = "" if self._oldest_known or recent.total() < len(self._runs) else "+"
        said = Text(f"{recent.total():,}{more} refused in 10 min")
        causes = [f"{one_line(cause)} {number:,}" for cause, number in recent.most_common(4)]
        return said.append(f": {', '.join(causes)}" if causes else "")

    def _read_newer(self, services: ServiceReader) -> None:
        """Read the runs since the last known one, and again those whose reasons may have come since."""
        young = self._clock() - REASONS_SECONDS
        bare = [each.started_at for each in self._runs if each.reasons is None and each.started_at > young]
        since = min([self._runs[0].started_at, *bare]) if self._runs else None
        page = services.read("scheduler", PATH, RefusedRecords, refused="true", since=since, limit=PAGE)
        read = {each.run.id: each.run for each in page.records}
        if not self._runs or (page.next is not None and not any(each.id in read for each in self._runs)):
            # The first page; or more are new than a page has, so that there is a gap.
            self._runs, self._oldest_known = [], page.next is None
        known = [each for each in self._runs if each.id not in read]
        self._runs = [*read.values(), *known][:MOST_KEPT]

    def _read_older(self, services: ServiceReader) -> None:
        marker = self._runs[-1].id if self._runs else None
        page = services.read("scheduler", PATH, RefusedRecords, refused="true", marker=marker, limit=PAGE)
        self._oldest_known = page.next is None
        self._runs += [each.run for each in page.records]
