"""The files and data that a page needs for its first paint.

A page is painted first with its HTML, its styles and icons. Its scripts, which the HTML names and which
import each other, are loaded meanwhile and counted with it, and so are the data of the map: the layout and
the bytes of the hosts. Data that a script asks for once the page is painted, such as those of charts, and the
script of the worker that holds the stream of events, are not counted.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

import msgspec

from roost.bench.dashboard.timed_connection import TimedConnection
from roost.dashboard import addresses

_FILES: Final = re.compile(rf'(?:href|src)="({addresses.ASSETS}[^"#]+)')
_IMPORTS: Final = re.compile(r'\bfrom "\./([\w-]+\.js[^"]*)"')
_DATA: Final = re.compile(r'data-(?:layout|levels)-url="([^"]+)"')


class FirstPaint(msgspec.Struct, frozen=True):
    """The sums of all requests of a first paint: their number, their bytes with gzip, and their seconds."""

    requests: int
    wire: int
    seconds: float


def first_paint(connection: TimedConnection, page: str) -> FirstPaint:
    """Load what a browser with an empty cache needs for a page, one request after the other.

    Raises:
        BenchError: A file or the page cannot be read.
    """
    answer = connection.get(page)
    exchanges = [answer]
    html = answer.body.decode()
    waiting, seen = [*needed_files(html), *needed_data(html)], set[str]()
    while waiting:
        address = waiting.pop(0)
        if address in seen:
            continue
        seen.add(address)
        exchanges.append(connection.get(address))
        if address.partition("?")[0].endswith(".js") and "/vendor/" not in address:
            waiting += imported_files(exchanges[-1].body.decode())
    return FirstPaint(
        len(exchanges), sum(each.wire for each in exchanges), sum(each.seconds for each in exchanges)
    )


def needed_files(html: str) -> list[str]:
    """Return the addresses of styles, icons and scripts in a page, each once."""
    return [*dict.fromkeys(unescape(each) for each in _FILES.findall(html))]


def needed_data(html: str) -> list[str]:
    """Return the addresses of the data of the map in a page."""
    return [unescape(each) for each in _DATA.findall(html)]


def imported_files(script: str) -> Iterator[str]:
    """Yield the addresses of the scripts that a script imports."""
    return (f"{addresses.ASSETS}{each}" for each in _IMPORTS.findall(script))
