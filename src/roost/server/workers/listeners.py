"""Listening sockets, which the parent process makes and every worker inherits.

On a port, each worker slot has a socket of its own (SO_REUSEPORT), among which the kernel distributes
connections; workers that shared one socket would get very unequal numbers of connections. The parent keeps
the sockets open: when a worker is killed, its successor serves the connections that wait. Meanwhile `steer`
keeps new connections away from the empty slot. A UNIX socket is shared by all slots, because the kernel
cannot distribute its connections.

The kernel chooses a socket of a port by a hash of the addresses, even one whose worker is gone. With a filter
program, each new connection goes to one of the given sockets at random. Source: SO_ATTACH_REUSEPORT_CBPF in
socket(7).
"""

import ctypes
import os
import socket
import stat
import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from roost.model.errors import OperatorError

_LOG = structlog.get_logger()

BACKLOG: Final = 1024
"""Connections that may wait for a worker. The kernel drops further ones, and their clients retry."""

_ATTACH: Final = 51  # SO_ATTACH_REUSEPORT_CBPF
_DETACH: Final = 68  # SO_DETACH_REUSEPORT_BPF
_LOAD_ABSOLUTE_WORD: Final = 0x20
_MODULO: Final = 0x94
_JUMP_IF_EQUAL: Final = 0x15
_RETURN: Final = 0x06
_RANDOM: Final = 0xFFFFF000 + 56  # SKF_AD_OFF + SKF_AD_RANDOM


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class UnixAddress:
    """The path of a UNIX socket. ``mode``: the permissions of the file, which decide who may connect."""

    path: Path
    mode: int

    def __str__(self) -> str:
        return str(self.path)


class Listeners(ABC):
    """The listening sockets of a service. ``sockets``: one for each slot."""

    sockets: Sequence[socket.socket]

    @abstractmethod
    def steer(self, slots: Collection[int]) -> None:
        """Direct new connections to these slots, at least one, if the kernel can do so."""

    def close(self) -> None:
        """Stop listening in this process."""
        for each in self.sockets:
            each.close()


class PortListeners(Listeners):
    """Sockets on one port. Raises `OperatorError` if the address is in use or not on this machine."""

    def __init__(self, address: Address, slots: int) -> None:
        self.sockets = found = []
        self._steered = False
        try:
            family, kind, protocol, _, resolved = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
            with closing(socket.socket(family, kind, protocol)) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                # With SO_REUSEPORT the service would share the port with another one of the same user.
                trial.bind(resolved)
            for _ in range(slots):
                each = socket.socket(family, kind, protocol)
                found.append(each)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                each.setblocking(False)
                each.bind(resolved)
                # The order of these calls is the order by which `steer` names the sockets.
                each.listen(BACKLOG)
        except OSError as error:
            self.close()
            raise OperatorError(
                f"cannot listen on {address.host} port {address.port}: {error.strerror}"
            ) from error

    def steer(self, slots: Collection[int]) -> None:
        try:
            if len(slots) == len(self.sockets):
                if self._steered:
                    _detach(self.sockets[0])
                self._steered = False
            else:
                _attach(self.sockets[0], sorted(slots))
                self._steered = True
        except OSError as error:
            # Connections of the empty slots wait for the next workers.
            _LOG.debug("the kernel does not steer connections", error=str(error))


class UnixListeners(Listeners):
    """A UNIX socket that all slots share.

    A file on which no process listens any more is removed. Raises `OperatorError` if the path is in use or
    the socket cannot be made.
    """

    def __init__(self, address: UnixAddress, slots: int) -> None:
        self._path = address.path
        _remove_stale(address.path)
        first = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            before = os.umask(0o777 & ~address.mode)
            try:
                first.bind(str(address.path))
            finally:
                os.umask(before)
            self._inode = address.path.stat().st_ino
            first.listen(BACKLOG)
            first.setblocking(False)
        except OSError as error:
            first.close()
            raise OperatorError(f"cannot listen on {address}: {error.strerror or error}") from error
        self.sockets = [first, *(first.dup() for _ in range(slots - 1))]

    def steer(self, slots: Collection[int]) -> None:
        """Do nothing: all workers accept connections of the one socket."""

    def close(self) -> None:
        super().close()
        try:
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        except FileNotFoundError:
            return


def listen(address: Address | UnixAddress, slots: int) -> Listeners:
    """Return the listening sockets of a service. Raises `OperatorError` if it cannot listen there."""
    if isinstance(address, UnixAddress):
        return UnixListeners(address, slots)
    return PortListeners(address, slots)


def check_address(host: str, port: int) -> None:
    """Check that a port is free and its host an address of this machine. Raises `OperatorError`."""
    PortListeners(Address(host, port), 1).close()


def _remove_stale(path: Path) -> None:
    """Remove a UNIX socket on which no process listens. Raises `OperatorError` for any other file."""
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise OperatorError(f"cannot listen on {path}: it is a file and not a socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OperatorError(f"cannot listen on {path}: another process does")


def _attach(member: socket.socket, indices: Sequence[int]) -> None:
    """Direct new connections to the sockets of a port with these indices, in the order in which they listen.

    ``member``: any socket of the port. Raises `OSError` if the kernel refuses it.
    """
    program = [(_LOAD_ABSOLUTE_WORD, 0, 0, _RANDOM), (_MODULO, 0, 0, len(indices))]
    for number, index in enumerate(indices[:-1]):
        program += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, index)]
    program.append((_RETURN, 0, 0, indices[-1]))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    member.setsockopt(socket.SOL_SOCKET, _ATTACH, struct.pack("HP", len(program), ctypes.addressof(code)))


def _detach(member: socket.socket) -> None:
    """Let the kernel choose among all sockets of a port again. Raises `OSError` if it refuses."""
    member.setsockopt(socket.SOL_SOCKET, _DETACH, 0)
