"""Every operation under ``/v1``: its policy rule, its query parameters and what it answers with."""

from dataclasses import dataclass, field

MOST_CANDIDATES = 1000
"""Candidates, or commits, on one page at most."""

USUAL_PAGE = 100
"""Candidates, or commits, on a page if the client does not say how many."""

MOST_MISSES = 100
USUAL_MISSES = 10
LONGEST_WAIT = 60
"""Seconds."""

LARGEST_SEQ = 2**63 - 1

JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Number:
    """A whole number in a query string: its range, and what it is if it is not there."""

    least: int
    most: int
    usual: int


@dataclass(frozen=True)
class Operation:
    """``rule``: the policy's, None if anybody may. ``of_candidates``: whether it takes the parameters of
    Placement's ``GET /allocation_candidates`` too; ``numbers`` and ``texts`` are its own."""

    rule: str | None
    numbers: dict[str, Number] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    of_candidates: bool = False
    answers: tuple[str, ...] = (JSON,)


OPERATIONS: dict[str, dict[str, Operation]] = {
    "/v1/allocation_candidates": {
        "GET": Operation(
            "allocation_candidates:list",
            {"limit": Number(1, MOST_CANDIDATES, USUAL_PAGE)},
            texts=("cursor",),
            of_candidates=True,
        )
    },
    "/v1/changes": {
        "GET": Operation(
            "changes:list",
            {
                "after": Number(0, LARGEST_SEQ, 0),
                "limit": Number(1, MOST_CANDIDATES, USUAL_PAGE),
                "wait": Number(0, LONGEST_WAIT, 0),
            },
            answers=(JSON, EVENTS),
        )
    },
    "/v1/explain": {
        "GET": Operation(
            "allocation_candidates:explain",
            {"misses": Number(0, MOST_MISSES, USUAL_MISSES)},
            of_candidates=True,
        )
    },
    "/v1/openapi.json": {"GET": Operation(None)},
}
"""By URL and method."""
