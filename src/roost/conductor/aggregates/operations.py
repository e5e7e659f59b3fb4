"""The operations of host aggregates, and their policy rules."""

from typing import Final

from roost.conductor.aggregates.handlers import (
    change_members,
    create_aggregate,
    delete_aggregate,
    list_aggregates,
    replace_aggregate,
    show_aggregate,
)
from roost.conductor.aggregates.types import (
    AggregatePage,
    AggregatesQuery,
    ChangedMembers,
    ReplacedAggregate,
    ShownAggregate,
    WantedAggregate,
)
from roost.web.errors import Conflict
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import Rule
from roost.web.query import Query

PATH: Final = "/v1/aggregates"
_ONE: Final = f"{PATH}/{{uuid}}"

AGGREGATE_RULES: Final = {
    f"conductor:aggregates:{verb}": "role:admin"
    for verb in ("create", "list", "show", "update", "members", "delete")
}
"""The policy rules as they are without a policy file: aggregates are for administrators, as in Nova."""


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:aggregates:{verb}")


AGGREGATE_OPERATIONS: Final = (
    Operation(
        "POST",
        PATH,
        _rule("create"),
        create_aggregate,
        body=WantedAggregate,
        takes=(),  # curl -d says that its data is a form
        answer=ShownAggregate,
        status=201,
        raises=(Conflict,),
        creates=Creation(),
    ),
    Operation(
        "GET", PATH, _rule("list"), list_aggregates, query=Query(AggregatesQuery), answer=AggregatePage
    ),
    Operation("GET", _ONE, _rule("show"), show_aggregate, answer=ShownAggregate),
    Operation(
        "PUT",
        _ONE,
        _rule("update"),
        replace_aggregate,
        body=ReplacedAggregate,
        takes=(),
        answer=ShownAggregate,
        raises=(Conflict,),
    ),
    Operation(
        "POST",
        f"{_ONE}/members",
        _rule("members"),
        change_members,
        body=ChangedMembers,
        takes=(),
        answer=ShownAggregate,
        raises=(Conflict,),
    ),
    Operation(
        "DELETE",
        _ONE,
        _rule("delete"),
        delete_aggregate,
        status=204,
        provides=(),
        raises=(Conflict,),
    ),
)
