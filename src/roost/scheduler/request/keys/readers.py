"""The readers of request keys in a configured scheduler."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import roost
from roost.model.spec import Where
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plain_plugins import PlainFilter, PlainWeigher
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER
from roost.scheduler.plugins.plugin_names import built_ins
from roost.scheduler.plugins.plugins import Plugin, Plugins, Weigher
from roost.scheduler.request.keys.flavor_keys import FLAVOR_KEYS
from roost.scheduler.request.keys.image_keys import IMAGE_KEYS
from roost.scheduler.request.keys.known import (
    DRIVER,
    HINTS,
    IMAGE_PREFILTER,
    NUMA_TREES,
    PCI_IN_PLACEMENT,
    SCHEDULER,
    KnownKey,
)

_OWN: Final = (*FLAVOR_KEYS, *IMAGE_KEYS, *HINTS)


class Readers:
    """The readers of keys under given options.

    ``active``: the names of all readers, weighers and enabled filters included. ``filters``: the names of the
    filters. ``silent``: the plugins of other packages that do not declare the keys that they read.
    """

    def __init__(self, options: SchedulerOptions, plugins: Plugins) -> None:
        weighing = [each for each in plugins.weighers if _multiplier(each, options) != 0.0]
        self._plugins: list[Plugin] = [*plugins.filters, *weighing]
        self.filters = frozenset(each.name for each in plugins.filters)
        self.active = frozenset((SCHEDULER, DRIVER, *(each.name for each in self._plugins), *_of(options)))
        self.silent = tuple(sorted(each.name for each in self._plugins if _is_silent(each)))
        self._more = tuple(map(_pattern, options.keys.known_keys))

    def plugins_of(self, where: Where, name: str) -> Iterator[Plugin]:
        """Yield the filters and weighers that read a key."""
        for plugin in self._plugins:
            if any(key.where == where and key.matches(name) for key in plugin.reads or ()):
                yield plugin

    def is_made_known(self, name: str) -> bool:
        """Return whether the option ``known_keys`` names a key as one that something reads."""
        return any(pattern.fullmatch(name) for pattern in self._more)


@cache
def all_known() -> tuple[KnownKey, ...]:
    """Return all known keys, including those that plugins declare. A key may occur several times."""
    declared = (
        KnownKey(key, (each.name,))
        for kind in (FILTER, WEIGHER)
        for each in built_ins(kind)
        for key in each.reads
    )
    return (*_OWN, *declared)


def _of(options: SchedulerOptions) -> Iterator[str]:
    """Yield the readers that options switch on."""
    if options.request_filters.numa_model != "objects":
        yield NUMA_TREES
    if options.request_filters.image_metadata_prefilter:
        yield IMAGE_PREFILTER
    if options.pci.in_placement:
        yield PCI_IN_PLACEMENT


def _is_silent(plugin: Plugin) -> bool:
    """Return whether a plugin may read any key. A built-in that declares nothing reads nothing."""
    package = plugin.module.partition(".")[0]
    is_own = package == roost.__name__ and not isinstance(plugin.plugin, PlainFilter | PlainWeigher)
    return not is_own and plugin.reads is None


def _multiplier(weigher: Weigher, options: SchedulerOptions) -> float:
    return options.multipliers.get(weigher.name, float(weigher.default_multiplier))


def _pattern(text: str) -> re.Pattern[str]:
    if text.endswith("*"):
        return re.compile(re.escape(text[:-1]) + ".+", re.DOTALL)
    return re.compile(re.escape(text))
