"""The keys of one request that nothing reads, and those that can only be a mistake."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Any, Final, NamedTuple

from roost.model.spec import RequestSpec, UnreadKey, Where
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.keys.key import NUMBER, Key, meant
from roost.scheduler.request.keys.known import CONDUCTOR, NOVA, KnownKey, current_name, earlier_names
from roost.scheduler.request.keys.readers import Readers, all_known
from roost.scheduler.request.places import is_forced

_NAMES: Final[dict[Where, str]] = {
    "extra_spec": "extra spec",
    "image_property": "image property",
    "hint": "scheduler hint",
}
_FAMILIES: Final = ("hw:numa_cpus.", "hw:numa_mem.", "hw_numa_cpus.", "hw_numa_mem.")
MOST_KEYS: Final = 128
"""Most extra specs, image properties and hints of one request that are judged, in the event loop.
`KeyJudge.check` refuses a request with more."""

_LONGEST_KEY: Final = 100
"""Characters of a name that count in the search for similar keys; no known key is as long."""

_MOST_KEPT: Final = 1_000
_LONGEST_KEPT: Final = 8_000
"""Most characters of the keys and values of a request whose judgement is cached."""


_ToAsk = tuple[Where, str, tuple[Callable[[str, RequestSpec, NodeTable], str | None], ...], str]


class _Judged(NamedTuple):
    """The judgement of the keys of one request.

    ``unread``: keys that nothing reads. ``mistakes``: texts for which the request is refused. ``to_ask``:
    keys whose effect depends on the hosts and the rest of the request, so that the ``no_effect`` of their
    readers must be asked; each with a hint at the key that may have been meant.
    """

    unread: tuple[UnreadKey, ...] = ()
    mistakes: tuple[str, ...] = ()
    to_ask: tuple[_ToAsk, ...] = ()


_NOTHING: Final = _Judged()


class KeyJudge:
    """Judges the keys of requests, with a cache for requests that are alike."""

    def __init__(self, options: SchedulerOptions, plugins: Plugins) -> None:
        self._readers = Readers(options, plugins)
        self._refuses = options.keys.unread_keys == "refuse"
        self._kept: dict[tuple[Any, ...], _Judged] = {}

    def unread(self, spec: RequestSpec, table: NodeTable, *, of_nova: bool = False) -> tuple[UnreadKey, ...]:
        """Return the keys of a request that have no effect; none if it has more than `MOST_KEYS`.

        ``of_nova``: the request comes from Nova, whose drivers read keys too.
        """
        judged = self._judged(spec, of_nova)
        if not judged.to_ask:
            return judged.unread
        asked = []
        for where, name, readers, hint in judged.to_ask:
            reasons = [no_effect(name, spec, table) for no_effect in readers]
            if all(reasons):
                why = f"{reasons[0]}{hint}"
                asked.append(UnreadKey(where, name, f"{_named(where, name)} has no effect: {why}"))
        return (*judged.unread, *asked)

    def check(self, spec: RequestSpec, table: NodeTable) -> tuple[UnreadKey, ...]:
        """As `unread`, for a request that is refused if a key can only be a mistake.

        Raises:
            BadRequestSpec: a key is one edit from a known one, or has an invalid value; or, by option, a key
                has no effect. Or there are more keys than `MOST_KEYS`.
        """
        if (number := _number_of_keys(spec)) > MOST_KEYS:
            raise BadRequestSpec(
                f"{number} extra specs, image properties and scheduler hints, at most {MOST_KEYS} may be"
            )
        judged = self._judged(spec, of_nova=False)
        if judged.mistakes:
            raise BadRequestSpec("; ".join(judged.mistakes))
        unread = self.unread(spec, table)
        if unread and self._refuses:
            raise BadRequestSpec("; ".join(each.text for each in unread))
        return unread

    def _judged(self, spec: RequestSpec, of_nova: bool) -> _Judged:
        extra_specs, properties, hints = spec.flavor.extra_specs, spec.image_properties, spec.scheduler_hints
        if not 0 < _number_of_keys(spec) <= MOST_KEYS:
            return _NOTHING
        key = (
            tuple(extra_specs.items()),
            tuple(properties.items()),
            tuple(hints.items()),
            is_forced(spec),
            spec.group is not None,
            spec.flavor.name,
            of_nova,
        )
        judged = self._kept.get(key)
        if judged is None:
            judged = _Judging(self._readers, spec, of_nova).judged()
            if _length(extra_specs, properties) + _length_of_hints(hints) <= _LONGEST_KEPT:
                if len(self._kept) == _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = judged
        return judged


class _Judging:
    """Judges one request without reading the hosts."""

    def __init__(self, readers: Readers, spec: RequestSpec, of_nova: bool) -> None:
        self._readers = readers
        self._spec = spec
        self._of_nova = of_nova
        self._forced = is_forced(spec)
        self._unread: list[UnreadKey] = []
        self._mistakes: list[str] = []
        self._to_ask: list[_ToAsk] = []

    def judged(self) -> _Judged:
        spec = self._spec
        for name, value in spec.flavor.extra_specs.items():
            self._judge("extra_spec", name, value)
        for name in spec.image_properties:
            self._judge("image_property", name)
        for name, values in spec.scheduler_hints.items():
            self._judge("hint", name, empty=values in ((), ("",)))
        self._judge_families()
        return _Judged(tuple(self._unread), tuple(self._mistakes), tuple(self._to_ask))

    def _judge(self, where: Where, name: str, value: str | None = None, *, empty: bool = False) -> None:
        known = list(_known(where, current_name(where, name)))
        for each in known:
            if value is not None and each.form is not None and not each.form.allows(value):
                self._mistakes.append(f"flavor {self._spec.flavor.name}: {name}={value!r} {each.form.text}")
        if empty or self._readers.is_made_known(name):
            return
        readers = list(self._readers.plugins_of(where, current_name(where, name)))
        if self._forced:
            readers = [each for each in readers if each.name not in self._readers.filters]
        names = {each.name for each in readers}
        if self._is_read(known, beside=names):
            return
        if readers:
            asked = tuple(each.no_effect for each in readers if each.no_effect is not None)
            if len(asked) == len(readers):
                self._to_ask.append((where, name, asked, _hint(_meant(where, name))))
            return
        certain = [each for each in known if each.key.fixed]
        if certain:
            self._tell(where, name, self._reason(certain))
        else:
            self._judge_unknown(where, name, known)

    def _is_read(self, known: Sequence[KnownKey], beside: Set[str]) -> bool:
        """Return whether the key has a reader other than the plugins ``beside``."""
        readers = {reader for each in known for reader in each.readers} - beside
        return any(map(self._is_active, readers))

    def _is_active(self, reader: str) -> bool:
        if reader == CONDUCTOR:
            return self._spec.group is not None
        if reader.startswith(NOVA):
            return self._of_nova
        return reader in self._readers.active and not (self._forced and reader in self._readers.filters)

    def _reason(self, known: Sequence[KnownKey]) -> str:
        readers = dict.fromkeys(reader for each in known for reader in each.readers)
        if self._forced and any(reader in self._readers.filters for reader in readers):
            return "no filter judges a host that is forced"
        if CONDUCTOR in readers:
            return "the request has no server group, which a conductor finds by it"
        here = [each for each in readers if not each.startswith(NOVA)]
        if here:
            return f"only {' or '.join(here)} would read it, which is not switched on"
        return f"it is for {' and '.join(readers)}"

    def _judge_unknown(self, where: Where, name: str, families: Sequence[KnownKey]) -> None:
        if (form := _broken(where, name)) is not None:
            self._mistakes.append(f"{_named(where, name)} is unknown: write {form}")
            return
        close = _meant(where, name)
        silent = self._readers.silent
        if close is not None and not (silent and ":" not in name):
            self._mistakes.append(f"{_named(where, name)} is unknown: did you mean {close}?")
        why = self._reason(families) if families else "nothing is known to read it"
        said = f"; {' and '.join(silent)} may read it, and does not say what it reads" if silent else ""
        self._tell(where, name, f"{why}{_hint(close)}{said}")

    def _judge_families(self) -> None:
        """Judge keys with a NUMA node's number: from 0 on, keys after a missing number have no effect."""
        for names in (self._spec.flavor.extra_specs, self._spec.image_properties):
            for family in _FAMILIES:
                found = [
                    int(number)
                    for name in names
                    if name.startswith(family) and re.fullmatch(NUMBER, number := name.removeprefix(family))
                ]
                gap = next((n for n in range(len(found)) if n not in found), None)
                if gap is not None:
                    self._mistakes.append(f"{family}{max(found)} is given without {family}{gap}")

    def _tell(self, where: Where, name: str, why: str) -> None:
        self._unread.append(UnreadKey(where, name, f"{_named(where, name)} has no effect: {why}"))


