"""Query strings that contain a query for allocation candidates, with further parameters of an operation."""

import re
from typing import Annotated, Any

import falcon.asgi
import msgspec
from msgspec import Meta

from roost.model.request import SPLITTABLE, CandidateQuery, RequestGroup
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


class _Beyond(msgspec.Struct, forbid_unknown_fields=True):
    """The parameters of queries that Placement does not have."""

    can_split: Annotated[
        str | None,
        Meta(
            description="Resource classes of the unsuffixed group, out of "
            f"{', '.join(SPLITTABLE)}, that several providers of one tree may give together where no single "
            "one can."
        ),
    ] = None
    isolated: Annotated[
        str | None, Meta(description="Suffixes of groups of which no two may share a provider.")
    ] = None


_BEYOND = Query(_Beyond)


class CandidateQueryParameters(msgspec.Struct, frozen=True):
    """A query for candidates, and the operation's own parameters as their struct."""

    query: CandidateQuery
    own: Any


class CandidateQueryReader:
    """Reads the query string of an operation on a query for candidates.

    It has the parameters of Placement's ``GET /allocation_candidates``, those of queries that Placement does
    not have, and as further parameters the fields of the struct ``own``.
    """

    def __init__(self, own: type[msgspec.Struct]) -> None:
        self._own = Query(own)

    def read(self, req: falcon.asgi.Request) -> CandidateQueryParameters:
        """Read the parameters of a request. Raises `BadRequest`."""
        found = read_parameters(req)
        for name, values in found.items():
            if len(values) > 1 and not _MAY_BE_REPEATED.fullmatch(name):
                raise DuplicateKey(f"Query parameter '{name}' may be specified only once.")
        own = {name: found.pop(name) for name in self._own.names & found.keys()}
        return CandidateQueryParameters(query_of(found), self._own.convert(own))

    def describe(self) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them."""
        theirs = candidate_parameters(LATEST)
        theirs = [each for each in theirs if each["name"] not in self._own.names]
        return [*theirs, *_BEYOND.describe(), *self._own.describe()]


def query_of(found: Parameters) -> CandidateQuery:
    """Convert parameters to a query. Raises `BadRequest`."""
    beyond: _Beyond = _BEYOND.convert({name: found.pop(name) for name in _BEYOND.names & found.keys()})
    check_parameters(found, _CANDIDATES, LATEST)
    query = parse_candidate_request(found, LATEST).query
    for name, amount in query.resources.items():
        if amount > MAX_INT:
            raise BadRequest(f"Nobody can have {amount} of {name}: amounts are at most {MAX_INT}.")
    query = msgspec.structs.replace(
        query, can_split=tuple(_names(beyond.can_split)), isolated=frozenset(_names(beyond.isolated))
    )
    _check_beyond(query)
    return canonical(query)


def _names(text: str | None) -> list[str]:
    return [] if text is None else sorted({name.strip() for name in text.split(",")})


def _check_beyond(query: CandidateQuery) -> None:
    """Raise `BadRequest` for groups and classes that cannot be split or isolated."""
    unsuffixed = next((group for group in query.groups if not group.granular), RequestGroup())
    for name in query.can_split:
        if name not in SPLITTABLE:
            raise BadRequest(f"can_split: {name!r} is none of {', '.join(SPLITTABLE)}.")
        if name not in unsuffixed.resources:
            raise BadRequest(f"can_split: the unsuffixed group requests no {name}.")
        if name not in query.split:
            raise BadRequest(f"can_split: {name} cannot be split: a group with a suffix requests it, too.")
    suffixes = {group.suffix for group in query.groups if group.granular}
    if unknown := sorted(query.isolated - suffixes):
        raise BadRequest(f"isolated: {unknown[0]!r} is the suffix of no request group.")


def canonical(query: CandidateQuery) -> CandidateQuery:
    """Return the query with sorted groups and terms: equal queries give candidates in the same order."""
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
