"""The measurements of a replay in each bin: use of each resource class, its spread over hosts, outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SPREAD_PERCENTILES: Final = (5, 25, 50, 75, 95)
"""Percentiles of the hosts, in order of their use, at which a sample has the use."""


@dataclass(slots=True)
class UsageSamples:
    """One sample for each bin, in order of time, as columns of equal length.

    ``seconds``: the virtual time at which the bin starts. ``shares``: for each resource class the share of
    its capacity in use after the bin's requests, 0 to 1. ``spread``: for each resource class the share in
    use on the host at each of `SPREAD_PERCENTILES` of the hosts that have the class. ``placed``
    (``on_alternate`` of them after a build failed elsewhere), ``refused`` and ``failed``: instances of the
    bin by outcome.
    """

    seconds: list[int] = field(default_factory=list)
    shares: dict[str, list[float]] = field(default_factory=dict)
    spread: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    placed: list[int] = field(default_factory=list)
    on_alternate: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def add(
        self,
        second: int,
        shares: Mapping[str, float],
        spread: Mapping[str, tuple[float, ...]],
        *,
        placed: int,
        on_alternate: int = 0,
        refused: int = 0,
        failed: int = 0,
    ) -> None:
        """Add the sample of a bin that starts at ``second``, in virtual seconds.

        Raises:
            ValueError: the bin does not start after the last one, or has other resource classes.
        """
        if self.seconds and second <= self.seconds[-1]:
            raise ValueError(f"a bin at {second}, but one at {self.seconds[-1]} before")
        if self.seconds and shares.keys() != self.shares.keys():
            raise ValueError(f"shares of {sorted(shares)}, but of {sorted(self.shares)} before")
        if spread.keys() != shares.keys():
            raise ValueError(f"the spread of {sorted(spread)}, but shares of {sorted(shares)}")
        self.seconds.append(second)
        for resource_class, share in shares.items():
            self.shares.setdefault(resource_class, []).append(share)
            self.spread.setdefault(resource_class, []).append(spread[resource_class])
        self.placed.append(placed)
        self.on_alternate.append(on_alternate)
        self.refused.append(refused)
        self.failed.append(failed)
