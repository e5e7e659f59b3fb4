"""The query strings of ``/v1``: which parameters there are, each once, and from text to values."""

import re

import msgspec

from roost.model.request import CandidateQuery
from roost.model.vocabulary import MAX_INT
from roost.placement.errors import BadRequest, DuplicateKey
from roost.placement.http.candidate_query import parse_candidate_request
from roost.placement.http.microversions import LATEST
from roost.placement.http.query import Parameters, check_parameters, read_parameters
from roost.placement.http.request import Request
from roost.placement.v1.operations import OPERATIONS, Number, Operation

_CANDIDATES = "/allocation_candidates"
_NUMBER = re.compile(r"[0-9]{1,19}")
_MAY_BE_REPEATED = re.compile(r"(required|member_of)[a-zA-Z0-9_-]*|same_subtree")


class Asked(msgspec.Struct, frozen=True):
    """A query string: ``query`` has no groups where the operation takes none; ``numbers`` are all there."""

    query: CandidateQuery
    numbers: dict[str, int]
    texts: dict[str, str]


def parse(req: Request) -> Asked:
    """The parameters of a request, checked against its operation. Raises `BadRequest`."""
    operation = OPERATIONS[req.uri_template or ""][req.method]
    found = read_parameters(req)
    for name, values in found.items():
        if len(values) > 1 and not _MAY_BE_REPEATED.fullmatch(name):
            raise DuplicateKey(f"Query parameter '{name}' may be specified only once.")
    numbers = {
        name: _number(name, found.pop(name, None), number) for name, number in operation.numbers.items()
    }
    texts = {name: found.pop(name)[0] for name in operation.texts if name in found}
    return Asked(_query(found, operation), numbers, texts)


def _query(found: Parameters, operation: Operation) -> CandidateQuery:
    if operation.of_candidates:
        # The page's own limit is not Placement's, which may be any number.
        check_parameters(found, _CANDIDATES, LATEST)
        query = parse_candidate_request(found, LATEST).query
        for name, amount in query.resources.items():
            if amount > MAX_INT:
                raise BadRequest(f"Nobody can have {amount} of {name}: amounts are at most {MAX_INT}.")
        return canonical(query)
    if found:
        raise BadRequest(f"Invalid query string parameters: unknown: {', '.join(sorted(found))[:200]}")
    return CandidateQuery(())


def canonical(query: CandidateQuery) -> CandidateQuery:
    """The same query whatever the order in which it was written: equal ones find in the same order."""
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


def _number(name: str, values: list[str] | None, number: Number) -> int:
    if values is None:
        return number.usual
    text = values[0]
    if not _NUMBER.fullmatch(text) or not number.least <= int(text) <= number.most:
        raise BadRequest(
            f"Invalid query string parameters: '{name}' must be a whole number from {number.least} to "
            f"{number.most}. Got: {text[:40]}"
        )
    return int(text)
