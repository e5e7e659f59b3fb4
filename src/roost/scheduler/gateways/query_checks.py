"""Checks the queries of a request before the decision."""

from collections.abc import Sequence

from roost.fleet import Fleet
from roost.model.request import CandidateQuery
from roost.placement.errors import BadRequest
from roost.placement.known_names import check_query
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.selection.claim_result import one_line


def check_queries(fleet: Fleet, queries: Sequence[CandidateQuery]) -> None:
    """Check that placement knows the classes and traits of at least one of the queries.

    A query for huge pages of a size that no host has finds nothing, but another size may be served.

    Raises:
        BadRequestSpec: each query names a class or trait that does not exist.
    """
    errors = []
    for query in queries:
        try:
            check_query(fleet, query)
        except BadRequest as error:
            errors.append(error)
    if len(errors) == len(queries):
        raise BadRequestSpec(f"placement cannot serve the request: {one_line(errors[0])}") from errors[0]