def _number_of_keys(spec: RequestSpec) -> int:
    return len(spec.flavor.extra_specs) + len(spec.image_properties) + len(spec.scheduler_hints)


def _length(*some: Mapping[str, str]) -> int:
    return sum(len(name) + len(value) for each in some for name, value in each.items())


def _length_of_hints(hints: Mapping[str, Sequence[str]]) -> int:
    return sum(len(name) + sum(map(len, values)) for name, values in hints.items())


@cache
def _known_by_name(where: Where) -> tuple[Mapping[str, Sequence[KnownKey]], Sequence[KnownKey]]:
    """Return the known keys without a parameter by their names, and those with one."""
    whole: dict[str, list[KnownKey]] = {}
    families: list[KnownKey] = []
    for each in all_known():
        if each.key.where == where:
            (families if each.key.parameter else whole.setdefault(each.key.fixed, [])).append(each)
    return whole, families


def _known(where: Where, name: str) -> Iterator[KnownKey]:
    """Yield the known keys that match a name, keys without a parameter first."""
    whole, families = _known_by_name(where)
    yield from whole.get(name, ())
    yield from (each for each in families if each.key.matches(name))


def _named(where: Where, name: str) -> str:
    return f"{_NAMES[where]} {name}"


@cache
def _comparable(where: Where, size: int) -> Sequence[Key]:
    """Return the known keys that a name of ``size`` characters may be a misspelling of."""
    known = (each.key for each in all_known())
    of_place = (key for key in (*known, *earlier_names()) if key.where == where)
    return [key for key in of_place if key.parameter or -1 <= len(key.fixed) - size <= 1]


def _meant(where: Where, name: str) -> str | None:
    return meant(name, _comparable(where, min(len(name), _LONGEST_KEY)))


def _hint(close: str | None) -> str:
    return "" if close is None else f" (did you mean {close}?)"


def _broken(where: Where, name: str) -> str | None:
    """Return the form of a key with a parameter if a name has its fixed part and no valid parameter."""
    for key in (each.key for each in _known_by_name(where)[1]):
        end = key.fixed[-1:]
        if end in (":", ".") and f"{name}{end}".startswith(key.fixed):
            return key.shown
    return None
