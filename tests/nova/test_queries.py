"""Candidate queries against those of Nova's ``ResourceRequest`` and request filters.

What may differ is in the table of docs/differences.md; `REFUSED` and `OTHER` say when each row applies.
"""

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.placement.client.query import query_parameters
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.options import RequestFilterOptions, SchedulerOptions, Workarounds
from roost.scheduler.request.accelerator_options import AcceleratorOptions, ProfileGroup
from roost.scheduler.request.demand.accelerators import with_accelerator_groups
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import PlacementQueries
from support.nova import ROOT, Nova, NovaError
from support.nova_requests import CLASSES, Cloud, clouds, filter_options, plain, requests
from support.nova_tables import table_of

PROFILES = AcceleratorOptions({"fpga": (ProfileGroup({"FPGA": 1}), ProfileGroup({"CUSTOM_FPGA": 2}))})

Parameters = list[tuple[str, list[str]]]
"""The parameters of a query, sorted; values with commas as sorted lists."""


def _refused_by_placement(spec: RequestSpec, asked: Parameters) -> bool:
    """Whether Nova's query is one that placement answers with 400."""
    names = dict(asked)
    granular = [name for name in names if re.fullmatch("resources.+", name)]
    together = [set(values) for name, values in asked if name == "same_subtree"]
    for name, values in asked:
        if name.startswith("resources") and values == [""]:
            return True
        if name.startswith(("required", "root_required")):
            wanted = {each for each in values if not each.startswith("!")}
            if wanted & {each.removeprefix("!") for each in values if each.startswith("!")}:
                return True
    if any(f"resources{suffix}" not in names for suffixes in together for suffix in suffixes):
        return True
    return (len(granular) > 1 and "group_policy" not in names) or not any(
        name.startswith("resources") for name in names
    )


REFUSED = {
    "an amount that is no number": "is not a number",
    "a trait that is neither required nor forbidden": "is neither required nor forbidden",
    "an unknown `group_policy`": "is neither isolate nor none",
}
"""Row of the table -> what Roost says when it refuses such a request, which Nova does not refuse."""

OTHER: dict[str, Callable[[RequestSpec, Cloud], bool]] = {
    "an unknown resource class": lambda spec, _: any(
        key.startswith("resources") and key.partition(":")[2] not in CLASSES
        for key in spec.flavor.extra_specs
    ),
    "the default availability zone": lambda spec, _: spec.availability_zone == "nova",
    "several forced hosts or nodes": lambda spec, _: len(spec.force_hosts) > 1 or len(spec.force_nodes) > 1,
    "a project's id under another key beside `filter_tenant_id`": lambda spec, cloud: any(
        any(key.startswith("filter_tenant_id") and value != spec.project_id for key, value in said.items())
        and spec.project_id in said.values()
        for said in (aggregate["metadata"] for aggregate in cloud.aggregates)
    ),
}
"""Row of the table -> whether it applies to a request, for which the queries may differ."""


UNKNOWN_VALUE = "is invalid"
"""What Nova says of a property with a value that there is not, whether or not the value is needed."""


def canonical(query: str) -> Parameters:
    """A query string in a form that equal queries share."""
    found = sorted(
        (name, sorted(set(value.split(",")))) for name, value in parse_qsl(query, keep_blank_values=True)
    )
    granular = [name for name, _ in found if re.fullmatch("resources.+", name)]
    # Placement reads the policy for several groups only.
    return [each for each in found if each[0] != "group_policy" or len(granular) > 1]


def rendered(query: CandidateQuery, limit: int | None) -> Parameters:
    """Our query as its query string would be."""
    found = [(name, sorted(set(value.split(",")))) for name, value in query_parameters(query)]
    if sum(group.granular for group in query.groups) < 2:
        found = [each for each in found if each[0] != "group_policy"]
    if limit is not None:
        found.append(("limit", [str(limit)]))
    return sorted(found)


def ours(spec: RequestSpec, cloud: Cloud, filters: RequestFilterOptions, fallback: bool) -> PlacementQueries:
    options = SchedulerOptions(
        request_filters=filters,
        workarounds=Workarounds(disable_fallback_pcpu_query=not fallback),
        accelerators=PROFILES,
    )
    segments = {segment: frozenset(aggregates) for segment, aggregates in cloud.segments.items()}
    return placement_queries(spec, FilterFacts(table_of(cloud), options, aggregates=segments))


def compare(
    nova: Nova, spec: RequestSpec, cloud: Cloud, filters: RequestFilterOptions, fallback: bool
) -> None:
    if any(applies(spec, cloud) for applies in OTHER.values()):
        return
    refused = ""
    try:
        found = ours(spec, cloud, filters, fallback)
    except BadRequestSpec as error:
        refused = str(error)
        if any(text in refused for text in REFUSED.values()):
            return
    try:
        strings = nova.ask(
            "queries",
            "query_strings",
            # Nova's API has asked Cyborg for the groups before.
            spec=plain(with_accelerator_groups(spec, SchedulerOptions(accelerators=PROFILES))),
            cloud=asdict(cloud),
            options=plain(filters),
            fallback=fallback,
        )
    except NovaError as error:
        assert refused or UNKNOWN_VALUE in str(error), f"Nova refuses: {error}"
        return
    first = canonical(strings[0])
    if refused:
        if nova.ask("queries", "refused_by_api", spec=plain(spec)):
            return
        assert _refused_by_placement(spec, first), f"Nova asks {first}; Roost refuses: {refused}"
        return
    assert rendered(found.query, found.limit) == first
    second = rendered(found.fallbacks[0], found.limit) if found.fallbacks else None
    assert second == (None if strings[1] is None else canonical(strings[1]))


CASES = (requests(), clouds(), filter_options, st.booleans())
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(*CASES)
def test_queries_are_those_of_nova(
    nova: Nova, spec: RequestSpec, cloud: Cloud, filters: RequestFilterOptions, fallback: bool
) -> None:
    compare(nova, spec, cloud, filters, fallback)


@pytest.mark.nightly
@settings(max_examples=5_000, deadline=None, suppress_health_check=SLOW)
@given(*CASES)
def test_thousands_of_queries_are_those_of_nova(
    nova: Nova, spec: RequestSpec, cloud: Cloud, filters: RequestFilterOptions, fallback: bool
) -> None:
    compare(nova, spec, cloud, filters, fallback)


def test_the_differences_are_those_of_the_documentation() -> None:
    page = Path(ROOT / "docs" / "differences.md").read_text()
    table = page.partition("# Differences from Nova's candidate queries")[2].partition("\n# ")[0]
    rows = re.findall(r"(?m)^\| (.+?) \|", table)[1:]
    assert rows == [
        *REFUSED,
        *OTHER,
        "a query that placement refuses",
        "an image property of an unknown value",
        "a group policy of fewer than two groups with suffixes",
    ]
