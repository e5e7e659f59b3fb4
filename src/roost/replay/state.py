"""How far a replay has come, kept beside its databases so that a run that was cut off can go on."""

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from roost.replay.errors import ReplayError
from roost.replay.plot import UsageSamples
from roost.system.layout import FILE as LAYOUT

FILE = "replay.json"
_DATABASES = ("*.db", "*.db-wal", "*.db-shm", "*.db-journal")


class Counts(msgspec.Struct):
    """What has become of the instances so far. ``refusals``: reason -> instances."""

    placed: int = 0
    on_alternate: int = 0
    failed: int = 0
    departed: int = 0
    refusals: dict[str, int] = {}

    @property
    def refused(self) -> int:
        """Instances that no host was found for."""
        return sum(self.refusals.values())


class ReplayState(msgspec.Struct):
    """``parameters`` say which replay it is; ``next_bin`` is the first bin that is not finished."""

    parameters: dict[str, str]
    next_bin: int = 0
    finished: bool = False
    counts: Counts = msgspec.field(default_factory=Counts)
    samples: UsageSamples = msgspec.field(default_factory=UsageSamples)


def take_up(directory: Path, parameters: dict[str, str], fresh: bool) -> ReplayState:
    """The state of the replay in ``directory``: a new one, or one that was cut off.

    A finished replay is replaced; so is any other if ``fresh``. Raises `ReplayError` if the directory
    holds something else, which is left alone.
    """
    path = directory / FILE
    there = [found for pattern in _DATABASES for found in directory.glob(pattern)]
    if not path.exists():
        if there:
            raise ReplayError(
                f"data directory {directory} holds {there[0].name} of something that is no replay"
            )
        return ReplayState(parameters)
    try:
        state = msgspec.json.decode(path.read_bytes(), type=ReplayState)
    except (OSError, msgspec.DecodeError) as error:
        raise ReplayError(f"cannot read {path}: {error}") from error
    if state.finished or fresh:
        # The state last: cut off in between, the directory is still that of a replay.
        _remove([*there, directory / LAYOUT, path])
        return ReplayState(parameters)
    if state.parameters != parameters:
        differing = ", ".join(
            f"{name} {state.parameters.get(name)} and not {parameters.get(name)}"
            for name in sorted(state.parameters.keys() | parameters.keys())
            if state.parameters.get(name) != parameters.get(name)
        )
        raise ReplayError(
            f"data directory {directory} holds an unfinished replay of {differing}: "
            "give --fresh to replace it, or another --data-dir"
        )
    return state


def keep(directory: Path, state: ReplayState) -> None:
    """Write the state, whole or not at all. Raises `ReplayError`."""
    path = directory / FILE
    temporary = path.with_suffix(".new")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(state))
        temporary.replace(path)
    except OSError as error:
        raise ReplayError(f"data directory {directory} cannot be used: {error.strerror}") from error


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
