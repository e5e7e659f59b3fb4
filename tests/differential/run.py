"""Running operations on both services side by side, and making a difference small."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from differential.comparison import difference, limited
from differential.known import known
from differential.operations import Operation
from differential.services import Roost, Upstream
from support.wsgi import Answer

_LIMIT = re.compile(r"[?&]limit=(\d+)")
REPLAYS = 150
"""At most so often operations are run again to find out which of them matter."""


@dataclass(frozen=True)
class Difference:
    """What was found: the operation, what was different, and both answers."""

    operation: Operation
    what: str
    upstream: Answer
    roost: Answer

    @property
    def kind(self) -> tuple[object, ...]:
        """What small and large examples of one difference have in common."""
        path = self.operation.url.partition("?")[0].count("/")
        return self.operation.method, path, self.upstream.status, self.roost.status

    def __str__(self) -> str:
        return (
            f"{self.operation}\n    {self.what}\n"
            f"    upstream: {self.upstream.status} {self.upstream.body[:2000].decode()}\n"
            f"    Roost:    {self.roost.status} {self.roost.body[:2000].decode()}"
        )


class Both:
    """The two services, in the same state."""

    def __init__(self, upstream: Upstream, roost: Roost) -> None:
        self.upstream = upstream
        self.roost = roost

    def reset(self) -> None:
        self.upstream.reset()
        self.roost.reset()

    def run(self, operation: Operation) -> Difference | None:
        """Ask both; what they differ in, if it is not known."""
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
        return Difference(operation, what, theirs, ours)

    def first_difference(self, operations: Sequence[Operation]) -> tuple[int, Difference] | None:
        """The place of the first operation, run after another from nothing, that is answered differently."""
        self.reset()
        for place, operation in enumerate(operations):
            found = self.run(operation)
            if found is not None:
                return place, found
        return None


def shrink(both: Both, operations: list[Operation], wanted: Difference) -> list[Operation]:
    """Few of the operations that still end in such a difference, by leaving out ever smaller parts."""
    replays = 0
    size = len(operations) // 2
    while size:
        start = 0
        while start < len(operations) - 1 and replays < REPLAYS:
            fewer = operations[:start] + operations[start + size :]
            replays += 1
            found = both.first_difference(fewer) if fewer else None
            if found is not None and found[1].kind == wanted.kind:
                operations = fewer[: found[0] + 1]
            else:
                start += size
        size //= 2
    return operations
