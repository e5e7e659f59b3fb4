"""Filters and weighers, found by name.

A built-in is the module of that name in filters/ or weighers/, which holds one class; other packages
register theirs under the entry point groups ``roost.filters`` and ``roost.weighers``.
"""

import importlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Protocol, cast

from roost.fleet.columns import Bools, Float64
from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.offers import HostView
from roost.scheduler.question import Progress, Question


class Filter(Protocol):
    """Says which hosts may be used. ``depends_on_claims``: asked again after each claim of the run."""

    name: str
    depends_on_claims: bool

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools:
        """For each host whether it may be used: bool[len(hosts)]."""


class Weigher(Protocol):
    """Says which hosts are better.

    Raw weights are normalised to 0..1 over the hosts in play and multiplied; ``default_multiplier`` is
    overridden by the options, and for single hosts by aggregate metadata of the name ``multiplier_key``.
    """

    name: str
    multiplier_key: str
    default_multiplier: float

    def raw(self, hosts: HostView, question: Question) -> Float64 | None:
        """A number for each host, higher is better: float64[len(hosts)]; None if all are equal."""


def filters(names: Sequence[str]) -> list[Filter]:
    """The filters of these names. Raises `UnknownPlugin`."""
    return [cast(Filter, _plugin("filter", name)) for name in names]


def weighers(names: Sequence[str]) -> list[Weigher]:
    """The weighers of these names. Raises `UnknownPlugin`."""
    return [cast(Weigher, _plugin("weigher", name)) for name in names]


@cache
def _plugin(kind: str, name: str) -> Any:
    for entry in entry_points(group=f"roost.{kind}s", name=name):
        return entry.load()()
    path = f"roost.scheduler.{kind}s.{name}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        raise UnknownPlugin(f"there is no {kind} named {name!r}") from None
    return module.PLUGIN()
