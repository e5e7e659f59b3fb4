"""Options for requests with keys that nothing reads."""

from typing import Literal

from roost.process.options import OptionStruct, option

UnreadKeys = Literal["warn", "refuse"]


class KeyOptions(OptionStruct, frozen=True, group="scheduler"):
    """Options for requests with keys that nothing reads.

    ``unread_keys``: the treatment of such a request. ``known_keys``: keys that have a reader which the
    scheduler does not know of; ``*`` at the end stands for any text.
    """

    unread_keys: UnreadKeys = option(
        "warn",
        help="What becomes of a request with an extra spec, an image property or a scheduler hint that "
        "nothing reads as it is configured. warn: it is decided, and the answer and the record say so. "
        "refuse: it is refused. Requests in the form of Nova are always decided.",
    )
    known_keys: list[str] = option(
        [],
        help="Extra specs, image properties and scheduler hints that something reads of which the "
        "scheduler does not know, such as an agent of another make. * at the end stands for any text.",
    )
