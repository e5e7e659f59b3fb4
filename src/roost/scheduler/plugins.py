"""Filters and weighers, found by name.

A built-in is the module of that name in filters/ or weighers/, which holds one class; other packages
register theirs under the entry point groups ``roost.filters`` and ``roost.weighers``.
"""

import importlib
import math
from collections.abc import Sequence
from enum import Enum
from functools import cache
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, Protocol, cast

from roost.fleet.columns import Bools, Float64
from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.offers import HostView
from roost.scheduler.question import Progress, Question


class Scope(Enum):
    """All that a plugin looks at, if it says so by an attribute ``scope``: then what it said is kept, and it
    is asked again only for hosts of which something has changed.

    A plugin that says nothing may look at anything, and is asked at each decision for each host.
    """

    REPORT = "report"
    """What the host reports (of its heartbeat only ``table.seen_since(question.oldest_heartbeat)``) and the
    options. Not the request, not the clock, not other hosts; of the whole table, which metadata keys there
    are, and whether a weigher has anything to say at all."""
    HOST = "host"
    """The same, and for a weigher what the host's tree has and has left."""
    REQUEST = "request"
    """For a filter: what the host reports, the options, and of the request the flavor, the zone, image
    properties and hints."""
    GROUP = "group"
    """For a filter: anything, but it has nothing to say on a request without a server group."""


OF_A_HOST = (Scope.REPORT, Scope.HOST)
"""Nothing of the request."""


def free_of_class(weigher: object) -> str | None:
    """The resource class whose free amount a weigher's numbers are; None if they are anything else."""
    free_of = getattr(weigher, "free_of", None)
    return free_of if isinstance(free_of, str) else None


def minval_of(weigher: object) -> float:
    """The number that a weigher's numbers are normalised from; -inf if it is the least of them."""
    minval = getattr(weigher, "minval", None)
    return -math.inf if minval is None else float(minval)


def is_negated(weigher: object) -> bool:
    """Whether a weigher's multiplier counts with the opposite sign."""
    return bool(getattr(weigher, "negated", False))


def scope_of(plugin: object) -> Scope | None:
    """What a plugin says that it looks at; None if it does not say."""
    scope = getattr(plugin, "scope", None)
    return scope if isinstance(scope, Scope) else None


class Filter(Protocol):
    """Says which hosts may be used. ``depends_on_claims``: asked again after each claim of the run.

    It may have a ``scope``, see `Scope`.
    """

    name: str
    depends_on_claims: bool

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        """For each host whether it may be used: bool[len(hosts)]; None if all may."""


class Weigher(Protocol):
    """Says which hosts are better.

    Raw weights are normalised to 0..1 over the hosts in play and multiplied; ``default_multiplier`` is
    overridden by the options, and for single hosts by aggregate metadata of the name ``multiplier_key``.
    It may also have

    - ``scope``, see `Scope`;
    - ``free_of``, a resource class, if its numbers are nothing but what ``hosts.free`` says of that class:
      they are then kept without asking the weigher again;
    - ``minval``, a number: lower numbers are raised to it, and it is normalised to 0 instead of the least;
    - ``negated = True`` if the multiplier counts with the opposite sign, the configured one and those of
      aggregate metadata.
    """

    name: str
    multiplier_key: str
    default_multiplier: float

    def raw(self, hosts: HostView, question: Question) -> Float64 | None:
        """A number for each host, higher is better: float64[len(hosts)].

        Each number must come from its host alone, whatever other hosts are asked for beside it: after a
        claim only the hosts that it changed are asked for again. None if the weigher has nothing to say
        on this request, whatever the hosts.

        Raises: `CannotWeigh` if the request must fail because one of the hosts has no number.
        """


_MEMBERS = {
    "filter": ("name", "depends_on_claims", "mask"),
    "weigher": ("name", "multiplier_key", "default_multiplier", "raw"),
}


def filters(names: Sequence[str]) -> list[Filter]:
    """The filters of these names. Raises `UnknownPlugin`."""
    return [cast(Filter, plugin("filter", name)) for name in names]


def weighers(names: Sequence[str]) -> list[Weigher]:
    """The weighers of these names. Raises `UnknownPlugin`."""
    return [cast(Weigher, plugin("weigher", name)) for name in names]


@cache
def plugin(kind: str, name: str) -> Any:
    """The filter or weigher (``kind``) of a name, made once in a process. Raises `UnknownPlugin`."""
    found = _of_a_package(kind, name) or _built_in(kind, name)
    if found is None:
        raise UnknownPlugin(
            f"there is no {kind} named {name!r}: option enabled_{kind}s may name {', '.join(_known(kind))}"
        )
    lacking = [member for member in _MEMBERS[kind] if not hasattr(found, member)]
    if lacking:
        raise UnknownPlugin(f"{name!r} is no {kind}: it lacks {', '.join(lacking)}")
    return found


def _of_a_package(kind: str, name: str) -> Any:
    """What another package registered under this name; it goes before a built-in."""
    for entry in entry_points(group=f"roost.{kind}s", name=name):
        try:
            return entry.load()()
        except Exception as error:
            raise UnknownPlugin(f"{kind} {name!r} cannot be loaded from {entry.value}: {error}") from error
    return None


def _built_in(kind: str, name: str) -> Any:
    if name not in _built_ins(kind):
        return None
    return importlib.import_module(f"roost.scheduler.{kind}s.{name}").PLUGIN()


def _built_ins(kind: str) -> list[str]:
    package = importlib.import_module(f"roost.scheduler.{kind}s")
    return [module.name for module in iter_modules(package.__path__)]


def _known(kind: str) -> list[str]:
    return sorted({*_built_ins(kind), *entry_points(group=f"roost.{kind}s").names})
