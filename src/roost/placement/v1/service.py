"""The state that all handlers of ``/v1`` share, and the OpenAPI document."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakSet

import msgspec

from roost.ledger import Ledger
from roost.placement.queries import QueryBudget
from roost.placement.v1.follower import ChangeFollower
from roost.placement.v1.past import Past
from roost.placement.wire.provider_texts import ProviderTexts
from roost.web.conventions import Conventions
from roost.web.openapi import Document, describe
from roost.web.operation import Operation
from roost.web.request import Request, Response


@dataclass
class V1Service:
    """The first argument of every handler.

    - ``queries`` computes queries, in turn with those of the Placement API.
    - ``placement_document``: returns the Placement API's OpenAPI document at a microversion.
    - ``operations``: the operations that the document of ``/v1`` describes.
    - ``streams``: the open event streams. ``polls``: the number of requests that wait for a commit.
    """

    ledger: Ledger
    past: Past
    follower: ChangeFollower
    queries: QueryBudget
    placement_document: Callable[[int], msgspec.Raw]
    operations: Sequence[Operation] = ()
    texts: ProviderTexts = field(default_factory=ProviderTexts)
    streams: WeakSet[AsyncIterator[object]] = field(default_factory=WeakSet)
    polls: int = 0

    @cached_property
    def document(self) -> msgspec.Raw:
        """The OpenAPI document as JSON."""
        return msgspec.Raw(msgspec.json.encode(document_of(self.operations)))


def document_of(operations: Sequence[Operation]) -> Document:
    """Return the OpenAPI document of operations under ``/v1``."""
    text = "Operations that the Placement API does not have."
    return describe(operations, Conventions(), title="Roost", text=text)


async def describe_api(service: V1Service, req: Request, resp: Response) -> msgspec.Raw:
    """This document."""
    return service.document
