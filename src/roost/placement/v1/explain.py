"""``/v1/explain``: the reasons why a query has few candidates, and its near misses."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.fleet import Fleet
from roost.fleet.constraint import RESOURCES, SPLIT_RESOURCES, Constraint, constraints_of
from roost.fleet.near_misses import Explanation, NearMiss, explain_fully
from roost.fleet.removals import Removal
from roost.placement.known_names import check_query
from roost.placement.v1.parameters import CandidateQueryParameters
from roost.placement.v1.service import V1Service
from roost.web.errors import BadRequest
from roost.web.request import Request, Response

MOST_CONSTRAINTS = 100
"""Constraints of a query at most; more are a 400, because each is evaluated on the whole fleet."""

_KINDS = [
    "resources", "split_resources", "any_provider", "required", "forbidden", "member_of",
    "forbidden_aggregates", "in_tree", "root_required", "root_forbidden", "same_subtree", "isolate",
    "isolated", "together",
]  # fmt: skip

_Kind = Annotated[str, Meta(extra_json_schema={"enum": _KINDS})]
_Unit = Annotated[str, Meta(extra_json_schema={"enum": ["min_unit", "max_unit", "step_size"]})]
_Count = Annotated[int, Meta(ge=0)]


class Range(msgspec.Struct, forbid_unknown_fields=True):
    """A number that is known between two bounds."""

    at_least: _Count
    at_most: _Count


class ProvidersRemoved(msgspec.Struct, forbid_unknown_fields=True):
    """Providers that do not meet a constraint.

    `alone` counts all of them, `in_order` only providers that meet all earlier constraints of the group.
    """

    alone: _Count
    in_order: _Count


class TreesRemoved(msgspec.Struct, forbid_unknown_fields=True):
    """Trees that a constraint removes.

    `alone`: as the only constraint. `in_order`: of the trees that the constraints before it have left.
    `sole`: trees that may have candidates without this constraint, and have none with it.
    """

    alone: _Count
    in_order: _Count
    sole: _Count


class ProviderName(msgspec.Struct, forbid_unknown_fields=True):
    """A provider."""

    uuid: str
    name: str


class ShownConstraint(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A constraint of the query. `group` is the suffix of its group, null for the whole query."""

    constraint: Annotated[str, Meta(description="In words.")]
    group: str | None
    kind: _Kind
    names: tuple[str, ...]
    amount: int | None


class ShownRemoval(ShownConstraint, forbid_unknown_fields=True, kw_only=True):
    """A constraint of the query, with what it removes."""

    providers_removed: ProvidersRemoved
    trees_removed: TreesRemoved


class ShownMiss(ShownConstraint, forbid_unknown_fields=True, kw_only=True):
    """A near miss: a tree that would have candidates if one constraint were relaxed.

    `provider` is the provider that violates the constraint. `free` is the amount that one more allocation
    could take there beside the rest of the query. `unit` names the limit of the inventory that forbids the
    amount although there is room.
    """

    text: Annotated[str, Meta(description="In a sentence.")]
    tree: ProviderName
    provider: ProviderName | None
    distance: Annotated[
        float, Meta(ge=0, le=1, description="The missing part of the amount; 0.5 where there is no measure.")
    ]
    free: int | None
    unit: _Unit | None


class ShownExplanation(msgspec.Struct, forbid_unknown_fields=True):
    """The effect of each constraint of a query on the fleet at one version of the ledger."""

    version: _Count
    providers: _Count
    trees: _Count
    trees_with_candidates: Range
    constraints: list[ShownRemoval]
    misses: list[ShownMiss]


