"""Tells the parts of all filters and weighers in a request, by the keys that they give for it."""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from roost.scheduler.cache.roles import Judged, Role, is_kept
from roost.scheduler.errors import SchedulerError
from roost.scheduler.plugins.declarations import depends_on_claims, in_order, is_keyed
from roost.scheduler.plugins.plugin_calls import ask_key
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_KEYS = 32
"""Different keys of one filter that shapes hang on; a filter that has had more is asked for by `Verdicts`."""
_MOST_PARTS = 1_000


class Parts(NamedTuple):
    """What plugins do in a request.

    ``judged``: the filters in the order in which they are asked. ``key``: what a shape hangs on beside the
    query. ``again``: the filters of the shape that depend on claims, each with the stage of a host that it
    does not let pass. ``asking``: whether a filter is asked for this request. ``own``: the weighers that are,
    each with its number among all weighers. ``varied``: for each filter with too many keys its place in
    ``judged``, and its number among the plugins with keys.
    """

    judged: Sequence[Judged]
    key: tuple[tuple[str, Hashable], ...]
    again: Sequence[tuple[int, Filter]]
    asking: bool
    own: Sequence[tuple[int, Weigher]]
    varied: Sequence[tuple[int, int]]


class PluginParts:
    """Tells the parts of these plugins.

    Most requests get the same few keys. So the parts are kept by the keys that shapes hang on; of a filter or
    weigher that is asked for each request it only matters whether it has one.
    """

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weigher]) -> None:
        self._filters = in_order(filters)
        self._own = [(rank, each) for rank, each in enumerate(weighers) if not is_kept(each)]
        plugins: list[Filter | Weigher] = [*self._filters, *(weigher for _, weigher in self._own)]
        self._keyed = [each for each in plugins if is_keyed(each)]
        self._key_of: list[Callable[[SchedulingRequest], Hashable | None]] = [
            each.key  # type: ignore[union-attr]
            for each in self._keyed
        ]
        # The numbers of those that no shape hangs on.
        self._loose = [
            number for number, each in enumerate(self._keyed) if hasattr(each, "raw") or not is_kept(each)
        ]
        # The keys of each filter so far, until they are too many.
        self._keys: dict[str, set[Hashable]] = {}
        self._known: dict[tuple[Hashable, ...], Parts] = {}

    def parts(self, request: SchedulingRequest) -> Parts:
        """The parts of all plugins. Raises: `SchedulerFault` if one cannot tell its key."""
        keys = self._ask(request)
        told = [*keys]
        for number in self._loose:
            told[number] = keys[number] is not None
        hung = tuple(told)
        parts = self._known.get(hung)
        if parts is None:
            if len(self._known) == _MOST_PARTS:
                self._known.clear()
            parts = self._known[hung] = self._tell(keys)
        if parts.varied:
            judged = list(parts.judged)
            for place, number in parts.varied:
                judged[place] = judged[place]._replace(key=keys[number])
            parts = parts._replace(judged=judged)
        return parts

    def _ask(self, request: SchedulingRequest) -> tuple[Hashable | None, ...]:
        try:
            keys = tuple([key(request) for key in self._key_of])
            hash(keys)
        except SchedulerError:
            raise
        except Exception:
            # Which of them it is, is found by asking each of them again.
            return tuple([ask_key(each, request) for each in self._keyed])
        return keys

    def _tell(self, keys: Sequence[Hashable | None]) -> Parts:
        number_of = {id(each): number for number, each in enumerate(self._keyed)}
        judged: list[Judged] = []
        varied: list[tuple[int, int]] = []
        for place, plugin in enumerate(self._filters):
            number = number_of.get(id(plugin), -1)
            key, kept = None if number < 0 else keys[number], is_kept(plugin)
            role = Role.KEPT if kept else Role.ASKED
            if number >= 0 and key is None:
                role = Role.SILENT
            elif key is not None and kept and self._is_varied(plugin, key):
                role = Role.VARIED
                if number not in self._loose:
                    self._loose.append(number)
                varied.append((place, number))
            judged.append(Judged(plugin, role, key, depends_on_claims(plugin)))
        shaping = [each for each in judged if each.role is Role.KEPT]
        return Parts(
            judged,
            tuple((each.plugin.name, each.key) for each in shaping if each.key),
            [(stage, each.plugin) for stage, each in enumerate(shaping, 1) if each.again],
            any(each.role in (Role.ASKED, Role.VARIED) for each in judged),
            [
                (rank, each)
                for rank, each in self._own
                if id(each) not in number_of or keys[number_of[id(each)]] is not None
            ],
            varied,
        )

    def _is_varied(self, plugin: Filter, key: Hashable) -> bool:
        """Whether a filter has had more keys than shapes should hang on."""
        keys = self._keys.setdefault(plugin.name, set())
        if len(keys) <= MOST_KEYS:
            keys.add(key)
        return len(keys) > MOST_KEYS
