"""Runs operations on both services, and shrinks the operations that lead to a difference."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from differential.comparison import difference, limited
from differential.known import known, parts
from differential.operations import Operation
from differential.services import Roost, Upstream
from support.wsgi import Answer

_LIMIT = re.compile(r"[?&]limit=(\d+)")
MAX_RUNS = 150
"""Runs of shortened operations. After them, shrinking ends."""


@dataclass(frozen=True)
class Difference:
    """A difference: the operation, a description, and both answers."""

    operation: Operation
    what: str
    upstream: Answer
    roost: Answer

    @property
    def kind(self) -> tuple[object, ...]:
        """What a difference shares with its shrunk form: method, depth of the path, and both statuses."""
        path = self.operation.url.partition("?")[0].count("/")
        return self.operation.method, path, self.upstream.status, self.roost.status

    def __str__(self) -> str:
        return (
            f"{self.operation}\n    {self.what}\n"
            f"    upstream: {self.upstream.status} {self.upstream.body[:2000].decode()}\n"
            f"    Roost:    {self.roost.status} {self.roost.body[:2000].decode()}"
        )


class Both:
    """The two services, in the same state until they have ``parted``: then further answers say nothing."""

    def __init__(self, upstream: Upstream, roost: Roost) -> None:
        self.upstream = upstream
        self.roost = roost
        self.parted = False

    def reset(self) -> None:
        self.parted = False
        self.upstream.reset()
        self.roost.reset()

    def run(self, operation: Operation) -> Difference | None:
        """Run an operation on both; return the difference unless it is an intended one."""
        body = operation.fill_in(self.upstream.ask)
        limit = _LIMIT.search(operation.url)
        ours = self.roost.ask(operation.method, operation.url, body, operation.headers)
        url = operation.url
        if limit is not None and ours.status == 200:
            url = url.replace(limit[0], "?" if limit[0][0] == "?" else "").replace("?&", "?").rstrip("?")
        theirs = self.upstream.ask(operation.method, url, body, operation.headers)
        self.upstream.forget_empty_consumers()
        what = difference(theirs, ours) if limit is None else limited(theirs, ours, int(limit[1]))
        if what is None or known(operation, theirs, ours):
            return None
        if parts(operation, theirs, ours):
            self.parted = True
            return None
        return Difference(operation, what, theirs, ours)

    def first_difference(self, operations: Sequence[Operation]) -> tuple[int, Difference] | None:
        """Run operations on empty services; return the index and the difference of the first that differs."""
        self.reset()
        for place, operation in enumerate(operations):
            found = self.run(operation)
            if found is not None:
                return place, found
            if self.parted:
                return None
        return None


def shrink(both: Both, operations: list[Operation], wanted: Difference) -> list[Operation]:
    """Return a short series of operations with such a difference, found by leaving out ever smaller parts."""
    runs = 0
    size = len(operations) // 2
    while size:
        start = 0
        while start < len(operations) - 1 and runs < MAX_RUNS:
            fewer = operations[:start] + operations[start + size :]
            runs += 1
            found = both.first_difference(fewer) if fewer else None
            if found is not None and found[1].kind == wanted.kind:
                operations = fewer[: found[0] + 1]
            else:
                start += size
        size //= 2
    return operations
