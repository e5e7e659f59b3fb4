"""The JSON of candidates, written directly from rows of the fleet.

The candidates of one query differ only in the providers that they name. So there is a template for each
*pattern*, the partition of the query's needs into needs with the same provider, and a candidate is the
template of its pattern filled with uuids.
"""

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.choices import FEW, Choice, FoundChoices, Need
from roost.fleet.columns import Rows
from roost.fleet.work import CANDIDATE
from roost.model.allocation import Candidate, Resources
from roost.placement.wire.microversions import ByVersion, Since
from roost.placement.wire.provider_texts import QUOTED, Bytes, ProviderTexts, SummaryContent, quoted


class Shape(Enum):
    """The JSON form of a candidate's providers, which depends on the microversion."""

    LIST = "a list of providers"
    KEYED = "by uuid"
    MAPPED = "by uuid, and which groups each serves"


SHAPES = ByVersion({0: Shape.LIST, 12: Shape.KEYED, 34: Shape.MAPPED})

_SAID = 8
"""Amounts and suffixes in the text of a candidate that cost one unit of work; each need costs one more."""

_TEMPLATE = 50
"""Units of work of a pattern of candidates, beside eight for each need."""

_GAP = "\0"
"""Marks the place of a uuid in a text. JSON has no unescaped NUL."""

_Part = tuple[bytes, Callable[[Sequence[bytes]], Sequence[bytes]] | None]
"""A text with ``%b`` for some uuids, and the function that picks them from the uuids of all needs, if any."""


class _Template(NamedTuple):
    """The text of candidates with one pattern, cut where it names the provider of the last need.

    ``parts``: the texts before, between and after these places. ``last_is_shared``: the provider of the last
    need serves another need, too. ``text``: the whole text with `QUOTED` bytes for each uuid, and ``gaps``:
    where each of them begins, and the need whose provider it names.
    """

    parts: tuple[_Part, ...]
    last_is_shared: bool
    text: bytes
    gaps: tuple[tuple[int, int], ...]


class CandidateTexts(NamedTuple):
    """Candidates and the summaries of their providers as JSON, each in parts.

    A response of a megabyte is joined once, from parts that are mostly cached: each further copy of it would
    take as long as finding the candidates.
    """

    requests: Sequence[bytes | memoryview]
    summaries: Sequence[bytes]

    def document(self) -> bytes:
        """Return the whole response."""
        return b"".join(
            (b'{"allocation_requests":', *self.requests, b',"provider_summaries":', *self.summaries, b"}")
        )


_MOST_NEEDS = 8
"""Needs of a template that is cached at most: the text of one grows with them."""

_MOST_TEMPLATES = 2_000
"""Templates that are cached at most, of some hundred bytes each. With more, the cache is emptied."""

_TEMPLATES: dict[Hashable, _Template] = {}
"""Templates by form, pattern, and suffixes and amounts of the needs."""


def weight_of(needs: Sequence[Need]) -> int:
    """Return the units of work of a candidate in a response: its text grows with the needs."""
    said = sum(len(need.resources) + len(need.suffixes) for need in needs)
    return len(needs) + said // _SAID


def candidates_text(
    fleet: Fleet, needs: Sequence[Need], found: FoundChoices, texts: ProviderTexts, shape: Shape
) -> tuple[bytes | memoryview, ...]:
    """Encode the member ``allocation_requests``, a JSON array in parts. Raises `TooMuchWork`.

    The caller counts the work of the candidates, by `weight_of`; this function counts that of templates.
    """
    if len(needs) <= _MOST_NEEDS and len(found) > FEW:
        pattern = _only_pattern(found.rows)
        quoted_uuids = None if pattern is None else texts.columns(found.rows)
        if pattern is not None and quoted_uuids is not None:
            fleet.meter.spend(_TEMPLATE + 8 * len(needs))
            return b"[", _filled(_cached_template(needs, pattern, shape), quoted_uuids), b"]"
    return b"[", b",".join(_one_by_one(fleet, needs, found.choices, texts, shape)), b"]"


