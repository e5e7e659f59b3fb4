"""The JSON of candidates, written directly from rows of the fleet.

The candidates of one query differ only in the providers that they name. So there is a template for each
*pattern*, the partition of the query's needs into needs with the same provider, and a candidate is the
template of its pattern filled with uuids.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.choices import Choice, Need
from roost.model.allocation import Resources
from roost.placement.wire.microversions import ByVersion, Since
from roost.placement.wire.provider_texts import ProviderTexts, SummaryContent, quoted


class Shape(Enum):
    """The JSON form of a candidate's providers, which depends on the microversion."""

    LIST = "a list of providers"
    KEYED = "by uuid"
    MAPPED = "by uuid, and which groups each serves"


SHAPES = ByVersion({0: Shape.LIST, 12: Shape.KEYED, 34: Shape.MAPPED})

_GAP = "\0"
"""Marks the place of a uuid in a text. JSON has no unescaped NUL."""

_Template = tuple[str, tuple[int, ...]]
"""A text with ``%s`` for each uuid, and for each ``%s`` the index of the need whose provider it names."""


def candidates_text(
    needs: Sequence[Need], found: Iterable[Choice], texts: ProviderTexts, shape: Shape
) -> str:
    """The member ``allocation_requests``, a JSON array.

    Consecutive candidates mostly differ only in the last provider. The text of such a candidate is the text
    before it with another uuid.
    """
    templates: dict[tuple[int, ...], _Template] = {}
    uuids = texts.uuids
    described = []
    before: tuple[int, ...] | None = None
    around_last: list[str] = []
    for _, rows in found:
        *_, last = rows
        if rows[:-1] == before and last not in before:
            described.append(uuids[last].join(around_last))
            continue
        # In most candidates each need has a provider of its own, which is cheaper to see than the pattern.
        pattern = () if len(set(rows)) == len(rows) else tuple(map(rows.index, rows))
        if pattern not in templates:
            templates[pattern] = _template(needs, pattern or tuple(range(len(needs))), shape)
        template, places = templates[pattern]
        if last in rows[:-1]:
            described.append(template % tuple([uuids[rows[place]] for place in places]))
            continue
        before = rows[:-1]
        around_last = (
            template % tuple([_GAP if rows[place] == last else uuids[rows[place]] for place in places])
        ).split(_GAP)
        described.append(uuids[last].join(around_last))
    return f"[{','.join(described)}]"


def _template(needs: Sequence[Need], pattern: tuple[int, ...], shape: Shape) -> _Template:
    """The template of a pattern, which has for each need the index of the first need with its provider."""
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
    resources = [msgspec.json.encode(held).decode().replace("%", "%%") for held in allocations.values()]
    if shape is Shape.LIST:
        listed = ",".join(f'{{"resource_provider":{{"uuid":%s}},"resources":{each}}}' for each in resources)
        return f'{{"allocations":[{listed}]}}', tuple(named)
    listed = ",".join(f'%s:{{"resources":{each}}}' for each in resources)
    if shape is Shape.KEYED:
        return f'{{"allocations":{{{listed}}}}}', tuple(named)
    mapped = ",".join(
        f"{quoted(suffix).replace('%', '%%')}:[{','.join(['%s'] * len(serving))}]"
        for suffix, serving in mappings.items()
    )
    named += [provider for serving in mappings.values() for provider in serving]
    return f'{{"allocations":{{{listed}}},"mappings":{{{mapped}}}}}', tuple(named)


def summaries_text(
    fleet: Fleet, needs: Sequence[Need], found: Iterable[Choice], texts: ProviderTexts, version: int
) -> str:
    """The member ``provider_summaries``, a JSON object.

    It has the providers that candidates allocate from; from 1.29, all providers of their trees.
    """
    rows: set[int] = set()
    if all(need.resources for need in needs):
        rows.update(*[choice[1] for choice in found])
    else:
        taken = [place for place, need in enumerate(needs) if need.resources]
        rows.update(choice[1][place] for choice in found for place in taken)
    asked = dict.fromkeys(name for need in needs for name in need.resources)
    content = SummaryContent(
        classes=None if version >= Since.SUMMARY_OF_ALL_CLASSES else tuple(asked),
        traits=version >= Since.SUMMARY_TRAITS,
        tree=version >= Since.CANDIDATES_IN_TREES,
    )
    if version >= Since.CANDIDATES_IN_TREES and fleet.has_trees:
        roots = np.unique(fleet.root[np.fromiter(rows, dtype=np.intp, count=len(rows))])
        return texts.summaries_of_trees(fleet, roots.tolist(), content)
    return texts.summaries(fleet, sorted(rows), content)


def describe_candidates(
    fleet: Fleet, needs: Sequence[Need], found: Sequence[Choice], texts: ProviderTexts, version: int
) -> dict[str, msgspec.Raw]:
    """The members of the answer with candidates at a microversion."""
    texts.bring_to(fleet)
    candidates = candidates_text(needs, found, texts, SHAPES.at(version))
    summaries = summaries_text(fleet, needs, found, texts, version)
    return {
        "allocation_requests": msgspec.Raw(candidates.encode()),
        "provider_summaries": msgspec.Raw(summaries.encode()),
    }
