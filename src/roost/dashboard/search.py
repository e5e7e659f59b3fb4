"""The search of the navigation: it leads to the page of what is named, or to the list that has it."""

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roost.dashboard import addresses
from roost.dashboard.service import SESSION_RULE, DashboardService
from roost.records import Search, SearchableRecords
from roost.web.operation import Operation
from roost.web.policy import Rule
from roost.web.query import Query
from roost.web.request import Request, Response
from roost.web.validation_messages import UUID

_REQUEST: Final = re.compile(r"req-[0-9A-Za-z-]{1,64}")


class SearchQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of the search: a name, a uuid, or the id of a request."""

    search: Annotated[str, Meta(max_length=200)] = ""


async def search(service: DashboardService, req: Request, resp: Response) -> None:
    """Lead to the page of a host, an instance or a decision, else to the list of hosts or instances."""
    query: SearchQuery = req.query
    resp.status = 303
    resp.set_header("location", await _found(service, req, query.search.strip()))


async def _found(service: DashboardService, req: Request, text: str) -> str:
    operator = service.is_operator(req.identity)
    if not text:
        return addresses.HOSTS if operator else addresses.INSTANCES
    if _REQUEST.fullmatch(text):
        return addresses.with_query(addresses.DECISIONS, request_id=text)
    if re.fullmatch(UUID, text):
        if operator and service.table.index_of_node(text.lower()) is not None:
            return addresses.host(text.lower())
        # The pages themselves decide whether the viewer may see them.
        return await _of_uuid(service, text.lower())
    if operator:
        index = service.table.index(text)
        if index is not None:
            return addresses.host(service.table.nodes[index])
        return addresses.with_query(addresses.HOSTS, search=text)
    return addresses.with_query(addresses.INSTANCES, search=text)


async def _of_uuid(service: DashboardService, uuid: str) -> str:
    backend = service.records.backend
    if isinstance(backend, SearchableRecords) and await backend.find(Search(run=uuid), 1):
        return addresses.decision(uuid)
    return addresses.instance(uuid)


SEARCH_OPERATIONS: Final = (
    Operation("GET", addresses.SEARCH, Rule(SESSION_RULE), search, query=Query(SearchQuery), provides=()),
)
