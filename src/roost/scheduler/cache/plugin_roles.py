"""The roles of all filters and weighers in a request, by the keys that they return for it."""

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import NamedTuple

from roost.scheduler.errors import SchedulerError
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_calls import ask_key
from roost.scheduler.plugins.plugins import Filter, Weigher, in_order
from roost.scheduler.request.scheduling_request import SchedulingRequest


class Role(Enum):
    """The role of a filter in one request."""

    SILENT = "silent"
    """The filter does not apply."""
    CACHED = "cached"
    """Its results are part of the equivalence class."""
    VARIED = "varied"
    """Its masks are cached by a key with too many values for a class each, such as a project."""
    ASKED = "asked"
    """The filter is asked for this request."""


class FilterRole(NamedTuple):
    """A filter with its role in one request. ``again``: it is applied after each claim, too."""

    plugin: Filter
    role: Role
    key: Hashable
    again: bool


def is_cacheable(plugin: Filter | Weigher) -> bool:
    """Return whether a plugin's result for a host is valid until the host changes.

    Other plugins are asked at each decision. So is a weigher that looks at the request: a column of numbers
    for each of its keys would take as much memory as an equivalence class.
    """
    looks = plugin.looks_at
    if looks is None or Looks.MEMBERS in looks or plugin.reads_other_hosts:
        return False
    return plugin.named is None if isinstance(plugin, Filter) else plugin.key is None


MOST_KEYS = 32
"""Keys of one filter that distinguish equivalence classes. The masks of a filter with more keys are in
`Verdicts`."""
_MOST_PARTS = 1_000


class Parts(NamedTuple):
    """The roles of all plugins in a request.

    ``filter_roles``: the filters in the order in which they are applied. ``key``: the part of the class's key
    beside the query. ``again``: the filters of the class that depend on claims, each with the stage of a host
    that it rejects. ``asks_filters``: whether a filter is asked for this request. ``own``: the weighers that
    are asked for it, each with its number among all weighers. ``varied``: for each filter with too many keys
    its position in ``filter_roles``, and its number among the plugins with keys.
    """

    filter_roles: Sequence[FilterRole]
    key: tuple[tuple[str, Hashable], ...]
    again: Sequence[tuple[int, Filter]]
    asks_filters: bool
    own: Sequence[tuple[int, Weigher]]
    varied: Sequence[tuple[int, int]]


class PluginParts:
    """Finds the roles of these plugins in requests.

    Most requests have the same few keys. So the roles are cached by the keys that distinguish classes; of a
    plugin that is asked for each request only the existence of a key matters.
    """

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weigher]) -> None:
        self._filters = in_order(filters)
        self._own = [(rank, each) for rank, each in enumerate(weighers) if not is_cacheable(each)]
        plugins: list[Filter | Weigher] = [*self._filters, *(weigher for _, weigher in self._own)]
        self._keyed = [each for each in plugins if each.key is not None]
        self._key_of: list[Callable[[SchedulingRequest], Hashable | None]] = [
            each.key for each in plugins if each.key is not None
        ]
        # The numbers of the plugins whose keys do not distinguish classes.
        self._loose = [
            number
            for number, each in enumerate(self._keyed)
            if isinstance(each, Weigher) or not is_cacheable(each)
        ]
        # The keys of each filter so far, until they are too many.
        self._keys: dict[str, set[Hashable]] = {}
        self._cached: dict[tuple[Hashable, ...], Parts] = {}

    def parts(self, request: SchedulingRequest) -> Parts:
        """Return the roles of all plugins. Raises: `SchedulerFault` if one cannot return its key."""
        keys = self._ask(request)
        class_keys = [*keys]
        for number in self._loose:
            class_keys[number] = keys[number] is not None
        key = tuple(class_keys)
        parts = self._cached.get(key)
        if parts is None:
            if len(self._cached) == _MOST_PARTS:
                self._cached.clear()
            parts = self._cached[key] = self._parts_of(keys)
        if parts.varied:
            filter_roles = list(parts.filter_roles)
            for place, number in parts.varied:
                filter_roles[place] = filter_roles[place]._replace(key=keys[number])
            parts = parts._replace(filter_roles=filter_roles)
        return parts

    def _ask(self, request: SchedulingRequest) -> tuple[Hashable | None, ...]:
        try:
            keys = tuple([key(request) for key in self._key_of])
            hash(keys)
        except SchedulerError:
            raise
        except Exception:
            # Asking each plugin by itself finds the one that failed.
            return tuple([ask_key(each, request) for each in self._keyed])
        return keys

    def _parts_of(self, keys: Sequence[Hashable | None]) -> Parts:
        number_of = {id(each): number for number, each in enumerate(self._keyed)}
        filter_roles: list[FilterRole] = []
        varied: list[tuple[int, int]] = []
        for place, plugin in enumerate(self._filters):
            number = number_of.get(id(plugin), -1)
            key, cacheable = None if number < 0 else keys[number], is_cacheable(plugin)
            role = Role.CACHED if cacheable else Role.ASKED
            if number >= 0 and key is None:
                role = Role.SILENT
            elif key is not None and cacheable and self._is_varied(plugin, key):
                role = Role.VARIED
                if number not in self._loose:
                    self._loose.append(number)
                varied.append((place, number))
            filter_roles.append(FilterRole(plugin, role, key, plugin.depends_on_claims))
        cached = [each for each in filter_roles if each.role is Role.CACHED]
        return Parts(
            filter_roles,
            tuple((each.plugin.name, each.key) for each in cached if each.key),
            [(stage, each.plugin) for stage, each in enumerate(cached, 1) if each.again],
            any(each.role in (Role.ASKED, Role.VARIED) for each in filter_roles),
            [
                (rank, each)
                for rank, each in self._own
                if id(each) not in number_of or keys[number_of[id(each)]] is not None
            ],
            varied,
        )

    def _is_varied(self, plugin: Filter, key: Hashable) -> bool:
        """Return whether a filter has had more keys than may distinguish classes."""
        keys = self._keys.setdefault(plugin.name, set())
        if len(keys) <= MOST_KEYS:
            keys.add(key)
        return len(keys) > MOST_KEYS
