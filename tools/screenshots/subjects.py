"""The pages that are pictured, with their addresses on the pictured cloud."""

from collections.abc import Callable
from typing import Final, NamedTuple

import httpx

from roost.dashboard import addresses
from roost.model.names import provider_uuid
from screenshots.pictured_day import PLACED, REFUSED
from screenshots.pictured_layout import PICTURED_HOST
from support.shown_cloud.examples import view


class Subject(NamedTuple):
    """A page that is pictured.

    ``name``: of the file, without ``dashboard-`` and ``.png``. ``address``: finds it by a session's client.
    ``height``: of the window, in pixels. ``drawn``: a selector of elements that scripts draw: each has to be
    there.
    """

    name: str
    address: Callable[[httpx.Client], str]
    height: int = 900
    drawn: str = ""


def _decision(name: str) -> Callable[[httpx.Client], str]:
    """Return what finds the decision on the first instance of a name."""

    def find(client: httpx.Client) -> str:
        [first, *_] = view(client, f"{addresses.INSTANCES}?search={name}")["page"]["instances"]
        run = view(client, addresses.instance(first["uuid"]))["instance"]["run"]
        return addresses.decision(run)

    return find


SUBJECTS: Final = (
    Subject("overview", lambda _: addresses.ROOT, 985, drawn=".chart-plot canvas"),
    Subject("map", lambda _: f"{addresses.MAP}?class=MEMORY_MB", drawn="[data-map][data-ready]"),
    Subject("host", lambda _: addresses.host(provider_uuid(PICTURED_HOST.name)), 772),
    Subject("decision", _decision(PLACED), 735),
    Subject("refusal", _decision(REFUSED), 812),
)
