"""A context of conductors and agents whose waits are yielded to a test, which sends the answers."""

from collections.abc import Generator, Mapping
from typing import Any


class Wait:
    """A call that a coroutine awaits: its dotted name and its arguments."""

    def __init__(self, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.name = name
        self.arguments = arguments
        self.named = named

    def __await__(self) -> Generator["Wait", Any, Any]:
        return (yield self)


class Stepped:
    """Makes of each call a `Wait`, of each attribute one of its kind."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, name: str) -> "Stepped":
        return Stepped(f"{self._name}.{name}".lstrip("."))

    def __call__(self, *arguments: Any, **named: Any) -> Wait:
        return Wait(self._name, arguments, named)


class SteppedContext(Stepped):
    """Has clocks that a test sets by ``now``, notes what is logged and recorded, and starts nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.logged: list[str] = []
        self.woken: list[str] = []
        self.drawn = 0
        self.started: list[str] = []

    def monotonic(self) -> float:
        return self.now

    def clock(self) -> float:
        return self.now

    def draw(self) -> str:
        self.drawn += 1
        return f"nonce-{self.drawn}"

    def wake(self, topic: str) -> None:
        self.woken.append(topic)

    def listen(self, topic: str, *, from_now: bool = False) -> Stepped:
        return Stepped()

    def start(self, name: str, routine: Any, requests: object = None) -> None:
        self.started.append(name)
        routine.close()

    def log(self, event: str, *details: object) -> None:
        self.logged.append(event)

    def record(self, runs: object, attempts: object) -> None:
        """Forget it."""
