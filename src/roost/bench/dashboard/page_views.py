"""The times of pages, of a first paint, and from the acknowledgement of a commit to its event.

No page is measured that is kept from the last view: before each view there is a new commit, and between two
views of a page more time than the dashboard keeps one.
"""

import time
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from roost.bench.claims import RESOURCES, claim
from roost.bench.dashboard.dashboard_process import DashboardProcess
from roost.bench.dashboard.event_stream import EventStream, StreamEvent
from roost.bench.dashboard.first_paint import FirstPaint, first_paint
from roost.bench.dashboard.timed_connection import Exchange, TimedConnection
from roost.bench.dashboard.viewers import TICK, stream_address
from roost.bench.fleets import DISABLED_EVERY, SEED, FleetPlan
from roost.bench.measurement import announce, percentiles_ms
from roost.bench.services import BenchService
from roost.dashboard import addresses

KEPT_SECONDS: Final = 1.1
"""Seconds between two views of a page at least: the dashboard keeps some for a second."""

SLOWEST: Final = "slowest page"
PAINTED_OVERVIEW: Final = "first paint, overview"
PAINTED_MAP: Final = "first paint, map"
PAINTED: Final[Mapping[str, str]] = {PAINTED_OVERVIEW: addresses.ROOT, PAINTED_MAP: addresses.MAP}
TO_EVENT: Final = "commit to event"
TO_MAP: Final = "commit to the map's event"

VISIBLE: Final = {"VCPU": 16, "MEMORY_MB": 512, "DISK_GB": 2}
"""A claim that changes the level of its host on the map."""


class OpenDashboard(NamedTuple):
    """A dashboard with its fleet.

    ``claims``: the placement that claims. ``refused``: the run of a refused request. ``headers``: those of a
    browser that has a session.
    """

    plan: FleetPlan
    claims: BenchService
    dashboard: DashboardProcess
    refused: str
    headers: Mapping[str, str]

    def browser(self) -> TimedConnection:
        """Return a new connection of the browser."""
        return TimedConnection(self.dashboard.port, self.headers)

    def pages(self) -> dict[str, str]:
        """Return the addresses that are measured, by the name in the report."""
        host = addresses.host(self.plan.roots()[0])
        series = addresses.with_query(addresses.SERIES, of="use", span="day", format="json")
        return {
            "overview": addresses.ROOT,
            "map": addresses.MAP,
            "map, layout": addresses.MAP_LAYOUT,
            "map, levels": addresses.MAP_LEVELS,
            "hosts": addresses.HOSTS,
            "hosts, searched": addresses.with_query(addresses.HOSTS, search="st-12"),
            "hosts, by use": addresses.with_query(addresses.HOSTS, sort="used"),
            "a host": host,
            "decisions": addresses.DECISIONS,
            "a refusal": addresses.decision(self.refused),
            "instances": addresses.INSTANCES,
            "flavors": addresses.FLAVORS,
            "events": addresses.EVENTS,
            "cells": addresses.CELLS,
            "series": f"{series}&class=VCPU",
        }


class SingleClaims:
    """Claims one after the other, each on a random host that is not disabled."""

    def __init__(self, opened: OpenDashboard) -> None:
        roots = opened.plan.roots()
        self._hosts = [root for host, root in enumerate(roots) if (host + 1) % DISABLED_EVERY]
        # Not seeded: the same hosts again and again would be full.
        self._rng = np.random.default_rng()
        self._placement = TimedConnection.of_placement(opened.claims.port)

    def make(self, amounts: Mapping[str, int] = RESOURCES) -> None:
        """Make a claim, which is durable then. Raises `BenchError` if it is refused."""
        host = self._hosts[int(self._rng.integers(len(self._hosts)))]
        self._placement.put(f"/allocations/{uuid.uuid4()}", claim({host: dict(amounts)}))


