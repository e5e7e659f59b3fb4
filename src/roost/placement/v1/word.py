"""``PUT /v1/word``: conductors announce that an operator has changed something that decisions depend on."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.placement.commands.word import AnnounceWord
from roost.placement.v1.service import V1Service
from roost.web.request import Request, Response

LARGEST_MARK = 2**53 - 1
"""The largest mark: each integer up to it is exact in every client. Larger ones are refused."""


class Announcement(msgspec.Struct, forbid_unknown_fields=True):
    """The announcement of an operator's word. `mark`: a number that its sender has drawn at random."""

    mark: Annotated[int, Meta(ge=1, le=LARGEST_MARK)]


async def announce_word(service: V1Service, req: Request, resp: Response) -> None:
    """Announce that an operator has enabled or disabled something, or changed a host aggregate.

    The change is in the API database already. From the response on, no scheduler on this ledger commits a
    claim that it decided without it. The same announcement may be repeated.
    """
    body: Announcement = req.body
    await service.ledger.execute(AnnounceWord(body.mark))
