"""The constraints of a query one by one: as text, added, left out, and the providers that meet each."""

from collections.abc import Iterator

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any, tree_root
from roost.fleet.splitting import parts_by_tree
from roost.model.allocation import Resources
from roost.model.request import CandidateQuery, RequestGroup

RESOURCES = "resources"
SPLIT_RESOURCES = "split_resources"
"""An amount that several providers of one tree may give together."""
ANY_PROVIDER = "any_provider"
REQUIRED = "required"
FORBIDDEN = "forbidden"
MEMBER_OF = "member_of"
FORBIDDEN_AGGREGATES = "forbidden_aggregates"
IN_TREE = "in_tree"
ROOT_REQUIRED = "root_required"
ROOT_FORBIDDEN = "root_forbidden"
SAME_SUBTREE = "same_subtree"
ISOLATE = "isolate"
ISOLATED = "isolated"
TOGETHER = "together"
"""Pseudo-constraint: a candidate of one tree must meet all constraints before it at once."""


class Constraint(msgspec.Struct, frozen=True):
    """One constraint of a query.

    ``group`` is the suffix of its group, None for a constraint on the whole query. ``names``: a resource
    class, traits or aggregates (any of them), a provider, or suffixes, depending on ``kind``. ``amount`` is
    in units of the resource class, 0 for other kinds.
    """

    group: str | None
    kind: str
    names: tuple[str, ...] = ()
    amount: int = 0

    @property
    def is_amount(self) -> bool:
        """True if the constraint is on the amount of a resource class."""
        return self.kind in (RESOURCES, SPLIT_RESOURCES)

    def __str__(self) -> str:
        words = _TEXTS[self.kind].format(names=" or ".join(self.names), amount=self.amount)
        return f"group {self.group}: {words}" if self.group else words


_TEXTS = {
    RESOURCES: "{amount} {names}",
    SPLIT_RESOURCES: "{amount} {names}, may be split",
    ANY_PROVIDER: "any provider",
    REQUIRED: "required {names}",
    FORBIDDEN: "forbidden {names}",
    MEMBER_OF: "member_of {names}",
    FORBIDDEN_AGGREGATES: "not member_of {names}",
    IN_TREE: "in_tree {names}",
    ROOT_REQUIRED: "root requires {names}",
    ROOT_FORBIDDEN: "root forbids {names}",
    SAME_SUBTREE: "same_subtree {names}",
    ISOLATE: "group_policy isolate",
    ISOLATED: "isolated {names}",
    TOGETHER: "everything from one tree at once",
}


def constraints_of(query: CandidateQuery) -> list[Constraint]:
    """Return all constraints of a query, in the order in which an explanation applies them."""
    split = query.split
    found = [constraint for group in query.groups for constraint in _of_group(group, split)]
    found += [Constraint(None, ROOT_REQUIRED, (trait,)) for trait in sorted(query.root_required)]
    found += [Constraint(None, ROOT_FORBIDDEN, (trait,)) for trait in sorted(query.root_forbidden)]
    found += [Constraint(None, SAME_SUBTREE, tuple(sorted(suffixes))) for suffixes in query.same_subtree]
    if query.isolate:
        found.append(Constraint(None, ISOLATE))
    if query.isolated:
        found.append(Constraint(None, ISOLATED, tuple(sorted(query.isolated))))
    return found


def _of_group(group: RequestGroup, split: Resources) -> Iterator[Constraint]:
    name = group.suffix
    if not group.resources:
        yield Constraint(name, ANY_PROVIDER)
    for resource_class, amount in group.resources.items():
        kind = SPLIT_RESOURCES if resource_class in split and not group.granular else RESOURCES
        yield Constraint(name, kind, (resource_class,), amount)
    for any_of in group.required:
        yield Constraint(name, REQUIRED, tuple(sorted(any_of)))
    for trait in sorted(group.forbidden):
        yield Constraint(name, FORBIDDEN, (trait,))
    for any_of in group.member_of:
        yield Constraint(name, MEMBER_OF, tuple(sorted(any_of)))
    if group.forbidden_aggregates:
        yield Constraint(name, FORBIDDEN_AGGREGATES, tuple(sorted(group.forbidden_aggregates)))
    if group.in_tree is not None:
        yield Constraint(name, IN_TREE, (group.in_tree,))


def narrowed(query: CandidateQuery, constraint: Constraint) -> CandidateQuery:
    """Return the query with one more constraint."""
    names = frozenset(constraint.names)
    if constraint.group is not None:
        groups = {group.suffix: group for group in query.groups}
        group = groups.get(constraint.group, RequestGroup(suffix=constraint.group))
        groups[constraint.group] = _narrowed(group, constraint, names)
        can_split = query.can_split
        if constraint.kind == SPLIT_RESOURCES:
            can_split = tuple(sorted(names.union(can_split)))
        return msgspec.structs.replace(query, groups=tuple(groups.values()), can_split=can_split)
    match constraint.kind:
        case "root_required":
            return msgspec.structs.replace(query, root_required=query.root_required | names)
        case "root_forbidden":
            return msgspec.structs.replace(query, root_forbidden=query.root_forbidden | names)
        case "same_subtree":
            return msgspec.structs.replace(query, same_subtree=(*query.same_subtree, names))
        case "isolate":
            return msgspec.structs.replace(query, isolate=True)
        case "isolated":
            return msgspec.structs.replace(query, isolated=names)
    return query


