"""The durable state of an agent in its state directory: its session, tokens and applied providers."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from roost.agent.errors import StateUnusable
from roost.agent.protocol.types import HistoryPosition
from roost.agent.provider_merge import Applied
from roost.model.names import provider_uuid
from roost.model.token import token_digest
from roost.process.durable_file import replace_file, why_no_directory

T = TypeVar("T")

SESSION = "session.json"
TOKENS = "tokens.json"
GIVEN = "given.json"
ANSWERED = "answered.json"
FENCED = "fenced.json"
LOCK = "lock"

KEPT_TOKENS = 2
"""Tokens that are kept: a new one, and the one before, which is valid until the new one is used."""


class KeptSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last session of an agent, and the position of its cell's database.

    ``nonces``: those of its last sessions, newest first. ``position``: the highest that it has seen, None
    before the first session. ``held``: the reason why it carries out no orders until an operator accepts the
    cell's state. ``accepted``: an operator has accepted it since the last session. ``refused``: the nodes
    whose reports the cell does not take (uuid -> reason).
    """

    nonces: tuple[str, ...] = ()
    position: HistoryPosition | None = None
    held: str | None = None
    accepted: bool = False
    refused: dict[str, str] = {}


class KeptAnswer(msgspec.Struct, frozen=True):
    """When the cell was heard: monotonic seconds, in the run of the machine with an id."""

    boot: str
    at: float


class AgentState(Protocol):
    """The durable state of an agent: a directory, or memory. Each call raises `StateUnusable`."""

    async def load_session(self) -> KeptSession:
        """Return the session that was kept last."""

    async def keep_session(self, session: KeptSession) -> None:
        """Keep this session."""

    async def load_applied(self, node: str) -> Applied:
        """Return the applied providers of a node, by the node's name."""

    async def keep_applied(self, node: str, applied: Applied) -> None:
        """Keep the applied providers of a node."""

    async def keep_token(self, token: str) -> None:
        """Keep a new token of the host, and the one before."""

    async def load_answered(self) -> float | None:
        """Return the monotonic seconds that were kept last; None: none since the start of the machine."""

    async def keep_answered(self, at: float | None) -> None:
        """Keep monotonic seconds of the machine beyond the end of the agent; None: forget them.

        They need not outlive the machine.
        """

    async def load_fenced(self) -> dict[str, int]:
        """Return the guests that a fence has stopped: instance -> attempt."""

    async def keep_fenced(self, guests: dict[str, int]) -> None:
        """Keep the guests that a fence has stopped, durably."""


class MemoryState:
    """The state of a host that is simulated in one process, in memory."""

    def __init__(self) -> None:
        self.session = KeptSession()
        self.applied: dict[str, Applied] = {}
        self.tokens: tuple[str, ...] = ()
        self.answered: float | None = None
        self.fenced: dict[str, int] = {}

    async def load_session(self) -> KeptSession:
        """Return the session that was kept last."""
        return self.session

    async def keep_session(self, session: KeptSession) -> None:
        """Keep this session."""
        self.session = session

    async def load_applied(self, node: str) -> Applied:
        """Return the applied providers of a node."""
        return self.applied.get(node, {})

    async def keep_applied(self, node: str, applied: Applied) -> None:
        """Keep the applied providers of a node."""
        self.applied[node] = applied

    async def keep_token(self, token: str) -> None:
        """Keep a new token of the host, and the one before."""
        self.tokens = (token, *self.tokens)[:KEPT_TOKENS]

    async def load_answered(self) -> float | None:
        """Return the monotonic seconds that were kept last."""
        return self.answered

    async def keep_answered(self, at: float | None) -> None:
        """Keep monotonic seconds of the machine."""
        self.answered = at

    async def load_fenced(self) -> dict[str, int]:
        """Return the guests that a fence has stopped."""
        return dict(self.fenced)

    async def keep_fenced(self, guests: dict[str, int]) -> None:
        """Keep the guests that a fence has stopped."""
        self.fenced = guests


