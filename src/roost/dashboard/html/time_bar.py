"""The bar of time: a page says which moment it shows, and leads to others that are kept."""

from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import htpy as h

from roost.dashboard.addresses import with_query
from roost.dashboard.html.times import weekday_moment
from roost.dashboard.html.values import number
from roost.dashboard.past.past_moments import KeptCommits, ShownMoment

_STEP_SECONDS: Final = (1, 5, 15, 60, 300, 600, 1_800, 3_600)
_MOST_STEPS: Final = 2_000
"""Seconds between two places of the slider: the fewest that need no more places than this."""

_MARKS: Final = 24
"""Marks of the slider at most."""

_MARK_SECONDS: Final = (600, 3_600, 6 * 3_600, 86_400, 7 * 86_400)


def time_bar(address: str, shown: ShownMoment | None) -> h.Node:
    """Return the bar of a page. ``address``: of the page with its query; ``shown``: None: it has no past."""
    if shown is None or not shown.kept.newest:
        return None
    path, query = urlsplit(address).path, dict(parse_qsl(urlsplit(address).query))
    query.pop("at", None)
    query.pop("format", None)
    past = shown.moment is not None or shown.missing is not None
    return h.section(class_=["time-bar", past and "past"], aria_label="Time")[
        _words(shown),
        _slider(path, query, shown),
        _steps(path, query, shown),
        h.a(".button.small", href=with_query(path, **query))["Back to now"] if past else None,
    ]


def _words(shown: ShownMoment) -> h.Node:
    if shown.missing is not None:
        return h.p(".state-look", role="status")[f"This moment cannot be shown: {shown.missing}."]
    moment = shown.moment
    if moment is None:
        return h.span["Now"]
    commit = h.span(".muted")[f"commit {number(moment.version)}"]
    return h.p(".state-look", role="status")["As of ", weekday_moment(moment.at), " UTC ", commit]


def _slider(path: str, query: dict[str, str], shown: ShownMoment) -> h.Node:
    kept = shown.kept
    # A fraction, so that no value is taken for the number of a commit.
    first, last = int(kept.oldest_at) + 0.5, int(kept.newest_at) + 0.5
    if last <= first:
        return None
    span = last - first
    step = next((each for each in _STEP_SECONDS if span / each <= _MOST_STEPS), _STEP_SECONDS[-1])
    at = last if shown.moment is None else min(max(shown.moment.at, first), last)
    return h.form(".time-form", action=path, data_time_bar=True)[
        [h.input(type="hidden", name=name, value=value) for name, value in query.items()],
        h.input(
            type="range",
            name="at",
            aria_label="Time",
            aria_valuetext=_text(at),
            # The end is always a place of the slider.
            min=f"{last - int(span / step) * step:.1f}",
            max=f"{last:.1f}",
            step=f"{step}",
            value=f"{at:.1f}",
            list="time-marks",
        ),
        h.datalist("#time-marks")[_marks(kept)],
        h.output(".muted.nowrap"),
        h.button(".button.small", type="submit")["Show"],
    ]


def _marks(kept: KeptCommits) -> h.Node:
    span = kept.newest_at - kept.oldest_at
    every = next((each for each in _MARK_SECONDS if span / each <= _MARKS), None)
    if every is None:
        return None
    first = int(kept.oldest_at // every + 1) * every
    return [
        h.option(value=f"{at + 0.5:.1f}", label=_text(at)) for at in range(first, int(kept.newest_at), every)
    ]


def _steps(path: str, query: dict[str, str], shown: ShownMoment) -> h.Node:
    """Links to the commits before and after the one that is shown."""
    version = shown.kept.newest if shown.moment is None else shown.moment.version

    def link(to: int, words: str, mark: str) -> h.Node:
        if not shown.kept.oldest - 1 <= to <= shown.kept.newest:
            return None
        href = with_query(path, **query, at=to)
        return h.a(".button.quiet.small", href=href, aria_label=words, title=words)[mark]

    return h.span(".nowrap")[
        link(version - 1, "The commit before", "←"), link(version + 1, "The next commit", "→")
    ]


def _text(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%a %d %b, %H:%M:%S} UTC"
