"""Single constraints, judged by the plain oracle."""

from roost.fleet.constraint import ISOLATE, ISOLATED, SAME_SUBTREE, TOGETHER, Constraint
from roost.model.request import RequestGroup
from support import oracle
from support.oracle import World

WHOLE = (TOGETHER, SAME_SUBTREE, ISOLATE, ISOLATED)
"""Kinds of constraints that only whole candidates can violate."""


def meets(world: World, uuid: str, constraint: Constraint) -> bool:
    """Whether a provider meets one constraint by itself."""
    provider, root = world[uuid], world[oracle.root_of(world, uuid)]
    names = frozenset(constraint.names)
    around = provider.aggregates | (root.aggregates if not constraint.group else frozenset())
    match constraint.kind:
        case "resources":
            return oracle.fits(provider, constraint.names[0], constraint.amount)
        case "required":
            return bool(provider.traits & names)
        case "forbidden":
            return not provider.traits & names
        case "member_of":
            return bool(around & names)
        case "forbidden_aggregates":
            return not around & names
        case "in_tree":
            return oracle.in_tree(world, uuid, RequestGroup(in_tree=constraint.names[0]))
        case "root_required":
            return bool(root.traits & names)
        case "root_forbidden":
            return not root.traits & names
    return True
