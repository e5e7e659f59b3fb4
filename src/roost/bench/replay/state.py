"""The state of a replay, with the samples of each bin, saved so that an interrupted replay can be resumed."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from roost.bench.errors import ReplayError
from roost.bench.replay.occupancy import NOTHING_IN_USE, Occupancy
from roost.process.durable_file import why_no_directory
from roost.server.all_in_one.layout import FILE as LAYOUT

FILE = "replay.json"
"""Name of the state file in the data directory."""

_DATABASES = ("*.db", "*.db-wal", "*.db-shm", "*.db-journal")


SPREAD_PERCENTILES: Final = (5, 25, 50, 75, 95)
"""Percentiles of the hosts, in order of their use, at which a sample has the use."""


@dataclass(slots=True)
class UsageSamples:
    """One sample for each bin, in order of time, as columns of equal length.

    ``seconds``: the virtual time at which the bin starts. ``shares``: for each resource class the share of
    its capacity in use after the bin's requests, 0 to 1. ``spread``: for each resource class the share in
    use on the host at each of `SPREAD_PERCENTILES` of the hosts that have the class. ``placed``
    (``on_alternate`` of them after a build failed elsewhere), ``refused`` and ``failed``: instances of the
    bin by outcome. ``in_use``: hosts with an instance; ``fewest``: see `Occupancy`.
    """

    seconds: list[int] = field(default_factory=list)
    shares: dict[str, list[float]] = field(default_factory=dict)
    spread: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    placed: list[int] = field(default_factory=list)
    on_alternate: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    in_use: list[int] = field(default_factory=list)
    fewest: list[int] = field(default_factory=list)

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
        occupancy: Occupancy = NOTHING_IN_USE,
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
        self.in_use.append(occupancy.in_use)
        self.fewest.append(occupancy.fewest)


class Counts(msgspec.Struct):
    """Instances by outcome so far. ``refusals`` counts refused instances by reason."""

    placed: int = 0
    on_alternate: int = 0
    failed: int = 0
    departed: int = 0
    refusals: dict[str, int] = {}

    @property
    def refused(self) -> int:
        """Instances for which no host was found."""
        return sum(self.refusals.values())


class ReplayState(msgspec.Struct):
    """The progress of a replay.

    ``parameters``: the workload and options that identify the replay. ``next_bin``: the index of the first
    bin that is not finished.
    """

    parameters: dict[str, str]
    next_bin: int = 0
    finished: bool = False
    counts: Counts = msgspec.field(default_factory=Counts)
    samples: UsageSamples = msgspec.field(default_factory=UsageSamples)


def is_finished(directory: Path) -> bool:
    """Return whether a directory contains a finished replay that can be read."""
    try:
        return msgspec.json.decode((directory / FILE).read_bytes(), type=ReplayState).finished
    except (OSError, msgspec.DecodeError):
        return False


def open_state(
    directory: Path, parameters: dict[str, str], fresh: bool, *, keep_finished: bool = False
) -> ReplayState:
    """Return the saved state of an interrupted replay in ``directory``, or a new state.

    The files of a finished replay are removed, unless ``keep_finished`` and its parameters are these; with
    ``fresh`` also those of an unfinished one.

    Raises:
        ReplayError: the directory has databases of another program or an unfinished replay with other
            parameters, or its state cannot be read. Nothing is removed then.
    """
    path = directory / FILE
    there = [found for pattern in _DATABASES for found in directory.glob(pattern)]
    if not path.exists():
        if there:
            raise ReplayError(
                f"data directory {directory} contains {there[0].name}, which is not of a replay"
            )
        return ReplayState(parameters)
    try:
        state = msgspec.json.decode(path.read_bytes(), type=ReplayState)
    except (OSError, msgspec.DecodeError) as error:
        raise ReplayError(f"cannot read {path}: {error}") from error
    whole = len(state.samples.in_use) == len(state.samples.seconds)
    if not (whole or state.finished or fresh):
        raise ReplayError(
            f"{path} is of an earlier version, without the hosts in use: replace it with --fresh"
        )
    kept = keep_finished and whole and state.parameters == parameters
    if fresh or (state.finished and not kept):
        # The state is removed last: after an interruption the directory is still that of a replay.
        _remove([*there, directory / LAYOUT, path])
        return ReplayState(parameters)
    if state.parameters != parameters:
        differing = ", ".join(
            f"{name} {state.parameters.get(name)} and not {parameters.get(name)}"
            for name in sorted(state.parameters.keys() | parameters.keys())
            if state.parameters.get(name) != parameters.get(name)
        )
        raise ReplayError(
            f"data directory {directory} contains an unfinished replay of {differing}: "
            "replace it with --fresh, or use another --data-dir"
        )
    return state


def save_state(directory: Path, state: ReplayState) -> None:
    """Write the state atomically.

    Raises:
        ReplayError: the directory cannot be created or written.
    """
    path = directory / FILE
    temporary = path.with_suffix(".new")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(state))
        temporary.replace(path)
    except OSError as error:
        raise ReplayError(f"data directory {directory} cannot be used: {why_no_directory(error)}") from error


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
