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
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec

from roost.model.errors import OperatorError
from roost.model.token import token_digest
from roost.model.wrong_value import field_names, wrong_value
from roost.process.durable_file import replace_file

PREFIX: Final = "roost-service-"
"""Prefix of each token, by which people and secret scanners recognise one."""

_RANDOM_BYTES: Final = 32
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MODE: Final = 0o640
"""The mode of a new file. It holds no token, but it grants roles: only its owner may write it."""

_Text = Annotated[
    str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f\ud800-\udfff]*$")
]
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


class ServiceToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity that a token proves: a user with roles in a project. ``digest``: its `token_digest`."""

    digest: _Digest
    user: _Text
    project: _Text
    roles: tuple[_Text, ...]


Tokens = Mapping[str, ServiceToken]
"""Tokens by name."""


def new_token() -> str:
    """Return a new token of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def read_tokens(file: Path) -> Tokens:
    """Read a file of tokens. Raises `OperatorError` if it is missing or malformed."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise OperatorError(f"tokens: {file} cannot be read: {error.strerror or error}") from error
    return _decode(file, content)


def add_token(file: Path, name: str, user: str, project: str, roles: tuple[str, ...]) -> str:
    """Add a token to a file, which is created if missing. Returns the token, which is stored nowhere.

    Raises:
        OperatorError: The name is taken or malformed, or the file cannot be read or written.
    """
    if not _NAME.fullmatch(name):
        raise OperatorError(f"{name!r} is no name of a token: it has 1 to 64 letters, digits, _ and -")
    token = new_token()
    fields = {"digest": token_digest(token), "user": user, "project": project, "roles": roles}
    try:
        added = msgspec.convert(fields, ServiceToken)
    except msgspec.ValidationError as error:
        raise OperatorError(f"token {name}: {wrong_value(error, fields)}") from error
    with _changing(file):
        tokens = read_tokens(file) if file.exists() else {}
        if name in tokens:
            raise OperatorError(f"{file} has a token {name} already: revoke it, or choose another name")
        _write(file, {**tokens, name: added})
    return token


def revoke_token(file: Path, name: str) -> None:
    """Remove a token from a file. Raises `OperatorError` if the file does not have it."""
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


def _decode(file: Path, content: bytes) -> Tokens:
    try:
        tokens = msgspec.toml.decode(content, type=dict[str, ServiceToken])
    except msgspec.ValidationError as error:
        # The message gets no document to quote: a token may stand where a digest should.
        text = wrong_value(error, known=partial(field_names, ServiceToken))
        raise OperatorError(f"tokens: {file}: {text}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"tokens: {file}: {error}") from error
    names: dict[str, str] = {}
    for name, token in tokens.items():
        if (other := names.setdefault(token.digest, name)) != name:
            raise OperatorError(f"tokens: {file}: {other} and {name} have the same digest")
    return tokens


def _write(file: Path, tokens: Tokens) -> None:
    """Replace the file, with its owner and mode: a service that cannot read it would not see a revocation."""
    text = "\n".join(
        f"[{_toml(name)}]\ndigest = {_toml(token.digest)}\nuser = {_toml(token.user)}\n"
        f"project = {_toml(token.project)}\nroles = [{', '.join(map(_toml, token.roles))}]\n"
        for name, token in tokens.items()
    )
    content = text.encode()
    if _decode(file, content) != tokens:
        raise AssertionError(f"what would be written to {file} is not what is to be there")
    try:
        there = file.stat() if file.exists() else None
        if there is None:
            replace_file(file, content, _MODE)
        else:
            replace_file(file, content, there.st_mode & 0o777, (there.st_uid, there.st_gid))
    except OSError as error:
        raise OperatorError(f"tokens: {file} cannot be written: {error.strerror or error}") from error


def _toml(text: str) -> str:
    """Return a text as a TOML string. JSON's form is valid, except that it does not escape DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
