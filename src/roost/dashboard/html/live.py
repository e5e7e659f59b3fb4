"""Regions of a page that are fetched again when the server says that they are old."""

import htpy as h

from roost.dashboard.html.shell import Viewing


def live_region(
    viewing: Viewing, name: str, *content: h.Node, topic: str = "tick", pause: int = 2_000
) -> h.Node:
    """Return content that is live: its part of this page's address is fetched again after an event.

    Args:
        name: The id of the region, unique on the page.
        topic: The events that make it old.
        pause: Milliseconds between two fetches at least.

    A page of the past is not live.
    """
    if viewing.nonce is None or viewing.at is not None:
        return h.div(".region", id=name)[content]
    return h.div(
        ".region",
        id=name,
        data_live_topic=topic,
        data_live_pause=f"{pause}",
        hx_nonce=viewing.nonce,
        hx_get=viewing.address,
        hx_select=f"#{name}",
        hx_trigger="live",
        hx_swap="outerMorph",
    )[content]