def _only_pattern(rows: Rows) -> tuple[int, ...] | None:
    """Return the pattern of all candidates, () if each need has its own provider; None if there are several.

    ``rows``: intp[candidates, needs].
    """
    needs = rows.shape[1]
    if needs == 1:
        return ()
    pattern = []
    for need in range(needs):
        first = (rows[:, : need + 1] == rows[:, need, None]).argmax(axis=1)
        if (first != first[0]).any():
            return None
        pattern.append(first.item(0))
    return () if pattern == list(range(needs)) else tuple(pattern)


def _filled(template: _Template, quoted_uuids: Bytes) -> memoryview:
    """Write all candidates of one pattern at once, with commas between them.

    Their texts are equally long, so they are the rows of one array. ``quoted_uuids``: of the providers,
    uint8[candidates, needs, QUOTED].
    """
    text = np.frombuffer(template.text, dtype=np.uint8)
    made = np.empty((len(quoted_uuids), len(text) + 1), dtype=np.uint8)
    made[:, :-1] = text
    made[:, -1] = ord(",")
    for start, need in template.gaps:
        made[:, start : start + QUOTED] = quoted_uuids[:, need]
    return made.reshape(-1)[:-1].data


def _one_by_one(
    fleet: Fleet, needs: Sequence[Need], found: Sequence[Choice], texts: ProviderTexts, shape: Shape
) -> list[bytes]:
    """Write candidates of any patterns. Raises `TooMuchWork`.

    Consecutive candidates mostly differ only in the last provider. The text of such a candidate is the text
    before it with another uuid.
    """
    uuid_of = texts.uuids.__getitem__
    templates: dict[tuple[int, ...], _Template] = {}
    described: list[bytes] = []
    append = described.append
    before: tuple[int, ...] | None = None
    around_last: list[bytes] = []
    for _, rows in found:
        last = rows[-1]
        if rows[:-1] == before and last not in before:
            append(uuid_of(last).join(around_last))
            continue
        # In most candidates each need has its own provider, which is cheaper to check than the pattern.
        pattern = () if len(set(rows)) == len(rows) else tuple(map(rows.index, rows))
        template = templates.get(pattern)
        if template is None:
            fleet.meter.spend(_TEMPLATE + 8 * len(needs))
            template = templates[pattern] = _cached_template(needs, pattern, shape)
        uuids = [*map(uuid_of, rows)]
        around_last = [text if chosen is None else text % chosen(uuids) for text, chosen in template.parts]
        append(uuids[-1].join(around_last))
        before = None if template.last_is_shared else rows[:-1]
    return described


def _cached_template(needs: Sequence[Need], pattern: tuple[int, ...], shape: Shape) -> _Template:
    """Return a template; that of few needs is cached, as schedulers repeat a few flavors.

    ``pattern``: empty if each need has its own provider.
    """
    full = pattern or tuple(range(len(needs)))
    if len(needs) > _MOST_NEEDS:
        return _template(needs, full, shape)
    key = (shape, pattern, *[(need.suffixes, *need.resources.items()) for need in needs])
    template = _TEMPLATES.get(key)
    if template is None:
        if len(_TEMPLATES) >= _MOST_TEMPLATES:
            _TEMPLATES.clear()
        template = _TEMPLATES[key] = _template(needs, full, shape)
    return template


def _template(needs: Sequence[Need], pattern: tuple[int, ...], shape: Shape) -> _Template:
    """Make the template of a pattern: for each need, the index of the first need with the same provider."""
    text, places = _uncut(needs, pattern, shape)
    first, *others = text.split(_GAP)
    parts: list[_Part] = []
    pieces, chosen = [first], list[int]()
    for place, piece in zip(places, others, strict=True):
        if place == pattern[-1]:
            parts.append(_part(pieces, chosen))
            pieces, chosen = [piece], []
        else:
            pieces.append(piece)
            chosen.append(place)
    parts.append(_part(pieces, chosen))
    lengths = accumulate(len(piece.encode()) + QUOTED for piece in (first, *others[:-1]))
    gaps = tuple((end - QUOTED, place) for end, place in zip(lengths, places, strict=True))
    whole = text.replace(_GAP, " " * QUOTED).encode()
    return _Template(tuple(parts), pattern[-1] != len(pattern) - 1, whole, gaps)


