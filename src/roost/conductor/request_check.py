"""The check of a request for instances before it is accepted, and the cleaning of its texts."""

import msgspec
import structlog

from roost.conductor.context import SchedulerLike
from roost.ledger import LedgerError
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.instance import BuildRequest
from roost.model.spec import RequestSpec, UnreadKey
from roost.model.text import clean_values
from roost.placement.errors import PlacementError
from roost.scheduler.errors import BadRequestSpec, SchedulerError, UnknownZone
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.aggregates.known import AggregateSource, KnownAggregates
from roost.storage import StorageError
from roost.web.errors import BadRequest

_log = structlog.get_logger()


class NeverServed(BadRequest):
    """A request that can never be served, or with a key that can only be a mistake. Nothing is accepted."""

    code = "conductor.never_served"


class RequestCheck:
    """Asks the scheduler whether requests can be served at all.

    ``aggregates``: the host aggregates of the API database; a scheduler learns of new ones a moment later.
    """

    def __init__(self, scheduler: SchedulerLike, aggregates: AggregateSource) -> None:
        self._scheduler = scheduler
        self._aggregates = KnownAggregates(aggregates)

    async def warnings(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """Return the keys of a request that have no effect.

        If the scheduler is away or cannot tell, the request is accepted; a refusal comes with the decision.

        Raises:
            NeverServed: the scheduler refuses the request whatever the hosts.
            StorageError: of the API database.
        """
        try:
            return await self._scheduler.check_request(spec)
        except UnknownZone as error:
            if await self._is_zone(spec.availability_zone):
                return ()
            raise NeverServed(str(error)) from error
        except BadRequestSpec as error:
            raise NeverServed(str(error)) from error
        except (SchedulerError, PlacementError, LedgerError, StorageError) as error:
            _log.warning("a request is accepted unchecked", error=one_line(error))
            return ()

    async def _is_zone(self, name: str | None) -> bool:
        await self._aggregates.refresh()
        return any(each.metadata.get(AVAILABILITY_ZONE) == name for each in self._aggregates.by_uuid.values())


def clean_request(request: BuildRequest) -> BuildRequest:
    """Return the request with all texts of its spec cleaned; the same object if they are clean, as mostly."""
    try:
        if b"\\u0000" not in msgspec.json.encode(request):
            return request
    except UnicodeEncodeError:
        pass
    return msgspec.convert(clean_values(msgspec.to_builtins(request)), BuildRequest)