async def explain(service: V1Service, req: Request, resp: Response) -> msgspec.Raw:
    """Explain why a query has few candidates, and which trees come nearest."""
    asked: CandidateQueryParameters = req.query
    if len(constraints_of(asked.query)) > MOST_CONSTRAINTS:
        raise BadRequest(f"Only queries of at most {MOST_CONSTRAINTS} constraints are explained.")

    def check(fleet: Fleet) -> None:
        check_query(fleet, asked.query)

    def compute(fleet: Fleet) -> bytes:
        return msgspec.json.encode(_describe(fleet, explain_fully(fleet, asked.query, asked.own.misses)))

    return msgspec.Raw(await service.queries.answer(("explain", req.query_string), check, compute))


def _describe(fleet: Fleet, explanation: Explanation) -> ShownExplanation:
    served = explanation.served
    return ShownExplanation(
        version=fleet.version,
        providers=explanation.providers,
        trees=explanation.trees,
        trees_with_candidates=Range(served, served + explanation.unknown),
        constraints=[_describe_removal(step) for step in explanation.steps],
        misses=[_describe_miss(fleet, miss) for miss in explanation.near_misses],
    )


def _describe_removal(step: Removal) -> ShownRemoval:
    return ShownRemoval(
        constraint=str(step.constraint),
        group=step.constraint.group,
        kind=step.constraint.kind,
        names=tuple(step.constraint.names),
        amount=_amount(step.constraint),
        providers_removed=ProvidersRemoved(step.providers_alone, step.providers),
        trees_removed=TreesRemoved(step.trees_alone, step.trees, step.trees_sole),
    )


def _describe_miss(fleet: Fleet, miss: NearMiss) -> ShownMiss:
    return ShownMiss(
        constraint=str(miss.constraint),
        group=miss.constraint.group,
        kind=miss.constraint.kind,
        names=tuple(miss.constraint.names),
        amount=_amount(miss.constraint),
        text=_sentence(fleet, miss),
        tree=_describe_provider(fleet, miss.root),
        provider=None if miss.provider is None else _describe_provider(fleet, miss.provider),
        distance=round(miss.distance, 4),
        free=miss.free,
        unit=miss.unit,
    )


def _amount(constraint: Constraint) -> int | None:
    return constraint.amount if constraint.is_amount else None


def _describe_provider(fleet: Fleet, uuid: str) -> ProviderName:
    return ProviderName(uuid, fleet.name(fleet.row(uuid)))


def _sentence(fleet: Fleet, miss: NearMiss) -> str:
    constraint = miss.constraint
    name = fleet.name(fleet.row(miss.root if miss.provider is None else miss.provider))
    names = " or ".join(constraint.names)
    if constraint.kind == RESOURCES:
        said = f"wants {constraint.amount} {names}, has {miss.free} free on {name}"
        return said if miss.unit is None else f"{said}, but its {miss.unit} forbids the amount"
    if constraint.kind == SPLIT_RESOURCES:
        return f"wants {constraint.amount} {names}, has {miss.free} free on the providers of {name} together"
    said = _SENTENCES[constraint.kind]
    return said.format(name=name, names=names, inside=" and ".join(_inside(fleet, miss)))


_SENTENCES = {
    "required": "{name} lacks trait {names}",
    "forbidden": "{name} has forbidden trait {names}",
    "member_of": "{name} is not in aggregate {names}",
    "forbidden_aggregates": "{name} is in forbidden aggregate {inside}",
    "in_tree": "{name} is not in the tree of {names}",
    "root_required": "root {name} lacks trait {names}",
    "root_forbidden": "root {name} has forbidden trait {names}",
    "same_subtree": "{name} has no common subtree for {names}",
    "isolate": "{name} has no provider for each group by itself",
    "isolated": "{name} has no provider for each of the groups {names} by itself",
}


def _inside(fleet: Fleet, miss: NearMiss) -> list[str]:
    """Return the aggregates of the constraint that the provider or its root is in."""
    row = fleet.row(miss.root if miss.provider is None else miss.provider)
    around = {*fleet.aggregates_of(row), *fleet.aggregates_of(fleet.root.item(row))}
    return [name for name in miss.constraint.names if name in around]