def _part(pieces: Sequence[str], chosen: Sequence[int]) -> _Part:
    if not chosen:
        return pieces[0].encode(), None
    # For one index an itemgetter returns the uuid itself, which `%` takes as well as a tuple.
    return "%b".join(piece.replace("%", "%%") for piece in pieces).encode(), itemgetter(*chosen)


def _uncut(needs: Sequence[Need], pattern: tuple[int, ...], shape: Shape) -> tuple[str, tuple[int, ...]]:
    """Return the text with `_GAP` for each uuid, and for each gap the index of a need with its provider."""
    allocations: dict[int, Resources] = {}
    mappings: dict[str, list[int]] = {}
    for need, provider in zip(needs, pattern, strict=True):
        for suffix in need.suffixes:
            serving = mappings.setdefault(suffix, [])
            if provider not in serving:
                serving.append(provider)
        if need.resources:
            held = allocations.setdefault(provider, {})
            for name, amount in need.resources.items():
                held[name] = held.get(name, 0) + amount
    named = list(allocations)
    resources = [msgspec.json.encode(held).decode() for held in allocations.values()]
    if shape is Shape.LIST:
        listed = ",".join(
            f'{{"resource_provider":{{"uuid":{_GAP}}},"resources":{each}}}' for each in resources
        )
        return f'{{"allocations":[{listed}]}}', tuple(named)
    listed = ",".join(f'{_GAP}:{{"resources":{each}}}' for each in resources)
    if shape is Shape.KEYED:
        return f'{{"allocations":{{{listed}}}}}', tuple(named)
    mapped = ",".join(
        f"{quoted(suffix)}:[{','.join([_GAP] * len(serving))}]" for suffix, serving in mappings.items()
    )
    named += [provider for serving in mappings.values() for provider in serving]
    return f'{{"allocations":{{{listed}}},"mappings":{{{mapped}}}}}', tuple(named)


def summaries_text(
    fleet: Fleet, needs: Sequence[Need], found: FoundChoices, texts: ProviderTexts, version: int
) -> list[bytes]:
    """Encode the member ``provider_summaries``, a JSON object in parts.

    It has the providers that candidates allocate from; from 1.29, all providers of their trees.
    """
    asked = dict.fromkeys(name for need in needs for name in need.resources)
    content = SummaryContent(
        classes=None if version >= Since.SUMMARY_OF_ALL_CLASSES else tuple(asked),
        traits=version >= Since.SUMMARY_TRAITS,
        tree=version >= Since.CANDIDATES_IN_TREES,
    )
    taken = [place for place, need in enumerate(needs) if need.resources]
    in_trees = version >= Since.CANDIDATES_IN_TREES and fleet.has_trees
    if in_trees and taken and not len(fleet.sharing()):
        # Each candidate has allocations, all of them from the tree of its anchor.
        return texts.summaries_of_trees(fleet, found.anchors(), content)
    rows = found.providers(taken)
    if in_trees:
        return texts.summaries_of_trees(fleet, np.unique(fleet.root[rows]).tolist(), content)
    return texts.summaries(fleet, rows, content)


def describe_candidates(
    fleet: Fleet, needs: Sequence[Need], found: FoundChoices, texts: ProviderTexts, version: int
) -> CandidateTexts:
    """Return the response with candidates at a microversion. Raises `TooMuchWork`."""
    texts.bring_to(fleet)
    candidates = candidates_text(fleet, needs, found, texts, SHAPES.at(version))
    return CandidateTexts(candidates, summaries_text(fleet, needs, found, texts, version))


def describe_split_candidates(
    fleet: Fleet, found: Sequence[Candidate], texts: ProviderTexts
) -> CandidateTexts:
    """Return the same for candidates of a query that allows a split, at the latest microversion."""
    texts.bring_to(fleet)
    fleet.meter.spend(sum(CANDIDATE * (1 + len(each.allocations)) for each in found))
    requests = [
        {
            "allocations": {provider: {"resources": held} for provider, held in each.allocations.items()},
            "mappings": each.mappings,
        }
        for each in found
    ]
    roots = {fleet.root.item(fleet.row(provider)) for each in found for provider in each.allocations}
    summaries = texts.summaries_of_trees(fleet, sorted(roots), SummaryContent(None, True, True))
    return CandidateTexts((msgspec.json.encode(requests),), summaries)
