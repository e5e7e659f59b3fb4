"""The responses to requests for hosts. A response is in the language of its request."""

from typing import Any

import msgspec

from roost.model.spec import Destination, Selection, UnreadKey
from roost.model.visibility import shown_whole


class ShownDestinations(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The hosts that the run with this id has chosen.

    A request spec of Roost gets `destinations`, one for each instance that was placed. Nova's RequestSpec
    gets `instances`, the uuids of the instances that were placed, and `selections`: for each of these
    instances Nova's Selection objects, the claimed one first, then the alternates.

    `warnings` are the keys of a request spec of Roost that have no effect: extra specs, properties of the
    image, scheduler hints.
    """

    run: str
    destinations: tuple[Destination, ...] | None = None
    instances: tuple[str, ...] | None = None
    selections: tuple[tuple[dict[str, Any], ...], ...] | None = None
    warnings: tuple[UnreadKey, ...] = ()


class CheckedRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request that can be served on some hosts, though perhaps not on the present ones.

    `warnings` are the keys of the request that have no effect.
    """

    warnings: tuple[UnreadKey, ...] = ()


class TriedAlternate(msgspec.Struct, forbid_unknown_fields=True):
    """An alternate that was tried. `refusal` is null for the one that is claimed now."""

    host: str
    cell: str
    refusal: str | None


class ShownReplacement(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The host that the instance is claimed on now, and the alternates that are left.

    A request spec of Roost gets them as `selected` and `alternates`. Nova's RequestSpec gets `selections`,
    Nova's Selection objects: the claimed one first.
    """

    tried: tuple[TriedAlternate, ...]
    selected: Selection | None = None
    alternates: tuple[Selection, ...] | None = None
    selections: tuple[dict[str, Any], ...] | None = None


# A caller that may claim a host gets the name of the host that it has claimed.
shown_whole(ShownDestinations, ShownReplacement, CheckedRequest)
