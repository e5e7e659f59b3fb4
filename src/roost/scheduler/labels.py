"""The values of one aggregate metadata key, host by host."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Int32, grown

Values = tuple[str, ...]
"""What the aggregates of one host have for a key; empty if none has it."""

Indexes = npt.NDArray[np.intp]


class Labels:
    """The values by host index. Equal ones are kept once, so that thousands of hosts in a few aggregates
    are judged by judging a few values. ``labelled``: the number of hosts that have values."""

    def __init__(self) -> None:
        self.labelled = 0
        self._values: list[Values] = [()]
        self._code_of: dict[Values, int] = {(): 0}
        self._code: Int32 = np.zeros(0, dtype=np.int32)

    def put(self, index: int, values: Values) -> None:
        """Set the values of a host."""
        self._code = grown(self._code, index + 1, 0)
        code = self._code_of.setdefault(values, len(self._values))
        if code == len(self._values):
            self._values.append(values)
        self.labelled += (code != 0) - (self._code.item(index) != 0)
        self._code[index] = code

    def of(self, index: int) -> Values:
        """The values of a host."""
        return self._values[self._code[index]] if index < len(self._code) else ()

    def judged(self, judge: Callable[[Values], float], hosts: Indexes) -> npt.NDArray[np.float64]:
        """``judge`` of the values of each of ``hosts``: float64[len(hosts)]."""
        verdicts = np.array([judge(values) for values in self._values], dtype=np.float64)
        if not len(hosts) or int(hosts.max()) < len(self._code):
            return verdicts.take(self._code.take(hosts))
        found = np.full(len(hosts), verdicts[0])
        inside = hosts < len(self._code)
        found[inside] = verdicts[self._code[hosts[inside]]]
        return found
