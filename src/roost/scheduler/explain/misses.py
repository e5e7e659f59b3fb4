"""Near misses of a request: hosts that one condition alone excludes, in the query or among filters."""

from collections.abc import Sequence

from roost.fleet.columns import Bools
from roost.model.reasons import Miss
from roost.model.secrets import redacted_text
from roost.scheduler.explain.phrases import negated
from roost.scheduler.explain.snapshot import Condition, NearHosts
from roost.scheduler.explain.survey import Survey
from roost.scheduler.plugins.plugin_calls import fault
from roost.scheduler.plugins.plugins import Filter, Lack

UNMEASURED = 0.5
"""The distance of a host that fails a condition without a measure."""

MOST_ASKED = 20
"""Hosts of one condition about which a filter is asked, to find the nearest ones."""


def near(survey: Survey, each: int) -> list[NearHosts]:
    """Return the conditions that some host fails alone, with at most ``each`` hosts of each.

    Also sets the ``sole`` of constraints of the query.
    """
    found = []
    for hosts in survey.trees.near(survey.passing(), each):
        if hosts.misses:
            found.append(hosts)
        if survey.time_limit.over():
            survey.complete = False
            break
    return [*found, *_of_others(survey, each)]


def nearest(found: list[NearHosts], most: int) -> tuple[Miss, ...]:
    """Return the nearest misses of all conditions."""
    misses = sorted((miss for one in found for miss in one.misses), key=lambda miss: miss.distance)
    return tuple(misses[:most])


def _of_others(survey: Survey, each: int) -> list[NearHosts]:
    found = []
    for condition in survey.conditions:
        if condition.kind == "query":
            continue
        positions = survey.positions(survey.failing_only(condition))[:MOST_ASKED]
        lacks = [(_lack(survey, condition, position), position) for position in positions]
        lacks.sort(key=lambda pair: pair[0].distance)
        misses = [
            Miss(
                host=survey.name(position),
                kind=condition.kind,
                name=condition.name,
                text=lack.text,
                distance=round(lack.distance, 4),
            )
            for lack, position in lacks[:each]
        ]
        if misses:
            index = [survey.index.item(position) for _, position in lacks[:each]]
            found.append(NearHosts(condition, misses, index))
    return found


def nearest_positions(survey: Survey, conditions: Sequence[Condition], among: Bools, most: int) -> list[int]:
    """Return the positions of the ``most`` hosts that lack least, by the filters of some conditions."""
    positions = survey.positions(among)[:MOST_ASKED]

    def distance(position: int) -> float:
        failed = [
            each
            for each in conditions
            if bool((each.removed if each.failing is None else each.failing)[position])
        ]
        return max(_lack(survey, each, position).distance for each in failed)

    return sorted(positions, key=distance)[:most]


def nearest_removed(survey: Survey, condition: Condition) -> Miss | None:
    """Return the host that lacks least of a filter that removes it, where each host fails another one as
    well."""
    if not isinstance(condition.subject, Filter) or condition.subject.lack is None:
        return None
    positions = survey.positions(condition.removed & survey.is_host)[:MOST_ASKED]
    lacks = [(_lack(survey, condition, position), position) for position in positions]
    lack, position = min(lacks, key=lambda pair: pair[0].distance)
    return Miss(
        host=survey.name(position),
        kind=condition.kind,
        name=condition.name,
        text=lack.text,
        distance=round(lack.distance, 4),
    )


def _lack(survey: Survey, condition: Condition, position: int) -> Lack:
    plugin = condition.subject
    said: Lack | None = None
    if isinstance(plugin, Filter) and plugin.lack is not None:
        try:
            said = plugin.lack(survey.one(position), survey.request, survey.progress)
        except Exception as error:
            # An explanation does not fail because a plugin cannot explain itself.
            said = Lack(str(fault(plugin, None, error)))
    if said is None:
        said = Lack(negated(condition.words), UNMEASURED)
    return Lack(redacted_text(said.text), min(1.0, max(0.0, said.distance)))
