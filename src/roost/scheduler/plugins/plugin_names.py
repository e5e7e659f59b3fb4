"""Finds the classes of filters and weighers by the names that the options have for them.

A name is one of these, in this order:

1. an entry point of another package, in the group ``roost.filters`` or ``roost.weighers``;
2. for filters, the last word of an import path in ``available_filters``;
3. the class name of a built-in, which is Nova's where Nova has the plugin, or Nova's import path of it
   (``nova.scheduler.weights.ram.RAMWeigher``);
4. the import path of any other class, as ``package.module.Class`` or ``package.module:Class``.

The module of a built-in has its class name in snake case without ``Filter`` or ``Weigher``:
``filters/io_ops.py`` has ``IoOpsFilter`` and calls it ``PLUGIN``.

A configuration that still names filters which Nova has removed starts, with a warning for each.
"""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pkgutil import iter_modules
from typing import Any, Final

from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.options import ALL_FILTERS, ALL_WEIGHERS
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER, PluginClass
from roost.scheduler.plugins.plugin_options import PluginOptions


def _limited(resource_class: str, ratio: str) -> str:
    return (
        f"placement limits {resource_class} by the allocation_ratio of each host's inventory; remove the "
        f"filter from enabled_filters. Where it was not enabled, so that {resource_class} had no limit, "
        f"{ratio} = 10000.0 on the compute hosts stands in"
    )


def _limited_by_aggregate(resource_class: str, ratio: str) -> str:
    return (
        f"{_limited(resource_class, ratio)}. The aggregate metadata {ratio} has no effect: set the ratio on "
        "the compute hosts of the aggregate"
    )


def _exact(resource_class: str) -> str:
    return (
        "remove the filter from enabled_filters. A flavor for whole hosts requests the custom resource class "
        f"of the host and sets resources:{resource_class} to 0"
    )


REMOVED_FILTERS: Final = {
    "CoreFilter": _limited("VCPU", "cpu_allocation_ratio"),
    "RamFilter": _limited("MEMORY_MB", "ram_allocation_ratio"),
    "DiskFilter": _limited("DISK_GB", "disk_allocation_ratio"),
    "AggregateCoreFilter": _limited_by_aggregate("VCPU", "cpu_allocation_ratio"),
    "AggregateRamFilter": _limited_by_aggregate("MEMORY_MB", "ram_allocation_ratio"),
    "AggregateDiskFilter": _limited_by_aggregate("DISK_GB", "disk_allocation_ratio"),
    "ExactCoreFilter": _exact("VCPU"),
    "ExactRamFilter": _exact("MEMORY_MB"),
    "ExactDiskFilter": _exact("DISK_GB"),
    "RetryFilter": "alternates take the place of retries; remove the filter from enabled_filters",
    "TypeAffinityFilter": (
        "remove the filter from enabled_filters. AggregateTypeAffinityFilter limits the flavors of an "
        "aggregate"
    ),
    "TrustedFilter": "remove the filter from enabled_filters. Flavors require a trait of the trusted hosts",
}
"""Name of a removed filter -> what the operator configures instead."""


_NOVA = {FILTER: "nova.scheduler.filters.", WEIGHER: "nova.scheduler.weights."}
_OPTION = {FILTER: "enabled_filters", WEIGHER: "weight_classes"}


def filter_classes(enabled: Sequence[str], available: Sequence[str] = ()) -> list[PluginClass]:
    """Return the classes of the filters in ``enabled_filters``, without those that Nova has removed.

    Raises:
        UnknownPlugin: there is no filter of a name, or its class cannot be loaded or is no filter.
    """
    others = {_last_word(path): path for path in available if path != ALL_FILTERS}
    names = (others.get(name, name) for name in enabled)
    return [_class(FILTER, name) for name in dict.fromkeys(names) if _last_word(name) not in REMOVED_FILTERS]


def weigher_classes(names: Sequence[str]) -> list[PluginClass]:
    """Return the classes of the weighers in ``weight_classes``.

    Raises:
        UnknownPlugin: there is no weigher of a name, or its class cannot be loaded or is no weigher.
    """
    expanded = (each for name in names for each in (built_ins_of_nova() if name == ALL_WEIGHERS else (name,)))
    return [_class(WEIGHER, name) for name in dict.fromkeys(expanded)]


