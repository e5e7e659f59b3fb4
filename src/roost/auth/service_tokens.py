"""Service tokens: those of services and people in a cloud without Keystone, kept in a file of TOML.

The file has a table for each token, by its name. It holds the digest of a token, never the token:

    [compute-conductors]
    digest = "9f86d0…"        # SHA-256 of the token, in hexadecimal digits
    user = "conductors"
    project = "service"
    roles = ["admin", "service"]
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec

from roost.model.errors import OperatorError

PREFIX: Final = "roost-service-"
"""How each token begins, so that people and programs that look for secrets recognise one."""

_RANDOM_BYTES: Final = 32
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MODE: Final = 0o640
"""The mode of a new file. It has no token, but it tells who may do what, and who writes it decides that."""

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


class ServiceToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token proves: a user with roles in a project. ``digest``: `token_digest` of the token."""

    digest: _Digest
    user: _Text
    project: _Text
    roles: tuple[_Text, ...]


Tokens = Mapping[str, ServiceToken]
"""Tokens by name."""


def new_token() -> str:
    """A token that nobody can guess: 256 random bits."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def token_digest(token: str) -> str:
    """What is kept of a token: 64 hexadecimal digits. It has no salt, because no two tokens are alike."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(file: Path) -> Tokens:
    """Read a file of tokens. Raises `OperatorError` for one that is not there or does not have the form."""
    try:
        tokens = msgspec.toml.decode(file.read_bytes(), type=dict[str, ServiceToken])
    except OSError as error:
        raise OperatorError(f"tokens: {file} cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"tokens: {file}: {error}") from error
    names: dict[str, str] = {}
    for name, token in tokens.items():
        if (other := names.setdefault(token.digest, name)) != name:
            raise OperatorError(f"tokens: {file}: {other} and {name} have the same digest")
    return tokens


def add_token(file: Path, name: str, user: str, project: str, roles: tuple[str, ...]) -> str:
    """Add a token to a file, which is made if it is not there. Returns the token, which is kept nowhere.

    Raises:
        OperatorError: The name is taken or no name, or the file cannot be read or written.
    """
    if not _NAME.fullmatch(name):
        raise OperatorError(f"{name!r} is no name of a token: it has 1 to 64 letters, digits, _ and -")
    token = new_token()
    fields = {"digest": token_digest(token), "user": user, "project": project, "roles": roles}
    try:
        added = msgspec.convert(fields, ServiceToken)
    except msgspec.ValidationError as error:
        raise OperatorError(f"token {name}: {error}") from error
    with _changing(file):
        tokens = read_tokens(file) if file.exists() else {}
        if name in tokens:
            raise OperatorError(f"{file} has a token {name} already: revoke it, or choose another name")
        _write(file, {**tokens, name: added})
    return token


def revoke_token(file: Path, name: str) -> None:
    """Take a token out of a file. Raises `OperatorError` if it is not there."""
    with _changing(file):
        tokens = read_tokens(file)
        if name not in tokens:
            raise OperatorError(f"{file} has no token {name}")
        _write(file, {each: token for each, token in tokens.items() if each != name})


@contextlib.contextmanager
def _changing(file: Path) -> Iterator[None]:
    """Keep other processes from changing a file, by a lock on its folder: the file itself is replaced."""
    try:
        folder = os.open(file.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OperatorError(f"tokens: {file} cannot be written: {error.strerror or error}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _write(file: Path, tokens: Tokens) -> None:
    """Replace a file as a whole, so that no reader sees a part of it and a crash leaves one of both."""
    # Strings of JSON are strings of TOML.
    text = "\n".join(
        f"[{name}]\ndigest = {json.dumps(token.digest)}\nuser = {json.dumps(token.user)}\n"
        f"project = {json.dumps(token.project)}\nroles = {json.dumps(token.roles)}\n"
        for name, token in tokens.items()
    )
    written = file.with_name(f".{file.name}.new")
    try:
        mode = file.stat().st_mode & 0o777 if file.exists() else _MODE
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w") as out:
            os.fchmod(descriptor, mode)
            out.write(text)
            out.flush()
            os.fsync(descriptor)
        written.replace(file)
    except OSError as error:
        raise OperatorError(f"tokens: {file} cannot be written: {error.strerror or error}") from error