def page_rows(opened: OpenDashboard, views: int) -> list[dict[str, Any]]:
    """View each page once and then ``views`` times, each time after a new commit.

    Raises:
        BenchError: A page cannot be viewed.
    """
    announce(f"dashboard: pages of {opened.plan}")
    found: dict[str, list[Exchange]] = {name: [] for name in opened.pages()}
    used: dict[str, list[float]] = {name: [] for name in opened.pages()}
    claims, browser = SingleClaims(opened), opened.browser()
    for number in range(views + 1):
        if number:
            time.sleep(KEPT_SECONDS)
        for name, address in opened.pages().items():
            claims.make()
            before = opened.dashboard.processor_seconds()
            found[name].append(browser.get(address))
            used[name].append(opened.dashboard.processor_seconds() - before)
    rows = [_page_row(name, exchanges, used[name]) for name, exchanges in found.items()]
    most = ("first_ms", "p50_ms", "p99_ms", "most_ms", "processor_ms")
    return [*rows, {"view": SLOWEST, **{field: max(row[field] for row in rows) for field in most}}]


def _page_row(name: str, exchanges: list[Exchange], used: list[float]) -> dict[str, Any]:
    first, *later = exchanges
    return {
        "view": name,
        "first_ms": 1_000 * first.seconds,
        **times_ms([each.seconds for each in later]),
        "processor_ms": 1_000 * float(np.median(used[1:])),
        "wire_kb": float(np.median([each.wire for each in later])) / 1_000,
    }


def paint_rows(opened: OpenDashboard, times: int) -> list[dict[str, Any]]:
    """Load what the first paint of overview and map need, each time on a new connection.

    Raises:
        BenchError: A file or a page cannot be read.
    """
    announce(f"dashboard: first paints of {opened.plan}")
    claims = SingleClaims(opened)
    found: dict[str, list[FirstPaint]] = {name: [] for name in PAINTED}
    for number in range(times):
        if number:
            time.sleep(KEPT_SECONDS)
        for name, address in PAINTED.items():
            claims.make()
            with opened.browser() as browser:
                found[name].append(first_paint(browser, address))
    return [
        {
            "view": name,
            "requests": paints[-1].requests,
            "wire_kb": paints[-1].wire / 1_000,
            **times_ms([each.seconds for each in paints]),
        }
        for name, paints in found.items()
    ]


class _MapEvent(msgspec.Struct):
    commit: float


def arrival_rows(opened: OpenDashboard, commits: int) -> list[dict[str, Any]]:
    """Measure the time from the acknowledgement of a commit to its events in one stream.

    Raises:
        BenchError: An event does not come.
    """
    announce(f"dashboard: events of {opened.plan}")
    rng = np.random.default_rng(SEED)
    claims = SingleClaims(opened)
    with opened.browser() as browser:
        topic = browser.get(addresses.MAP_LEVELS).headers["x-roost-topic"]
    seconds: dict[str, list[float]] = {TICK: [], topic: []}
    with EventStream(opened.dashboard.port, stream_address((TICK, topic)), opened.headers) as stream:
        last = commit_of(stream.next())
        for _ in range(commits):
            # The dashboard looks once a second: commits come at all times between.
            time.sleep(float(rng.random()))
            claims.make(VISIBLE)
            acknowledged = time.perf_counter()
            waiting, newest = {*seconds}, last
            while waiting:
                event = stream.next()
                if event.topic in waiting and (commit := commit_of(event)) > last:
                    waiting.discard(event.topic)
                    seconds[event.topic].append(max(0.0, event.at - acknowledged))
                    newest = max(newest, commit)
            last = newest
    names = {TICK: TO_EVENT, topic: TO_MAP}
    return [{"view": names[each], **times_ms(times)} for each, times in seconds.items()]


def commit_of(event: StreamEvent) -> float:
    """Return the commit that an event tells of."""
    if event.topic == TICK:
        return float(event.data.partition(".")[0])
    return msgspec.json.decode(event.data, type=_MapEvent).commit


def times_ms(seconds: list[float]) -> dict[str, float]:
    """Return the quantiles of times as fields of a row, in milliseconds."""
    p50, p99 = percentiles_ms(seconds)
    return {"p50_ms": p50, "p99_ms": p99, "most_ms": 1_000 * max(seconds)}
