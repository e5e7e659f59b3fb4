"""Values that many nodes share, by node: aggregate metadata of one key, hypervisor types, and so on."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Int32, grown

Values = tuple[str, ...]
"""The values of one metadata key in the aggregates of one node; empty if none has the key."""

Indexes = npt.NDArray[np.intp]

Holding = npt.NDArray[np.int8]

NONE: Final = np.int8(0)
LACKS: Final = np.int8(1)
HAS: Final = np.int8(2)

V = TypeVar("V", bound=Hashable)
S = TypeVar("S", bound=np.generic)


class Labels(Generic[V]):
    """A value for each node index; ``nothing`` is the value of the nodes that have none.

    Equal values are stored once, so that a judgement of a few values judges thousands of nodes in a few
    aggregates. A value that no node has any more is dropped. ``labelled``: the number of nodes whose value is
    not ``nothing``.
    """

    def __init__(self, nothing: V) -> None:
        self.labelled = 0
        self._values: list[V] = [nothing]
        self._code_of: dict[V, int] = {nothing: 0}
        self._holders: list[int] = [0]
        self._free: list[int] = []
        self._code: Int32 = np.zeros(0, dtype=np.int32)
        self._words: defaultdict[str, list[int]] | None = None
        # The nodes of the last call and their codes, if they were more than half of all nodes.
        self._gathered: tuple[Indexes, Int32] | None = None

    def put(self, index: int, value: V) -> None:
        """Set the value of a node."""
        old = self._code.item(index) if index < len(self._code) else 0
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = self._new_code(value)
        if code == old:
            return
        self._gathered = None
        self._code = grown(self._code, index + 1, 0)
        self._code[index] = code
        self.labelled += (code != 0) - (old != 0)
        self._holders[code] += 1
        if old:
            self._holders[old] -= 1
            if not self._holders[old]:
                del self._code_of[self._values[old]]
                self._values[old] = self._values[0]
                self._words = None
                self._free.append(old)

    def of(self, index: int) -> V:
        """Return the value of a node."""
        return self._values[self._code[index] if index < len(self._code) else 0]

    def judged(self, judge: Callable[[V], float], nodes: Indexes) -> npt.NDArray[np.float64]:
        """Return ``judge`` of the value of each of ``nodes``: float64[len(nodes)]."""
        return self._spread(np.array([judge(value) for value in self._values], dtype=np.float64), nodes)

    def holding(self, word: str, split: Callable[[V], Iterable[str]], nodes: Indexes) -> Holding:
        """Return for each of ``nodes`` if its value has a word: `HAS`, `LACKS`, or `NONE` without a value.

        ``split`` gives the words of a value. It is called once for each value, so that a search for one of
        thousands of words does not go through all values.
        """
        if self._words is None:
            self._words = defaultdict(list)
            for code in self._code_of.values():
                for each in split(self._values[code]) if code else ():
                    self._words[each].append(code)
        verdicts = np.full(len(self._values), LACKS)
        verdicts[self._words.get(word, [])] = HAS
        verdicts[0] = NONE
        return self._spread(verdicts, nodes)

    def _spread(self, verdicts: npt.NDArray[S], nodes: Indexes) -> npt.NDArray[S]:
        """Return the verdict on each node's value."""
        if not len(nodes) or int(nodes.max()) < len(self._code):
            return verdicts.take(self._codes(nodes))
        found = np.full(len(nodes), verdicts[0], dtype=verdicts.dtype)
        inside = nodes < len(self._code)
        found[inside] = verdicts[self._code[nodes[inside]]]
        return found

    def _codes(self, nodes: Indexes) -> Int32:
        """Return the codes of some nodes. Those of the last call are kept: to gather a hundred thousand codes
        for each project would be the slowest part of a project's first request."""
        if self._gathered is not None and self._gathered[0] is nodes:
            return self._gathered[1]
        codes = self._code.take(nodes)
        if 2 * len(nodes) > len(self._code):
            self._gathered = nodes, codes
        return codes

    def _new_code(self, value: V) -> int:
        self._words = None
        if self._free:
            code = self._free.pop()
            self._values[code] = value
            return code
        self._values.append(value)
        self._holders.append(0)
        return len(self._values) - 1
