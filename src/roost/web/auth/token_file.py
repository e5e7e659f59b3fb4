"""The authenticator for service tokens, which are in a file."""

import time
from collections.abc import Mapping
from pathlib import Path

import structlog

from roost.model.errors import OperatorError
from roost.model.token import token_digest
from roost.web.auth.identity import Identity
from roost.web.auth.service_tokens import ServiceToken, read_tokens

_log = structlog.get_logger()

CHECK_SECONDS = 1.0
"""Seconds between two checks of the file. A revoked token is accepted for that time at most."""


class TokenFile:
    """Finds the identity of a request by the digest of its token.

    A change of the file takes effect without a restart. A file that becomes invalid changes nothing: the last
    valid tokens stay, and each change that leaves it invalid is logged in one line. A request with a
    service token is refused if that token is not in the file, as by keystonemiddleware.
    """

    challenge = None

    def __init__(self, file: Path) -> None:
        """Read the file. Raises `OperatorError`."""
        self._file = file
        self._state = _state(file)
        self._refused: tuple[tuple[int, ...] | None, str] | None = None
        self._by_digest = _by_digest(file)
        self._look_at = time.monotonic() + CHECK_SECONDS

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        if time.monotonic() >= self._look_at:
            self._look_again()
        token = self._found(headers.get("x-auth-token"))
        if token is None:
            return None
        if (sent := headers.get("x-service-token")) is None:
            return Identity(user_id=token.user, project_id=token.project, roles=token.roles)
        if (service := self._found(sent)) is None:
            return None
        return Identity(
            user_id=token.user,
            project_id=token.project,
            roles=token.roles,
            service_user_id=service.user,
            service_project_id=service.project,
            service_roles=service.roles,
        )

    def _found(self, token: str | None) -> ServiceToken | None:
        # By digest, so that the duration of the search reveals nothing of a token.
        return None if token is None else self._by_digest.get(token_digest(token))

    def _look_again(self) -> None:
        self._look_at = time.monotonic() + CHECK_SECONDS
        state = _state(self._file)
        if state == self._state:
            return
        try:
            self._by_digest = _by_digest(self._file)
        except OperatorError as error:
            # It is read again soon: it may be valid but unreadable now, and have fewer tokens.
            if (refused := (state, str(error))) != self._refused:
                _log.error("the file of tokens is invalid; the last valid tokens stay", error=str(error))
            self._refused = refused
            return
        self._state, self._refused = state, None


def _by_digest(file: Path) -> dict[str, ServiceToken]:
    return {token.digest: token for token in read_tokens(file).values()}


def _state(file: Path) -> tuple[int, ...] | None:
    """Return a value that differs after any change of the file; None if the file is missing."""
    try:
        found = file.stat()
    except OSError:
        return None
    # The change time, because other times can be set, and a new mode or owner changes only this one.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
