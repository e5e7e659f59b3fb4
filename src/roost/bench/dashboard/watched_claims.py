"""Claims beside viewers of the dashboard, in turns with claims without them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from roost.bench.claims import Claims, prepared
from roost.bench.dashboard.page_views import OpenDashboard, SingleClaims
from roost.bench.dashboard.viewers import TICK, ViewedPage, ViewedPages, ViewersPlan
from roost.bench.dashboard.viewers_process import viewing
from roost.bench.measurement import ComparedSetting, Measurement, announce, announce_round, figures, run_load
from roost.dashboard import addresses

CLIENTS: Final = 16
"""Clients that claim as fast as they can."""

PACE: Final = 25.0
"""Claims a second of a large cloud."""

SETTLE_SECONDS: Final = 1.5
"""Seconds before and after a round, in which the dashboard follows all commits, at most."""

BESIDE_ALL: Final = "streams beside all claims"
BESIDE_PACE: Final = f"streams beside {PACE:g} claims/s"
PAGES_BESIDE_PACE: Final = f"pages beside {PACE:g} claims/s"

OVERVIEW: Final = ViewedPage(addresses.ROOT, (TICK,), regions=(2.0,))
"""The overview, whose region is fetched again once in two seconds at most."""

MAP_REGIONS: Final = (2.0, 5.0)
"""The pauses of the map's two regions in seconds."""


class _Turns:
    """Rounds of one kind. ``used``: processor seconds of the dashboard; ``viewed``: of all rounds."""

    def __init__(self) -> None:
        self.load = Measurement()
        self.used = 0.0
        self.viewed: list[ViewedPages] = []

    @property
    def share(self) -> float:
        """The share of one core that the dashboard used for the claims and their viewers."""
        return self.used / self.load.seconds

    @property
    def events(self) -> float:
        """Events a second of all viewers, while they viewed."""
        return self._rate(sum(each.events for each in self.viewed))

    @property
    def fetched(self) -> float:
        """Regions that all viewers fetched again a second, while they viewed."""
        return self._rate(sum(each.fetched for each in self.viewed))

    def _rate(self, number: int) -> float:
        return number / max(sum(each.seconds for each in self.viewed), 1e-9)


def watched_rows(
    setting: ComparedSetting, opened: OpenDashboard, viewers: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure claims with and without viewers of overview and map, half of them each.

    Returns the rows, and what is wrong: streams that ended, and pages that could not be fetched.

    Raises:
        BenchError: A process does not start, or a claim is refused.
    """
    with opened.browser() as browser:
        topic = browser.get(addresses.MAP_LEVELS).headers["x-roost-topic"]
    shown = ViewedPage(addresses.MAP, (TICK, "layout", topic), MAP_REGIONS)
    pages = [(OVERVIEW, shown)[number % 2] for number in range(viewers)]
    streams = [ViewedPage(each.path, each.topics) for each in pages]
    rows, viewed = [], []
    turns = _in_turns(setting, opened, streams)
    rows.append(_row(BESIDE_ALL, turns[True], turns[False]))
    viewed += turns[True].viewed
    for name, opened_pages in ((BESIDE_PACE, streams), (PAGES_BESIDE_PACE, pages)):
        announce(f"dashboard: {name}")
        alone = _paced(setting, opened, ())
        watched = _paced(setting, opened, opened_pages)
        rows.append(_row(name, watched, alone))
        viewed += watched.viewed
    wrong = []
    for text, number in (
        ("streams of events ended while they were viewed", sum(each.ended for each in viewed)),
        ("pages could not be fetched again", sum(each.failed for each in viewed)),
    ):
        if number:
            wrong.append(f"{number} {text}")
    return rows, wrong


def _in_turns(
    setting: ComparedSetting, opened: OpenDashboard, pages: Sequence[ViewedPage]
) -> Mapping[bool, _Turns]:
    """Measure claims as fast as they go, with and without viewers in turns."""
    announce(f"dashboard: {BESIDE_ALL}")
    draw = Claims(opened.plan.roots(), seed=5)
    found = {True: _Turns(), False: _Turns()}
    for number in range(setting.rounds):
        for watched in (True, False) if number % 2 else (False, True):
            requests = [*draw.puts(prepared(opened.claims, setting.seconds)).values()]
            load = setting.load(opened.claims, requests, CLIENTS, cyclic=False, min_requests=CLIENTS)
            with _measured(setting, opened, pages if watched else (), found[watched]):
                result = run_load(load)
                found[watched].load.add(result)
            name = "with viewers" if watched else "without viewers"
            announce_round(number + 1, setting.rounds, name, result.rate)
    return found


def _paced(setting: ComparedSetting, opened: OpenDashboard, pages: Sequence[ViewedPage]) -> _Turns:
    """Measure the dashboard beside `PACE` claims a second for as long as all rounds take."""
    found, claims = _Turns(), SingleClaims(opened)
    with _measured(setting, opened, pages, found):
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < setting.rounds * setting.seconds:
            claims.make()
            found.load.outcomes["201"] += 1
            due = found.load.succeeded / PACE - passed
            time.sleep(max(0.0, due))
        found.load.seconds = time.perf_counter() - began
    return found


@contextmanager
def _measured(
    setting: ComparedSetting, opened: OpenDashboard, pages: Sequence[ViewedPage], found: _Turns
) -> Iterator[None]:
    """Add the processor time of the dashboard in a round to ``found``, and the viewers of its pages."""
    settle = min(SETTLE_SECONDS, setting.seconds)
    plan = ViewersPlan(opened.dashboard.port, dict(opened.headers), tuple(pages))
    with viewing(plan) if pages else nullcontext() as process:
        # The first look of a viewer follows all commits that came without one.
        time.sleep(settle)
        used = opened.dashboard.processor_seconds()
        yield
        # Work that the last claims make is theirs.
        time.sleep(settle)
        found.used += opened.dashboard.processor_seconds() - used
        if process is not None:
            found.viewed.append(process.stop())


def _row(view: str, watched: _Turns, alone: _Turns) -> dict[str, Any]:
    rate, rate_alone = (each.load.succeeded / each.load.seconds for each in (watched, alone))
    return {
        "view": view,
        "per_second": rate,
        "per_second_alone": rate_alone,
        "kept": rate / rate_alone,
        "share": watched.share,
        "share_alone": alone.share,
        "cost": watched.share - alone.share,
        "events_per_second": watched.events,
        "fetched_per_second": watched.fetched,
        "failed": figures(watched.load).failed if len(watched.load.latencies) else {},
    }
