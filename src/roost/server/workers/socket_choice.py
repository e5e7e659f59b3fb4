"""The choice among the listening sockets of one port, as a filter program in the kernel.

Without a program the kernel chooses a socket by a hash of the addresses, even one whose worker is gone. With
the program, each new connection goes to one of the given sockets at random. Source: SO_ATTACH_REUSEPORT_CBPF
in socket(7).
"""

import ctypes
import socket
import struct
from collections.abc import Sequence
from typing import Final

_ATTACH: Final = 51  # SO_ATTACH_REUSEPORT_CBPF
_DETACH: Final = 68  # SO_DETACH_REUSEPORT_BPF
_LOAD_ABSOLUTE_WORD: Final = 0x20
_MODULO: Final = 0x94
_JUMP_IF_EQUAL: Final = 0x15
_RETURN: Final = 0x06
_RANDOM: Final = 0xFFFFF000 + 56  # SKF_AD_OFF + SKF_AD_RANDOM


def attach(member: socket.socket, indices: Sequence[int]) -> None:
    """Direct new connections to the sockets of a port with these indices, in the order in which they listen.

    ``member``: any socket of the port. Raises `OSError` if the kernel refuses it.
    """
    program = [(_LOAD_ABSOLUTE_WORD, 0, 0, _RANDOM), (_MODULO, 0, 0, len(indices))]
    for number, index in enumerate(indices[:-1]):
        program += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, index)]
    program.append((_RETURN, 0, 0, indices[-1]))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    member.setsockopt(socket.SOL_SOCKET, _ATTACH, struct.pack("HP", len(program), ctypes.addressof(code)))


def detach(member: socket.socket) -> None:
    """Let the kernel choose among all sockets of a port again. Raises `OSError` if it refuses."""
    member.setsockopt(socket.SOL_SOCKET, _DETACH, 0)
