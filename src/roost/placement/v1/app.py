"""``/v1`` as an ASGI application."""

from collections.abc import Callable, Sequence

import msgspec

from roost.ledger import Ledger, LedgerBusy
from roost.placement.access import open_authenticator, open_policy
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.v1.follower import ChangeFollower
from roost.placement.v1.operations import OPERATIONS
from roost.placement.v1.past import Past
from roost.placement.v1.service import V1Service
from roost.storage import StorageError
from roost.web.app import Kernel, create_app
from roost.web.cors import Cors
from roost.web.dispatch import Message, Receive, Send
from roost.web.operation import Operation


class V1:
    """The application.

    ``queries``: the budget of the Placement API beside it, so that they share one. ``placement_document``
    returns the Placement API's OpenAPI document at a microversion. ``more``: operations of other applications
    that the document of ``/v1`` describes too.
    """

    def __init__(
        self,
        ledger: Ledger,
        options: PlacementOptions,
        queries: QueryBudget,
        placement_document: Callable[[int], msgspec.Raw],
        more: Sequence[Operation] = (),
    ) -> None:
        self.service = V1Service(
            ledger,
            Past(ledger),
            ChangeFollower(ledger),
            queries,
            placement_document,
            (*OPERATIONS, *more),
        )
        kernel = Kernel(
            self.service,
            open_authenticator(options),
            open_policy(options),
            unavailable=(LedgerBusy, StorageError),
            middleware=(Cors(options.cors),) if options.cors.allowed_origin else (),
            body_seconds=options.limits.body_seconds,
        )
        self.falcon = create_app(OPERATIONS, kernel)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        await self.falcon(scope, receive, send)

    def close(self) -> None:
        """End all streams and waits, and release past versions. The ledger stays open.

        A server that stops waits for open streams, so it calls this first.
        """
        self.service.follower.close()
        self.service.past.close()
