"""The keyboard of a terminal, key by key: its mode, the decoding of keys, and all else that wakes the reader.

The terminal is in cbreak mode meanwhile: keys come at once and are not echoed, and Ctrl-C is still a signal.
The mode that it had before is restored at the end, whether that is an error, Ctrl-C, SIGTERM or SIGHUP, and
while the program is stopped (Ctrl-Z).
"""

import os
import select
import signal
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

RESIZED: Final = "resized"
"""The event of a screen with a new size."""

STOPPED: Final = "stopped"
"""The event of Ctrl-Z: the program should leave the screen, and call `Keyboard.stop`."""

ENDED: Final = "ended"
"""The event of a terminal that nobody types at any more: it was closed."""

_ESCAPE_SECONDS: Final = 0.05
"""Seconds after which an ESC byte without more is the key Escape, and not the begin of another key."""

_NAMES: Final = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[7~": "home",
    b"\x1b[8~": "end",
    b"\x1b[Z": "back tab",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\x1bOH": "home",
    b"\x1bOF": "end",
    b"\t": "tab",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
}
_LONGEST: Final = 16
"""Bytes of a key at most. More bytes after an ESC are no key, and are left out."""


class KeyDecoder:
    """Makes keys of bytes: the names of special keys, and other characters as they are."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def waits(self) -> bool:
        """Return whether the bytes so far may be the begin of a key."""
        return bool(self._rest)

    def feed(self, more: bytes) -> Iterator[str]:
        """Yield the keys that are complete. The bytes of an unknown special key are left out."""
        data = self._rest + more
        self._rest = b""
        while data:
            length = _length(data)
            if length is None:
                self._rest = data
                return
            key, data = data[:length], data[length:]
            if key in _NAMES:
                yield _NAMES[key]
            elif (text := key.decode(errors="ignore")).isprintable():
                yield from text

    def flush(self) -> Iterator[str]:
        """Yield the key of the bytes so far: Escape, if nothing follows an ESC."""
        rest, self._rest = self._rest, b""
        if rest == b"\x1b":
            yield "escape"


def _length(data: bytes) -> int | None:
    """Return the number of bytes of the first key; None if more are to come."""
    if data[0] != 0x1B:
        wanted = 1 if data[0] < 0xC0 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
        return wanted if len(data) >= wanted else None
    if len(data) == 1:
        return None
    if data[1] == ord("O"):
        return 3 if len(data) >= 3 else None
    if data[1] != ord("["):
        return 1 if data[1] == 0x1B else 2
    for place, byte in enumerate(data[2:_LONGEST], 3):
        if 0x40 <= byte <= 0x7E:
            return place
    return len(data) if len(data) >= _LONGEST else None


class Keyboard:
    """The keys that are typed at a terminal. ``fd``: its file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._decoder = KeyDecoder()
        self._events: list[str] = []
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        self._before = termios.tcgetattr(fd)

    def wake(self) -> None:
        """End a `wait` of the main thread; any thread may call it."""
        with suppress(BlockingIOError, OSError):
            os.write(self._wake, b"!")

    @contextmanager
    def typing(self) -> Iterator[None]:
        """Read keys one by one until the end of the context, then restore the terminal and the signals."""
        handlers: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {
            signal.SIGWINCH: lambda *_: self._note(RESIZED),
            signal.SIGTSTP: lambda *_: self._note(STOPPED),
            signal.SIGTERM: _end,
            signal.SIGHUP: _end,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            tty.setcbreak(self._fd)
            yield
        finally:
            self._restore()
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._wake)
            os.close(self._woken)

    def stop(self) -> None:
        """Stop the process, as Ctrl-Z does, with the terminal as it was; returns when it continues."""
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        tty.setcbreak(self._fd)

    def wait(self, seconds: float) -> list[str]:
        """Return keys and events as soon as there are any, none after ``seconds``; `wake` ends it too."""
        if self._decoder.waits:
            seconds = min(seconds, _ESCAPE_SECONDS)
        ready, _, _ = select.select([self._fd, self._woken], [], [], max(seconds, 0))
        if self._woken in ready:
            with suppress(BlockingIOError):
                os.read(self._woken, 4096)
        events, self._events = self._events, []
        if self._fd in ready:
            typed = self._read()
            return [*events, *(self._decoder.feed(typed) if typed else (ENDED,))]
        return [*events, *self._decoder.flush()] if not ready else events

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, 1024)
        except OSError:  # EIO: the terminal was closed
            return b""

    def _note(self, event: str) -> None:
        self._events.append(event)
        self.wake()

    def _restore(self) -> None:
        with suppress(termios.error):  # it was closed
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
