"""What a replay measures at each bin: the use of each resource class, and the outcomes of instances."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class UsageSamples:
    """One sample for each bin, in order of time, as columns of equal length.

    ``seconds``: the virtual time at which the bin starts. ``shares``: for each resource class the share of
    its capacity that is in use after the bin's requests, 0 to 1. ``placed``, ``refused`` and ``failed``:
    instances of the bin by outcome.
    """

    seconds: list[int] = field(default_factory=list)
    shares: dict[str, list[float]] = field(default_factory=dict)
    placed: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def add(
        self, second: int, shares: Mapping[str, float], *, placed: int, refused: int = 0, failed: int = 0
    ) -> None:
        """Add the sample of a bin that starts at ``second``, in virtual seconds.

        Raises:
            ValueError: the bin does not start after the last one, or has other resource classes.
        """
        if self.seconds and second <= self.seconds[-1]:
            raise ValueError(f"a bin at {second}, but one at {self.seconds[-1]} before")
        if self.seconds and shares.keys() != self.shares.keys():
            raise ValueError(f"shares of {sorted(shares)}, but of {sorted(self.shares)} before")
        self.seconds.append(second)
        for resource_class, share in shares.items():
            self.shares.setdefault(resource_class, []).append(share)
        self.placed.append(placed)
        self.refused.append(refused)
        self.failed.append(failed)
