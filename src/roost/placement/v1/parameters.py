"""Query strings that contain a query for allocation candidates, with further parameters of an operation."""

import re
from typing import Any

import falcon.asgi
import msgspec

from roost.model.request import CandidateQuery
from roost.model.vocabulary import MAX_INT
from roost.placement.errors import DuplicateKey
from roost.placement.wire.candidate_query import parse_candidate_request
from roost.placement.wire.microversions import LATEST
from roost.placement.wire.parameter_docs import candidate_parameters
from roost.placement.wire.query import check_parameters
from roost.web.errors import BadRequest
from roost.web.query import Parameters, Query, read_parameters

_CANDIDATES = "/allocation_candidates"
_MAY_BE_REPEATED = re.compile(r"(required|member_of)[a-zA-Z0-9_-]*|same_subtree")


class Asked(msgspec.Struct, frozen=True):
    """A query for candidates, and the operation's own parameters as their struct."""

    query: CandidateQuery
    own: Any


class CandidateQueryReader:
    """Reads the parameters of Placement's ``GET /allocation_candidates``, and fields of a struct ``own``."""

    def __init__(self, own: type[msgspec.Struct]) -> None:
        self._own = Query(own)

    def read(self, req: falcon.asgi.Request) -> Asked:
        """The parameters of a request. Raises `BadRequest`."""
        found = read_parameters(req)
        for name, values in found.items():
            if len(values) > 1 and not _MAY_BE_REPEATED.fullmatch(name):
                raise DuplicateKey(f"Query parameter '{name}' may be specified only once.")
        own = {name: found.pop(name) for name in self._own.names & found.keys()}
        return Asked(_query(found), self._own.convert(own))

    def describe(self) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them."""
        theirs = candidate_parameters(LATEST)
        return [*(each for each in theirs if each["name"] not in self._own.names), *self._own.describe()]


def _query(found: Parameters) -> CandidateQuery:
    check_parameters(found, _CANDIDATES, LATEST)
    query = parse_candidate_request(found, LATEST).query
    for name, amount in query.resources.items():
        if amount > MAX_INT:
            raise BadRequest(f"Nobody can have {amount} of {name}: amounts are at most {MAX_INT}.")
    return canonical(query)


def canonical(query: CandidateQuery) -> CandidateQuery:
    """The query with sorted groups and terms, so that equal queries give candidates in the same order."""
    groups = [
        msgspec.structs.replace(
            group,
            resources=dict(sorted(group.resources.items())),
            required=tuple(sorted(group.required, key=sorted)),
            member_of=tuple(sorted(group.member_of, key=sorted)),
        )
        for group in query.groups
    ]
    return msgspec.structs.replace(
        query,
        groups=tuple(sorted(groups, key=lambda group: group.suffix)),
        same_subtree=tuple(sorted(query.same_subtree, key=sorted)),
    )
