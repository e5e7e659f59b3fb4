"""Counters, gauges and histograms in the memory of one process.

For use from the thread of the event loop only: there are no locks. Before `start_counting` nothing counts.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import product
from typing import ClassVar, Final, Generic, Literal, NamedTuple, TypeVar

OTHER: Final = "other"
"""The label value that stands for all values beyond those of the label."""

REQUEST_SECONDS: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0
)  # fmt: skip
"""Bounds for durations of requests and decisions."""

MOST_SERIES = 500
"""Series of one metric at most. Further label values are counted under `OTHER`."""

_counting = False


class Label(NamedTuple):
    """A label. ``values``: all of its values; None if known only at run time. ``text``: their meaning."""

    name: str
    text: str
    values: tuple[str, ...] | None = None


class Count:
    """The value of a counter for one combination of label values."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Add ``amount``, which is not negative."""
        if _counting:
            self.value += amount

    def reset(self) -> None:
        """Begin at zero."""
        self.value = 0.0

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers to publish: the value."""
        return (self.value,)


class Level:
    """The value of a gauge for one combination of label values. ``value``: None until it is set."""

    __slots__ = ("_read", "value")

    def __init__(self) -> None:
        self.value: float | None = None
        self._read: Callable[[], float] | None = None

    def set(self, value: float) -> None:
        """Replace the value."""
        if _counting:
            self.value = value

    def follow(self, read: Callable[[], float]) -> None:
        """Read the value from ``read`` at each publication. A later source replaces an earlier one."""
        if _counting:
            self._read = read

    def reset(self) -> None:
        """Forget value and source."""
        self.value = self._read = None

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers to publish: the value, or nothing before there is one."""
        if self._read is not None:
            self.value = self._read()
        return () if self.value is None else (self.value,)


class Distribution:
    """The values that a histogram observed for one combination of label values.

    ``counts``: for each bound the observations up to it and above the one before; then those above the last.
    """

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        if _counting:
            self.counts[bisect_left(self._bounds, value)] += 1
            self.sum += value

    def reset(self) -> None:
        """Begin at zero."""
        self.counts[:] = [0] * len(self.counts)
        self.sum = 0.0

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers to publish: the counts and the sum."""
        return (*self.counts, self.sum)


S = TypeVar("S", Count, Level, Distribution)


class MetricFamily(Generic[S]):
    """A metric: a series of values for each combination of its labels' values.

    Args:
        name: by Prometheus' conventions: prefix ``roost_``, base unit at the end, ``_total`` after it for
            counters.
        help: what the value means, in one sentence.
        advice: what operators do with it, for the page.
        labels: the labels; the number of their combinations is bounded by `MOST_SERIES`.
    """

    kind: ClassVar[str]

    def __init__(self, name: str, help: str, advice: str, labels: Sequence[Label] = ()) -> None:
        self.name = name
        self.help = help
        self.advice = advice
        self.label_names = tuple(label.name for label in labels)
        self.described_labels = tuple(labels)
        self.series: dict[tuple[str, ...], S] = {}

    def labels(self, *values: str) -> S:
        """Return the series of these label values. Callers on hot paths keep it.

        A value beyond those of its label counts as `OTHER`; so does each new one after `MOST_SERIES` series.
        """
        found = self.series.get(values)
        return self._add(values) if found is None else found

    def _add(self, values: tuple[str, ...]) -> S:
        assert len(values) == len(self.label_names), f"{self.name} has the labels {self.label_names}"
        values = tuple(
            value if label.values is None or value in label.values else OTHER
            for value, label in zip(values, self.described_labels, strict=True)
        )
        if len(self.series) >= MOST_SERIES and values not in self.series:
            values = tuple(OTHER for _ in values)
        return self.series.setdefault(values, self._new())

    def _new(self) -> S:
        raise NotImplementedError


class Counter(MetricFamily[Count]):
    """A number that only grows."""

    kind = "counter"

    def inc(self, amount: float = 1.0) -> None:
        """Add to a counter without labels."""
        self.labels().inc(amount)

    def _new(self) -> Count:
        return Count()


class Gauge(MetricFamily[Level]):
    """A number that goes up and down. ``across``: the function that joins the values of several processes."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        help: str,
        advice: str,
        labels: Sequence[Label] = (),
        *,
        across: Literal["sum", "max", "min"] = "sum",
    ) -> None:
        super().__init__(name, help, advice, labels)
        self.across = across

    def set(self, value: float) -> None:
        """Replace the value of a gauge without labels."""
        self.labels().set(value)

    def follow(self, read: Callable[[], float]) -> None:
        """Read the value of a gauge without labels from ``read`` at each publication."""
        self.labels().follow(read)

    def _new(self) -> Level:
        return Level()


class Histogram(MetricFamily[Distribution]):
    """The distribution of values. ``bounds``: upper bounds of the buckets, ascending, without infinity."""

    kind = "histogram"

    def __init__(
        self, name: str, help: str, advice: str, labels: Sequence[Label] = (), *, bounds: Sequence[float]
    ) -> None:
        super().__init__(name, help, advice, labels)
        self.bounds = tuple(bounds)

    def observe(self, value: float) -> None:
        """Count one value of a histogram without labels."""
        self.labels().observe(value)

    def _new(self) -> Distribution:
        return Distribution(self.bounds)


def start_counting(
    metrics: Sequence[MetricFamily[Count] | MetricFamily[Level] | MetricFamily[Distribution]],
) -> None:
    """Start counting at zero: a forked process may have inherited the numbers of its parent.

    Series whose label values are all known exist at once, so that their first increase shows in a rate.
    """
    global _counting
    _counting = True
    for metric in metrics:
        for series in metric.series.values():
            series.reset()
        known = [label.values for label in metric.described_labels]
        for values in product(*(each for each in known if each is not None)):
            if len(values) == len(known):
                metric.labels(*values)


def stop_counting() -> None:
    """Count nothing from now on."""
    global _counting
    _counting = False


def counting() -> bool:
    """Return whether metrics are counted in this process."""
    return _counting
