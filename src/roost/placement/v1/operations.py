"""The operations under ``/v1``, and the types of their queries."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roost.placement.access import PREFIX
from roost.placement.v1.assignments import AssignmentsQuery, ShownAssignments, list_assignments
from roost.placement.v1.candidates import CandidatePage, list_candidates
from roost.placement.v1.capacity import CapacityQuery, ShownCapacity, show_capacity
from roost.placement.v1.changes import EVENTS, LARGEST_SEQ, ChangePage, list_changes
from roost.placement.v1.explain import ShownExplanation, explain
from roost.placement.v1.groups import SeveralAllocations, ShownMembers, show_members, write_allocations
from roost.placement.v1.parameters import CandidateQueryReader
from roost.placement.v1.service import V1Service, describe_api
from roost.placement.v1.word import Announcement, announce_word
from roost.placement.wire.microversions import parse_version
from roost.web.errors import BadRequest, Conflict, Gone, NotAcceptable, TooMany
from roost.web.openapi import OpenApi
from roost.web.operation import JSON, OPEN, Operation
from roost.web.policy import Rule
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Query
from roost.web.request import Request, Response


class VersionQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The microversion that a client asks for."""

    microversion: Annotated[str, Meta(description="Such as `1.39`, or `latest`.", max_length=20)] = "latest"


async def describe_placement_api(service: V1Service, req: Request, resp: Response) -> msgspec.Raw:
    """The document of the Placement API at a microversion."""
    return service.placement_document(parse_version(f"placement {req.query.microversion}"))


LONGEST_WAIT = 60
"""Seconds that a client may wait for a commit. A longer wait is refused."""

MOST_MISSES = 100
"""Near misses in an explanation at most. A request for more is refused."""


class CandidatesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The page of candidates that a client asks for."""

    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Candidates on a page.")] = DEFAULT_PAGE
    cursor: Annotated[
        str | None,
        Meta(description="`next` of the page before. The query must be the same, the limit need not be."),
    ] = None


class ChangesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The commits that a client asks for."""

    after: Annotated[
        int, Meta(ge=0, le=LARGEST_SEQ, description="The commits after this one; 0: from the first.")
    ] = 0
    limit: Annotated[
        int, Meta(ge=1, le=LARGEST_PAGE, description="Commits in a response. A stream has no limit.")
    ] = DEFAULT_PAGE
    wait: Annotated[
        int, Meta(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a commit if there is none.")
    ] = 0
    history: Annotated[
        str | None,
        Meta(
            description="`history` of the response with the commit `after`. If the database has another one "
            "now, the response is a 410."
        ),
    ] = None


class ExplainQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The extent of an explanation."""

    misses: Annotated[
        int, Meta(ge=0, le=MOST_MISSES, description="Near misses at most, the nearest first.")
    ] = 10


OPERATIONS: Final = (
    Operation(
        "GET",
        "/v1/allocation_candidates",
        Rule(f"{PREFIX}allocation_candidates:list"),
        list_candidates,
        query=CandidateQueryReader(CandidatesQuery),
        answer=CandidatePage,
        raises=(Gone,),
    ),
    Operation(
        "POST",
        "/v1/allocations",
        Rule(f"{PREFIX}allocations:manage"),
        write_allocations,
        body=SeveralAllocations,
        status=204,
        provides=(),
        raises=(Conflict,),
    ),
    Operation(
        "GET",
        "/v1/assignments",
        Rule(f"{PREFIX}allocations:list"),
        list_assignments,
        query=Query(AssignmentsQuery),
        answer=ShownAssignments,
    ),
    Operation(
        "GET",
        "/v1/capacity",
        Rule(f"{PREFIX}capacity:show"),
        show_capacity,
        query=Query(CapacityQuery),
        answer=ShownCapacity,
    ),
    Operation(
        "GET",
        "/v1/changes",
        Rule(f"{PREFIX}changes:list"),
        list_changes,
        query=Query(ChangesQuery),
        answer=ChangePage,
        provides=(JSON, EVENTS),
        raises=(BadRequest, Gone, TooMany),
    ),
    Operation(
        "GET",
        "/v1/explain",
        Rule(f"{PREFIX}allocation_candidates:explain"),
        explain,
        query=CandidateQueryReader(ExplainQuery),
        answer=ShownExplanation,
    ),
    Operation(
        "GET",
        "/v1/groups/{group}",
        Rule(f"{PREFIX}allocations:list"),
        show_members,
        answer=ShownMembers,
    ),
    Operation("GET", "/v1/openapi.json", OPEN, describe_api, answer=OpenApi),
    Operation(
        "GET",
        "/v1/placement/openapi.json",
        OPEN,
        describe_placement_api,
        query=Query(VersionQuery),
        answer=OpenApi,
        raises=(NotAcceptable,),
    ),
    Operation(
        "PUT",
        "/v1/word",
        Rule(f"{PREFIX}word:announce"),
        announce_word,
        body=Announcement,
        status=204,
        provides=(),
    ),
)
