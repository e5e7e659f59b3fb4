"""Parts of pages about maintenances."""

from collections.abc import Mapping

import htpy as h

from roost.conductor.maintenance.types import ShownMaintenance
from roost.dashboard import addresses
from roost.dashboard.html.bars import bar
from roost.dashboard.html.states import host_in_maintenance_state, maintenance_state, state_mark
from roost.dashboard.html.values import counted, moment, name, number, sentence
from roost.model.maintenance import IN_WAVE, LEFT_OUT, RETURNED, WAITING

_PARTS = (
    ((RETURNED,), "bar-ok"),
    ((LEFT_OUT,), "bar-fails"),
    (IN_WAVE, "bar-used"),
    ((WAITING,), "bar-total"),
)
"""States of hosts, and the class of their part of the bar."""


def maintenance_link(uuid: str) -> h.Element:
    """Return a link to a maintenance by the begin of its uuid."""
    return h.a(".name.mono", href=addresses.maintenance(uuid), title=uuid)[h.bdi[uuid[:8]]]


def maintenance_facts(maintenance: ShownMaintenance) -> h.Element:
    """Return what a maintenance is and how far it has come."""
    facts: list[tuple[str, h.Node]] = [
        ("State", state_mark(maintenance_state(maintenance.state))),
        ("Because", maintenance.reason and h.bdi[sentence(maintenance.reason)]),
        ("Wave", number(maintenance.wave) if maintenance.wave else "none has begun"),
        ("Hosts", hosts_bar(maintenance.hosts)),
        ("Left", counted(maintenance.left, "host")),
        ("Room for one host more", "kept free" if maintenance.reserve else "not kept free"),
        ("Hosts in a wave", maintenance.most_hosts and f"at most {number(maintenance.most_hosts)}"),
        ("After a host left out", "it goes on" if maintenance.keep_going else "it pauses"),
        ("Began", moment(maintenance.began)),
        ("State since", moment(maintenance.changed_at)),
        ("Begun by", name(maintenance.user_id)),
        ("UUID", h.bdi(".mono")[maintenance.uuid]),
    ]
    return h.dl(".facts")[[(h.dt[title], h.dd[value]) for title, value in facts if value]]


def hosts_bar(hosts: Mapping[str, int]) -> h.Node:
    """Return the hosts of a maintenance as a bar. ``hosts``: their numbers by state."""
    total = sum(hosts.values())
    if not total:
        return "none"
    counts = [(sum(hosts.get(state, 0) for state in states), kind) for states, kind in _PARTS]
    words = ", ".join(
        f"{number(count)} {host_in_maintenance_state(state).words.lower()}" for state, count in hosts.items()
    )
    over = hosts.get(RETURNED, 0)
    return h.span(".bar-line")[
        bar([(100 * count / total, kind) for count, kind in counts], words),
        h.span(".num.nowrap", title=words)[f"{number(over)} of {number(total)}"],
    ]