class StateDirectory:
    """The state of an agent in the files of a directory, which it locks against other agents.

    A file is replaced as a whole, durably. ``tokens``: the tokens that the cell has given, and a newer one
    of an operator; newest first.
    """

    def __init__(self, directory: Path) -> None:
        """Make the directory if need be.

        Raises `StateUnusable` if it cannot be used or another agent uses it.
        """
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateUnusable(
                f"the state directory {directory} cannot be used: {why_no_directory(error)}"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise StateUnusable(f"another agent uses the state directory {directory}") from error
        try:
            self.tokens: tuple[str, ...] = self._load(TOKENS, tuple[str, ...], tuple)
        except StateUnusable:
            self.close()
            raise

    def close(self) -> None:
        """Unlock the directory."""
        os.close(self._lock)

    async def load_session(self) -> KeptSession:
        """Return the session that was kept last. Raises `StateUnusable`."""
        return self._load(SESSION, KeptSession, KeptSession)

    async def keep_session(self, session: KeptSession) -> None:
        """Keep this session. Raises `StateUnusable`."""
        self._keep(SESSION, session)

    async def load_applied(self, node: str) -> Applied:
        """Return the applied providers of a node. Raises `StateUnusable`."""
        return self._load(_file_of(node), Applied, dict)

    async def keep_applied(self, node: str, applied: Applied) -> None:
        """Keep the applied providers of a node. Raises `StateUnusable`."""
        self._keep(_file_of(node), applied)

    async def keep_token(self, token: str) -> None:
        """Keep a new token of the host, and the one before. Raises `StateUnusable`."""
        tokens = (token, *self.tokens)[:KEPT_TOKENS]
        self._keep(TOKENS, tokens)
        self.tokens = tokens

    async def load_answered(self) -> float | None:
        """Return the monotonic seconds that were kept last in this run of the machine.

        Raises `StateUnusable`.
        """
        kept: KeptAnswer | None = self._load(ANSWERED, KeptAnswer, _no_answer)
        return kept.at if kept is not None and kept.boot == boot_id() else None

    async def keep_answered(self, at: float | None) -> None:
        """Keep monotonic seconds of the machine. Raises `StateUnusable`."""
        path = self._directory / ANSWERED
        try:
            if at is None:
                path.unlink(missing_ok=True)
            else:
                # Not durably: it is of no use after the end of the machine.
                fresh = path.with_name(f".{ANSWERED}.new")
                fresh.write_bytes(msgspec.json.encode(KeptAnswer(boot_id(), at)))
                fresh.replace(path)
        except OSError as error:
            raise StateUnusable(f"{path} cannot be written: {error}") from error

    async def load_fenced(self) -> dict[str, int]:
        """Return the guests that a fence has stopped. Raises `StateUnusable`."""
        return self._load(FENCED, dict[str, int], dict)

    async def keep_fenced(self, guests: dict[str, int]) -> None:
        """Keep the guests that a fence has stopped. Raises `StateUnusable`."""
        self._keep(FENCED, guests)

    def take_given(self, token: str) -> None:
        """Take a token from an operator. One that differs from that of the last start is tried first.

        Its use ends the kept tokens, which others may know. Raises `StateUnusable`.
        """
        digest = token_digest(token)
        if self._load(GIVEN, str, str) == digest:
            return
        if self.tokens:
            tokens = tuple(dict.fromkeys((token, *self.tokens)))
            self._keep(TOKENS, tokens)
            self.tokens = tokens
        self._keep(GIVEN, digest)

    def keep_accepted(self, session: KeptSession) -> None:
        """Keep that an operator has accepted the cell's state after a session. Raises `StateUnusable`."""
        self._keep(SESSION, KeptSession(nonces=session.nonces, accepted=True))

    def _load(self, name: str, kind: Any, otherwise: Callable[[], T]) -> T:
        return _decoded(self._directory / name, kind, otherwise)

    def _keep(self, name: str, value: object) -> None:
        path = self._directory / name
        try:
            replace_file(path, msgspec.json.encode(value))
        except OSError as error:
            raise StateUnusable(f"{path} cannot be written: {error}") from error


def kept_session(directory: Path) -> KeptSession:
    """Return the session that an agent has kept; the agent may be running. Raises `StateUnusable`."""
    return _decoded(directory / SESSION, KeptSession, KeptSession)


def accept(directory: Path) -> None:
    """Have the agent of a state directory accept its cell's state; for operators, while no agent runs.

    Raises `StateUnusable`.
    """
    state = StateDirectory(directory)
    try:
        session = kept_session(directory)
        state.keep_accepted(session)
    finally:
        state.close()


def boot_id() -> str:
    """Return the id of this run of the machine: its monotonic clock begins anew with each. Raises
    `StateUnusable`."""
    try:
        return _BOOT.read_text().strip()
    except OSError as error:
        raise StateUnusable(f"{_BOOT} cannot be read: {error}") from error


_BOOT = Path("/proc/sys/kernel/random/boot_id")


def _no_answer() -> None:
    return None


def _file_of(node: str) -> str:
    # By uuid, because a node's name may have any characters.
    return f"providers-{provider_uuid(node)}.json"


def _decoded(path: Path, kind: Any, otherwise: Callable[[], T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)  # type: ignore[no-any-return]
    except FileNotFoundError:
        return otherwise()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StateUnusable(f"{path} cannot be read: {error}") from error