def _narrowed(group: RequestGroup, constraint: Constraint, names: frozenset[str]) -> RequestGroup:
    match constraint.kind:
        case "resources" | "split_resources":
            resources = {**group.resources, constraint.names[0]: constraint.amount}
            return msgspec.structs.replace(group, resources=resources)
        case "required":
            return msgspec.structs.replace(group, required=(*group.required, names))
        case "forbidden":
            return msgspec.structs.replace(group, forbidden=group.forbidden | names)
        case "member_of":
            return msgspec.structs.replace(group, member_of=(*group.member_of, names))
        case "forbidden_aggregates":
            return msgspec.structs.replace(group, forbidden_aggregates=names)
        case "in_tree":
            return msgspec.structs.replace(group, in_tree=constraint.names[0])
    return group


def without(query: CandidateQuery, left_out: Constraint) -> CandidateQuery:
    """Return the query without one of its constraints. Without its amount a group may request nothing."""
    return _replaced(query, left_out, None)


def replaced(query: CandidateQuery, constraint: Constraint, resource_class: str) -> CandidateQuery:
    """Return the query with one unit of ``resource_class`` instead of the amount of a constraint."""
    return _replaced(query, constraint, Constraint(constraint.group, RESOURCES, (resource_class,), 1))


def with_amount(query: CandidateQuery, constraint: Constraint, amount: int) -> CandidateQuery:
    """Return the query with another amount (at least 1) of the resource class of one of its constraints."""
    return _replaced(query, constraint, msgspec.structs.replace(constraint, amount=amount))


def _replaced(query: CandidateQuery, old: Constraint, new: Constraint | None) -> CandidateQuery:
    """Replace ``old`` by ``new``. Only its group is rebuilt, because a query may have hundreds of groups."""
    if old.group is None:
        part = msgspec.structs.replace(query, groups=())
        made = CandidateQuery(())
    else:
        groups = tuple(group for group in query.groups if group.suffix == old.group)
        part = CandidateQuery(groups, can_split=tuple(query.split))
        made = CandidateQuery((RequestGroup(suffix=old.group),))
    for constraint in constraints_of(part):
        kept = new if constraint == old else constraint
        if kept is not None:
            made = narrowed(made, kept)
    if old.group is None:
        return msgspec.structs.replace(made, groups=query.groups, can_split=query.can_split)
    [made_group] = made.groups
    groups = tuple(made_group if group.suffix == old.group else group for group in query.groups)
    return msgspec.structs.replace(query, groups=groups)


def constraint_mask(fleet: Fleet, rows: Rows, constraint: Constraint) -> Bools:
    """Return for each provider whether it meets a constraint: bool[len(rows)].

    A provider meets an amount that may be split if it can give a part of it, and its tree can give all of it.
    For the unsuffixed group a provider is also in the aggregates of its root. Constraints on the root are
    evaluated on the root of the provider's tree. Constraints that only a whole candidate can violate are met.
    """
    names, kind = constraint.names, constraint.kind
    roots = fleet.roots(rows)
    mask: Bools = np.ones(len(rows), dtype=np.bool_)
    if kind == RESOURCES:
        mask = fleet.inventory_columns(names[0]).fits_of(rows, constraint.amount)
    elif kind == SPLIT_RESOURCES:
        mask = _gives_a_part(fleet, names[0], constraint.amount)[rows]
    elif kind in (REQUIRED, FORBIDDEN):
        mask = in_any(fleet.with_trait, names, rows) == (kind == REQUIRED)
    elif kind in (MEMBER_OF, FORBIDDEN_AGGREGATES):
        inside = in_any(fleet.in_aggregate, names, rows)
        if not constraint.group:
            inside |= in_any(fleet.in_aggregate, names, roots)
        mask = inside == (kind == MEMBER_OF)
    elif kind in (ROOT_REQUIRED, ROOT_FORBIDDEN):
        mask = in_any(fleet.with_trait, names, roots) == (kind == ROOT_REQUIRED)
    elif kind == IN_TREE:
        mask = roots == tree_root(fleet, names[0])
    return mask


def _gives_a_part(fleet: Fleet, name: str, amount: int) -> Bools:
    with_class, gives, together = parts_by_tree(fleet, name, amount)
    found: Bools = np.zeros(fleet.n_rows, dtype=np.bool_)
    found[with_class] = (gives > 0) & (together[fleet.roots(with_class)] >= amount)
    return found
