"""Logs a lasting fault of a host twice only: once when it begins, and once when it is over.

An agent polls for ever, and a disk that is full or a driver that cannot tell its metrics fails each poll.
"""

from typing import Literal

from roost.model.text import error_text
from roost.process.context import Context


class Troubles:
    """The present faults of a host, by the event that the log has of them."""

    def __init__(self, context: Context, host: str) -> None:
        self._context = context
        self._host = host
        self._present: dict[str, str] = {}

    def tell(
        self, trouble: str, error: Exception | str, level: Literal["warning", "error"] = "warning"
    ) -> None:
        """Log a fault, unless the same error was logged and is not over."""
        text = error if isinstance(error, str) else error_text(error)
        if self._present.get(trouble) != text:
            self._present[trouble] = text
            self._context.log(trouble, {"host": self._host, "error": text}, level)

    def over(self, trouble: str) -> None:
        """Log the end of a fault, if there was one."""
        if self._present.pop(trouble, None) is not None:
            # At the level of its beginning, so that an operator who saw that sees this.
            values = {"host": self._host, "trouble": trouble}
            self._context.log("a trouble of a host is over", values, "warning")
