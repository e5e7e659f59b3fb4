"""The result of an action, and the view of the page after a word, with the event that records it."""

from typing import Literal

import msgspec

from roost.dashboard.actions.client import ConductorAnswer, UnknownOutcome
from roost.dashboard.actions.place import PlaceNow
from roost.dashboard.actions.word import WordVerb
from roost.state.api_database.event_types import CloudEvent
from roost.web.errors import Unavailable

Result = Literal["done", "refused", "unreached", "unknown"]
"""``unreached``: nothing was done. ``unknown``: it may have been done, or may be done later."""


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request to the conductor.

    ``says``: the sentence of the conductor, or why there is none. ``status``: of its answer, None without
    one. ``request_id``: of the request, which the log and the event name.
    """

    result: Result
    says: str | None = None
    status: int | None = None
    request_id: str | None = None

    @classmethod
    def of(cls, answer: ConductorAnswer) -> "ActionResult":
        """Return the result that an answer tells."""
        refusal = answer.refusal
        return cls(
            result="done" if refusal is None else "refused",
            says=refusal,
            status=answer.status,
            request_id=answer.request_id,
        )

    @classmethod
    def of_failure(cls, error: UnknownOutcome | Unavailable) -> "ActionResult":
        """Return the result that a failed request tells."""
        return cls(result="unknown" if isinstance(error, UnknownOutcome) else "unreached", says=f"{error}")

    @property
    def http_status(self) -> int:
        """The status of the page."""
        if self.result == "refused":
            return self.status or 500
        return {"done": 200, "unreached": 503, "unknown": 502}[self.result]


class WordOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The page after a word. ``place``: as it is now, None if it cannot be read. ``user``: the one who said
    it. ``event``: the record of it, None if it is not there."""

    verb: WordVerb
    result: ActionResult
    user: str
    at: float
    cell: str | None
    host: str | None
    node: str | None
    place: PlaceNow | None
    event: CloudEvent | None
