"""``/v1/explain``: why there are so few candidates, and what would be nearest."""

from typing import Any

from roost.fleet import Fleet
from roost.fleet.constraint import RESOURCES, Constraint, constraints_of
from roost.fleet.explanation import Explanation, explain_fully
from roost.fleet.near_misses import NearMiss
from roost.fleet.removals import Removal
from roost.placement.errors import BadRequest
from roost.placement.http.answers import answer
from roost.placement.http.candidates import check_known
from roost.placement.http.request import Request, Response
from roost.placement.v1.parameters import parse
from roost.placement.v1.resource import Resource

MOST_CONSTRAINTS = 100
"""Each is judged on the whole fleet."""


class Explain(Resource):
    """/v1/explain"""

    async def on_get(self, req: Request, resp: Response) -> None:
        asked = parse(req)
        if len(constraints_of(asked.query)) > MOST_CONSTRAINTS:
            raise BadRequest(f"Only queries of at most {MOST_CONSTRAINTS} constraints are explained.")
        fleet = await self.ledger.current()
        check_known(fleet, asked.query)
        explanation = explain_fully(fleet, asked.query, asked.numbers["misses"])
        answer(req, resp, _describe(fleet, explanation))


def _describe(fleet: Fleet, explanation: Explanation) -> dict[str, Any]:
    return {
        "version": fleet.version,
        "providers": explanation.providers,
        "trees": explanation.trees,
        "trees_with_candidates": {
            "at_least": explanation.served,
            "at_most": explanation.served + explanation.unknown,
        },
        "constraints": [_describe_step(step) for step in explanation.steps],
        "misses": [_describe_miss(fleet, miss) for miss in explanation.near_misses],
    }


def _describe_step(step: Removal) -> dict[str, Any]:
    return {
        **_describe_constraint(step.constraint),
        "providers_removed": {"alone": step.providers_alone, "in_order": step.providers},
        "trees_removed": {"alone": step.trees_alone, "in_order": step.trees, "sole": step.trees_sole},
    }


def _describe_constraint(constraint: Constraint) -> dict[str, Any]:
    return {
        "constraint": str(constraint),
        "group": constraint.group,
        "kind": constraint.kind,
        "names": constraint.names,
        "amount": constraint.amount if constraint.kind == RESOURCES else None,
    }


def _describe_miss(fleet: Fleet, miss: NearMiss) -> dict[str, Any]:
    return {
        **_describe_constraint(miss.constraint),
        "text": _sentence(fleet, miss),
        "tree": _describe_provider(fleet, miss.root),
        "provider": None if miss.provider is None else _describe_provider(fleet, miss.provider),
        "distance": round(miss.distance, 4),
        "free": miss.free,
        "unit": miss.unit,
    }


def _describe_provider(fleet: Fleet, uuid: str) -> dict[str, str]:
    return {"uuid": uuid, "name": fleet.name(fleet.row(uuid))}


def _sentence(fleet: Fleet, miss: NearMiss) -> str:
    constraint = miss.constraint
    name = fleet.name(fleet.row(miss.root if miss.provider is None else miss.provider))
    names = " or ".join(constraint.names)
    if constraint.kind == RESOURCES:
        said = f"wants {constraint.amount} {names}, has {miss.free} free on {name}"
        return said if miss.unit is None else f"{said}, but its {miss.unit} forbids the amount"
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
}


def _inside(fleet: Fleet, miss: NearMiss) -> list[str]:
    """Those of the aggregates named that the provider or its root is in."""
    row = fleet.row(miss.root if miss.provider is None else miss.provider)
    around = {*fleet.aggregates_of(row), *fleet.aggregates_of(fleet.root.item(row))}
    return [name for name in miss.constraint.names if name in around]
