"""What becomes of messages: how long they take, and which are lost, late or doubled."""

from random import Random
from typing import NamedTuple

ANSWER_SECONDS = 10.0
"""After so many seconds at most a client gives up waiting for an answer."""


class Fate(NamedTuple):
    """The fate of one request.

    ``arrives``: seconds until it is carried out, None: never. ``again``: seconds until it is carried out a
    second time, None: it is not. ``answers``: seconds from the start until the answer is there, or until the
    asker gives up. ``refused``: the asker knows that nothing was done. ``lost``: the asker does not know.
    """

    arrives: float | None
    answers: float
    again: float | None = None
    refused: bool = False
    lost: bool = False


class Weather(NamedTuple):
    """Shares of the messages with each fate.

    ``slow``: that take up to seconds. ``refused``: that never arrive, which the asker learns. ``lost``: that
    never arrive, or whose answer never does. ``late``: that arrive after the asker gave up. ``doubled``: that
    arrive twice. ``crashes``: at which their process dies. ``pauses``: before which it is stopped, often past
    its lease; it goes on with what it was about to send. Neither concerns messages that only read.
    """

    slow: float = 0.0
    refused: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    doubled: float = 0.0
    crashes: float = 0.0
    pauses: float = 0.0


CALM = Weather()


def fate(weather: Weather, random: Random) -> Fate:
    """Draw the fate of one request."""
    way, back = random.uniform(0.0005, 0.02), random.uniform(0.0005, 0.02)
    if weather is CALM:
        return Fate(way, way + back)
    if random.random() < weather.slow:
        way *= random.choice((10.0, 100.0, 200.0))
    drawn = random.random()
    if drawn < weather.refused:
        return Fate(None, random.choice((way, 1.0, 5.0)), refused=True)
    drawn -= weather.refused
    patience = way + random.choice((0.05, 0.5, 3.0, ANSWER_SECONDS))
    if drawn < weather.lost:
        arrives = way if random.random() < 0.5 else None
        return Fate(arrives, patience, lost=True)
    drawn -= weather.lost
    if drawn < weather.late:
        return Fate(patience + random.choice((0.001, 0.1, 2.0, 12.0)), patience, lost=True)
    drawn -= weather.late
    if drawn < weather.doubled:
        return Fate(way, way + back, again=way + random.choice((0.001, 0.05, 1.0, 8.0)))
    return Fate(way, way + back)
