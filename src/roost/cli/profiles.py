"""Profiles: named clouds in ``config.toml``, and the one that ``roost up`` writes beside its data.

A file of profiles has tables ``[profiles.NAME]`` and may name one of them as ``default``. The user's own is
``roost/config.toml`` below ``XDG_CONFIG_HOME``, which is ``~/.config`` by default. The profile of a running
``roost up`` lies in its data directory. A link below ``XDG_STATE_HOME``, which is ``~/.local/state`` by
default, leads to it.
"""

import contextlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import click
import msgspec

from roost.model.errors import OperatorError
from roost.model.wrong_value import field_names, wrong_value

Service = Literal["conductor", "scheduler", "placement"]

RUNNING = "up"
"""The name of the profile that a running `roost up` writes."""

PROFILE = "profile.toml"
"""The file of this profile in the data directory."""

_HEAD = "# Written by roost up when it starts, removed when it ends. Commands without another address ask it."


class ClientProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The addresses of a cloud's services, and the credentials of commands.

    ``url``: the address of services without an address of their own; ``socket``: the UNIX socket at which
    these listen. ``certificate``: a file with the one trusted certificate, whose names are not checked.
    ``token_file``, ``ca_file``, ``socket`` and ``certificate`` are relative to the file of the profile.
    ``keystone``: options of keystoneauth1, as ``auth_url`` and ``password``, for clouds with Keystone.
    ``pid``: the process of `roost up`; its profile is used while the process lives.
    """

    url: str | None = None
    conductor: str | None = None
    scheduler: str | None = None
    placement: str | None = None
    token: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    socket: str | None = None
    certificate: str | None = None
    keystone: dict[str, str] = {}
    pid: int | None = None

    def address(self, service: Service) -> str | None:
        """Return the URL of a service; None if the profile has none."""
        own: str | None = getattr(self, service)
        return own or self.url or (None if self.socket is None else "http://localhost")

    def socket_of(self, service: Service) -> str | None:
        """Return the UNIX socket of a service; None if it has its own address or no socket."""
        return None if getattr(self, service) else self.socket

    @property
    def holds_secrets(self) -> bool:
        """Return whether the profile has secrets, so that only the owner of the file may read it."""
        return self.token is not None or bool(self.keystone)


class _Profiles(msgspec.Struct, frozen=True):
    default: str | None = None
    profiles: dict[str, ClientProfile] = {}


class FoundProfile(msgspec.Struct, frozen=True):
    """A profile with its name and the file that has it."""

    name: str
    file: Path
    profile: ClientProfile

    def __str__(self) -> str:
        return f"profile {self.name} in {self.file}"

    def path(self, name: str) -> Path:
        """Return a path that the profile names, relative to its file."""
        return self.file.parent / Path(name).expanduser()

    def token(self) -> str | None:
        """Return the token of the profile; None if it has none.

        Raises `OperatorError` for an unreadable file.
        """
        if self.profile.token_file is None:
            return self.profile.token
        file = self.path(self.profile.token_file)
        try:
            return file.read_text().strip()
        except (OSError, UnicodeError) as error:
            raise OperatorError(f"token_file of {self}: {file} cannot be read: {_why(error)}") from error


def chosen_profile(name: str | None, environment: Mapping[str, str]) -> FoundProfile | None:
    """Return the profile with a name; without a name the default, or that of a running `roost up`.

    Raises:
        OperatorError: a file cannot be read, or there is no such profile.
    """
    file = _below(environment, "XDG_CONFIG_HOME", ".config", "config.toml")
    known = _Profiles() if file is None else _read(file)
    wanted = name or known.default
    if file is not None and wanted in known.profiles:
        assert wanted is not None
        found = FoundProfile(wanted, file, known.profiles[wanted])
        _warn_of_readers(found)
        return found
    if wanted in (None, RUNNING):
        running = _running(environment)
        if running is not None or wanted is None:
            return running
        raise OperatorError("there is no profile up: no roost up runs, and config.toml has none of this name")
    names = ", ".join(sorted(known.profiles)) or "none"
    raise OperatorError(f"there is no profile {wanted} in {file}: it has {names}")


@contextlib.contextmanager
def announced(data_dir: Path, profile: ClientProfile, environment: Mapping[str, str]) -> Iterator[None]:
    """Write the profile of a `roost up` into its data directory, and link it for commands until it ends.

    A home directory that is missing or read-only is no error: commands then need ``--url``.
    """
    file = data_dir.absolute() / PROFILE
    link = _link(environment)
    try:
        _write(file, _toml(msgspec.structs.replace(profile, pid=os.getpid())))
        if link is not None:
            link.parent.mkdir(parents=True, exist_ok=True)
            made = link.with_name(f"{link.name}.{os.getpid()}")
            made.unlink(missing_ok=True)
            made.symlink_to(file)
            made.replace(link)
    except OSError as error:
        click.echo(
            f"roost: no profile of this system can be written, so that commands need "
            f"{'a profile that names its socket' if profile.socket else f'--url {profile.url}'}: {error}",
            err=True,
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            # Another `roost up`, which began later, has a link of its own.
            if link is not None and link.readlink() == file:
                link.unlink()
        with contextlib.suppress(OSError):
            file.unlink()


def _running(environment: Mapping[str, str]) -> FoundProfile | None:
    """Return the profile of the `roost up` that was started last; None if it has ended."""
    link = _link(environment)
    if link is None or not link.exists():
        return None
    file = link.resolve()
    profile = _read(file).profiles.get(RUNNING)
    return None if profile is None or not _lives(profile.pid) else FoundProfile(RUNNING, file, profile)


def _lives(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _link(environment: Mapping[str, str]) -> Path | None:
    return _below(environment, "XDG_STATE_HOME", ".local/state", "up.toml")


def _below(environment: Mapping[str, str], variable: str, default: str, name: str) -> Path | None:
    """Return a file of Roost in a folder of the XDG Base Directory Specification; None without a home."""
    if base := environment.get(variable):
        return Path(base) / "roost" / name
    home = environment.get("HOME")
    return Path(home) / default / "roost" / name if home else None


def _read(file: Path) -> _Profiles:
    """Read the profiles of a file; none if it is missing. Raises `OperatorError` with file and key."""
    try:
        document = tomllib.loads(file.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return _Profiles()
    except (OSError, ValueError) as error:
        raise OperatorError(f"profiles in {file} cannot be read: {_why(error)}") from error
    default, profiles = document.pop("default", None), document.pop("profiles", {})
    if document:
        raise OperatorError(f"profiles in {file}: {next(iter(document))}: unknown; known: default, profiles")
    if not isinstance(default, str | None):
        raise OperatorError(f"profiles in {file}: default: {default!r} is no name of a profile")
    if not isinstance(profiles, dict):
        raise OperatorError(f"profiles in {file}: profiles: write tables, as [profiles.NAME]")
    return _Profiles(default, {name: _profile(file, name, each) for name, each in profiles.items()})


def _profile(file: Path, name: str, document: object) -> ClientProfile:
    try:
        return msgspec.convert(document, ClientProfile)
    except msgspec.ValidationError as error:
        known = partial(field_names, ClientProfile)
        text = wrong_value(error, document, prefix=f"profiles.{name}", known=known)
        raise OperatorError(f"profiles in {file}: {text}") from error


def _warn_of_readers(found: FoundProfile) -> None:
    if found.profile.holds_secrets and found.file.stat().st_mode & 0o077:
        click.echo(
            f"roost: {found.file} holds secrets and others can use it: chmod 600 {found.file}", err=True
        )


def _toml(profile: ClientProfile) -> str:
    # A JSON string is also a TOML string.
    facts = [
        f"{name} = {msgspec.json.encode(value).decode()}"
        for name, value in msgspec.structs.asdict(profile).items()
        if value
    ]
    return "\n".join((_HEAD, f"[profiles.{RUNNING}]", *facts, ""))


def _write(file: Path, text: str) -> None:
    """Write a file atomically, readable by its owner only."""
    made = file.with_name(f".{file.name}.{os.getpid()}")
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)
    made.replace(file)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())
