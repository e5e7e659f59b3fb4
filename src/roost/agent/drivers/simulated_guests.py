"""The guests of a simulated host, as files: they outlive the agent, as a hypervisor does."""

from pathlib import Path

import msgspec

from roost.agent.errors import StateUnusable
from roost.model.assignment import Assignment


class KeptGuest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A guest that runs: the attempt that built it, and its assigned hardware."""

    attempt: int
    assignment: Assignment | None = None


class GuestFiles:
    """A folder with one file for each guest that runs, named by the instance."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if need be. Raises `StateUnusable`."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateUnusable(f"the folder of guests {folder} cannot be used: {error}") from error

    def load(self) -> dict[str, KeptGuest]:
        """Return all guests, by instance. Raises `StateUnusable`."""
        try:
            return {
                path.name: msgspec.json.decode(path.read_bytes(), type=KeptGuest)
                for path in self._folder.iterdir()
                if path.suffix != ".new"
            }
        except (OSError, msgspec.MsgspecError) as error:
            raise StateUnusable(f"the guests in {self._folder} cannot be read: {error}") from error

    def started(self, instance: str, guest: KeptGuest) -> None:
        """Keep a guest that runs. Raises OSError."""
        # Replaced as a whole. It need not be durable: no guest outlives its machine.
        fresh = self._folder / f"{instance}.new"
        fresh.write_bytes(msgspec.json.encode(guest))
        fresh.replace(self._folder / instance)

    def destroyed(self, instance: str) -> None:
        """Remove a guest. Raises OSError."""
        (self._folder / instance).unlink(missing_ok=True)
