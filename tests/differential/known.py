"""Where Roost answers otherwise than upstream on purpose: the sections of docs/differences.md that say so.

Each looks at one operation and both answers and says whether this is its case and nothing more.
"""

from collections.abc import Callable

from differential.operations import Operation
from support.wsgi import Answer

Case = Callable[[Operation, Answer, Answer], bool]


def _unknown_name(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    return (
        operation.url.startswith(("/allocation_candidates", "/resource_providers?"))
        and (upstream.status, roost.status) == (200, 400)
        and not any(upstream.json.values())
        and b"No such " in roost.body
    )


KNOWN: dict[str, Case] = {
    "An unknown trait or class is refused even where nothing would be found": _unknown_name,
}
"""Heading in docs/differences.md -> whether a difference is that one."""


def known(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    """Whether a difference is one of those."""
    return any(case(operation, upstream, roost) for case in KNOWN.values())
