"""Seals a session in a cookie: the browser keeps it, and can neither read nor change it."""

import base64
import binascii
import os
import secrets
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from roost.model.errors import OperatorError
from roost.process.durable_file import replace_file

KEY_BYTES = 32
_NONCE_BYTES = 12
_PURPOSE = b"roost dashboard session 1"
_LONGEST = 4096
"""Characters of a cookie that browsers keep at least, with its name and attributes."""


class DashboardSession(msgspec.Struct, frozen=True):
    """A session of a browser. Times are seconds since the epoch.

    ``token``: of the user, for the services that act for them. ``user``: the name that is shown. ``guard``:
    the header token that requests must have which change something. ``issued``: the dashboard got the token
    from Keystone, and revokes it when the session ends.
    """

    id: str
    token: str
    user: str
    guard: str
    ends: float
    issued: bool = False


class SessionTooLarge(Exception):
    """The token of a session is so long that browsers would not keep the cookie."""


class SessionSeal:
    """Seals and opens sessions with one key (AES-256-GCM). ``key``: `KEY_BYTES` bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, session: DashboardSession) -> str:
        """Return a session as the value of a cookie. Raises `SessionTooLarge`."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, msgspec.msgpack.encode(session), _PURPOSE)
        text = base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")
        if len(text) > _LONGEST - 200:
            raise SessionTooLarge(f"the token has {len(session.token)} characters")
        return text

    def open(self, cookie: str) -> DashboardSession | None:
        """Return the session of a cookie; None if it was not sealed with this key, or was changed."""
        try:
            raw = base64.b64decode(cookie + "=" * (-len(cookie) % 4), altchars=b"-_", validate=True)
            opened = self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _PURPOSE)
            return msgspec.msgpack.decode(opened, type=DashboardSession)
        except (ValueError, binascii.Error, InvalidTag, msgspec.DecodeError):
            return None


def new_session(token: str, user: str, ends: float, *, issued: bool = False) -> DashboardSession:
    """Return a new session. ``ends``: seconds since the epoch."""
    return DashboardSession(
        secrets.token_urlsafe(16), token, user, secrets.token_urlsafe(24), ends, issued=issued
    )


def session_key(folder: Path | None) -> bytes:
    """Return the key in a folder, which is made at the first start; without a folder a new key.

    Raises `OperatorError`: the folder cannot be used, or its key is not one.
    """
    if folder is None:
        return os.urandom(KEY_BYTES)
    path = folder / "session.key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            replace_file(path, os.urandom(KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise OperatorError(f"[dashboard] directory: {path}: {error.strerror}") from error
    if len(key) != KEY_BYTES:
        raise OperatorError(f"[dashboard] directory: {path} has {len(key)} bytes, not {KEY_BYTES}")
    return key
