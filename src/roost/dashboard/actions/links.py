"""Links to actions, for the pages of cells, hosts and instances. Each leads to a page that asks first."""

from collections.abc import Sequence

import htpy as h

from roost.conductor.maintenance.types import ShownMaintenance
from roost.dashboard import addresses
from roost.dashboard.actions.confirmation import NOTHING_DOES
from roost.dashboard.actions.instance_act import ACTS, ActVerb
from roost.dashboard.actions.maintenance_act import HOST_STATES, MAINTENANCE_ACTS, acts_on
from roost.dashboard.actions.word import VERBS, WordVerb
from roost.dashboard.html.shell import Viewing

_WORDS: dict[WordVerb, str] = {"enable": "Enable", "disable": "Disable", "drain": "Drain"}


def word_links(
    viewing: Viewing,
    enabled: bool | None,
    *,
    cell: str | None = None,
    host: str | None = None,
    node: str | None = None,
    small: bool = False,
) -> h.Node:
    """Return links to enable, or to disable and drain, a cell, a host or a node (uuid of its root provider).

    ``enabled``: None: it is not known, and all three are there. A dashboard that carries out nothing has no
    links, and says so.
    """
    if not viewing.acts:
        return h.span(".muted", title=NOTHING_DOES)["No actions here"]
    verbs = [each for each in VERBS if enabled is None or (each == "enable") != enabled]
    return [
        h.a(
            class_=["button", small and "small"],
            href=addresses.action(each, cell=cell, host=host, node=node),
        )[_WORDS[each]]
        for each in verbs
    ]


def act_links(viewing: Viewing, uuid: str, verbs: Sequence[ActVerb]) -> h.Node:
    """Return links to acts on an instance."""
    if not viewing.acts:
        return h.span(".muted", title=NOTHING_DOES)["No actions here"]
    return [h.a(".button", href=addresses.action(verb, instance=uuid))[ACTS[verb].label] for verb in verbs]


def maintenance_links(viewing: Viewing, maintenance: ShownMaintenance) -> h.Node:
    """Return links to the acts that are possible on a maintenance as a whole."""
    verbs = acts_on(maintenance)
    if verbs and not viewing.acts:
        return h.span(".muted", title=NOTHING_DOES)["No actions here"]
    return [
        h.a(".button", href=addresses.action(verb, maintenance=maintenance.uuid))[
            MAINTENANCE_ACTS[verb].label
        ]
        for verb in verbs
    ]


def finish_link(viewing: Viewing, maintenance: ShownMaintenance, host: str, state: str) -> h.Node:
    """Return the link that gives back a host of a maintenance, where that is possible."""
    act = MAINTENANCE_ACTS["finish-host"]
    if not viewing.acts or state not in HOST_STATES or maintenance.state not in act.states:
        return None
    address = addresses.action("finish-host", maintenance=maintenance.uuid, host=host)
    return h.a(".button.small", href=address)[act.label]
