"""The mask of a single constraint: the providers that meet it by themselves."""

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.constraint import (
    FORBIDDEN,
    FORBIDDEN_AGGREGATES,
    IN_TREE,
    MEMBER_OF,
    REQUIRED,
    RESOURCES,
    ROOT_FORBIDDEN,
    ROOT_REQUIRED,
    SPLIT_RESOURCES,
    Constraint,
)
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any, tree_root
from roost.fleet.splitting import parts_by_tree


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
