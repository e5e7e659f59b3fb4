"""Options for requests with keys that nothing reads."""

from typing import Literal, get_args

import msgspec
from oslo_config import cfg

from roost.scheduler.plugins.plugin_options import PluginOptions

UnreadKeys = Literal["warn", "refuse"]


class KeyOptions(msgspec.Struct, frozen=True):
    """Options for requests with keys that nothing reads.

    ``unread_keys``: the treatment of such a request. ``known_keys``: keys that have a reader which the
    scheduler does not know of; ``*`` at the end stands for any text.
    """

    unread_keys: UnreadKeys = "warn"
    known_keys: list[str] = []


KEY_OPTIONS = PluginOptions(
    "scheduler",
    (
        cfg.StrOpt(
            "unread_keys",
            default="warn",
            choices=get_args(UnreadKeys),
            help="What becomes of a request with an extra spec, an image property or a scheduler hint that "
            "nothing reads as it is configured. warn: it is decided, and the answer and the record say so. "
            "refuse: it is refused. Requests in the form of Nova are always decided.",
        ),
        cfg.ListOpt(
            "known_keys",
            default=[],
            help="Extra specs, image properties and scheduler hints that something reads of which the "
            "scheduler does not know, such as an agent of another make. * at the end stands for any text.",
        ),
    ),
    KeyOptions,
)
