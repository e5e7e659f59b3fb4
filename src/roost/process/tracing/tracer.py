"""The interface of tracers, and the types of their arguments."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

Kind = Literal["internal", "server", "client"]
Attribute = str | int | float | bool
Here = Any
"""The place of a span in its trace, for `shared_span`. None while tracing is off."""


class Tracer(Protocol):
    """Records spans while tracing is on. Its methods are documented at the functions of the same names."""

    def span(
        self, name: str, kind: Kind, parent: Mapping[str, str] | None, attributes: Mapping[str, Attribute]
    ) -> AbstractContextManager[None]: ...

    def shared_span(self, name: str, places: Sequence[Here]) -> AbstractContextManager[None]: ...

    def here(self) -> Here: ...

    def headers(self) -> dict[str, str]: ...

    def note(self, rename: str | None, attributes: Mapping[str, Attribute]) -> None: ...

    def fail(self) -> None: ...

    def stop(self) -> None: ...