def built_ins_of_nova() -> list[str]:
    """Return the names of the built-in weighers that Nova has too, in the order of the modules."""
    return [each.name for each in built_ins(WEIGHER) if not each.beyond_nova]


def left_out(enabled: Iterable[str]) -> dict[str, str]:
    """Return the filters of ``enabled_filters`` that Nova has removed: name -> the operator's next step."""
    return {name: REMOVED_FILTERS[word] for name in enabled if (word := _last_word(name)) in REMOVED_FILTERS}


def built_ins(kind: str) -> list[PluginClass]:
    """Return the classes of all built-in filters or weighers (``kind``)."""
    return [PluginClass.of(kind, _module(kind, name).PLUGIN) for name in _module_names(kind)]


def all_plugin_options() -> Iterator[PluginOptions]:
    """Yield the options of all built-ins, and of the plugins of other packages that can be loaded."""
    for kind in (FILTER, WEIGHER):
        found = built_ins(kind)
        for entry in registered(kind):
            try:
                found.append(PluginClass.of(kind, entry.load()))
            except Exception:  # A plugin that is not enabled must not keep others from being listed.
                continue
        for each in found:
            if each.options is not None:
                yield each.options


@cache
def registered(kind: str) -> EntryPoints:
    """Return the entry points that packages have registered. To find them, each installed package is read."""
    return entry_points(group=f"roost.{kind}s")


def _class(kind: str, name: str) -> PluginClass:
    """Return the class of a filter or weigher (``kind``)."""
    found = _of_a_package(kind, name) or _built_in(kind, name) or _imported(kind, name)
    if found is None:
        known = sorted({each.name for each in built_ins(kind)} | registered(kind).names)
        raise UnknownPlugin(
            f"there is no {kind} named {name!r}: option {_OPTION[kind]} may name {', '.join(known)}, "
            "or the import path of a class"
        )
    try:
        return PluginClass.of(kind, found)
    except UnknownPlugin as error:
        raise UnknownPlugin(f"{name!r} is no {kind}: {error}") from error


def _of_a_package(kind: str, name: str) -> Any:
    """Return the class that another package registered under a name; it takes precedence over a built-in."""
    for entry in registered(kind).select(name=name):
        try:
            return entry.load()
        except Exception as error:
            raise UnknownPlugin(f"{kind} {name!r} cannot be loaded from {entry.value}: {error}") from error
    return None


def _built_in(kind: str, name: str) -> Any:
    word = _last_word(name) if name.startswith(_NOVA[kind]) else name
    module = _module_name(kind, word)
    if module not in _module_names(kind):
        return None
    found = _module(kind, module).PLUGIN
    return found if found.name == word else None


def _imported(kind: str, name: str) -> Any:
    """Return the class at an import path; None if the name is no import path."""
    module, _, word = name.replace(":", ".").rpartition(".")
    if not module or not word or "/" in name or name.startswith((".", _NOVA[kind])):
        return None
    try:
        found = getattr(importlib.import_module(module), word)
    except Exception as error:
        raise UnknownPlugin(f"{kind} {name!r} cannot be loaded: {error}") from error
    if not isinstance(found, type):
        raise UnknownPlugin(f"{name!r} is no {kind}: it is no class")
    return found


def _last_word(name: str) -> str:
    return name.replace(":", ".").rpartition(".")[2]


def _module_name(kind: str, word: str) -> str:
    """Return ``io_ops`` for ``IoOpsFilter``, ``ram`` for ``RAMWeigher``."""
    stem = word.removesuffix(kind.title())
    snake = ""
    for at, letter in enumerate(stem):
        follows = stem[at + 1 : at + 2]
        if letter.isupper() and at and (not stem[at - 1].isupper() or follows.islower()):
            snake += "_"
        snake += letter.lower()
    return snake


@cache
def _module_names(kind: str) -> list[str]:
    package = importlib.import_module(f"roost.scheduler.{kind}s")
    return [module.name for module in iter_modules(package.__path__)]


def _module(kind: str, name: str) -> Any:
    return importlib.import_module(f"roost.scheduler.{kind}s.{name}")
