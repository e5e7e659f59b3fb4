"""One cause that the query and a filter both check is one condition, which can be the near miss."""

import asyncio
from pathlib import Path

import msgspec

from roost.model.aggregate import HostAggregate
from roost.model.reasons import Reasons
from roost.model.spec import RequestSpec
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler import Scheduler
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import AGGREGATES, NOW, Cloud, Kept, filled, flat, replace_report, spec


def explained(folder: Path, cloud: Cloud, of: RequestSpec) -> Reasons:
    async def run() -> Reasons | None:
        async with filled(folder / "roost.db", cloud) as ledger:
            table = cloud.table()
            scheduler = Scheduler(LocalGateway(ledger, HostPools(table)), Kept(), lambda: NOW)
            return await scheduler.explain(of)

    found = asyncio.run(run())
    assert found is not None
    return found


def disabled(cloud: Cloud, number: int, **more: object) -> None:
    cloud.reports[number] = replace_report(cloud.reports[number], enabled=False, **more)
    cloud.providers[number].traits = frozenset({DISABLED_TRAIT})


def test_a_disabled_host_fails_one_condition_and_is_the_near_miss(tmp_path: Path) -> None:
    cloud = flat(2)
    disabled(cloud, 1)
    found = explained(tmp_path, cloud, msgspec.structs.replace(spec(), ignore_hosts=frozenset({"host0"})))
    assert ("host1", "is disabled") in [(miss.host, miss.text) for miss in found.misses]
    stages = {stage.name: stage for stage in found.stages}
    assert stages[f"root forbids {DISABLED_TRAIT}"].hosts_sole == 1
    assert stages["ComputeFilter"].hosts_alone == 0
    assert ("with disabled hosts", "host1") in [(each.text, each.host) for each in found.relaxations]


def test_a_disabled_host_that_is_down_too_fails_both(tmp_path: Path) -> None:
    cloud = flat(1)
    disabled(cloud, 0, last_seen=NOW - 1000)
    found = explained(tmp_path, cloud, spec())
    assert found.misses == ()
    assert {stage.name: stage for stage in found.stages}["ComputeFilter"].hosts_alone == 1


def test_an_exhausted_host_says_what_it_has_of_what_is_wanted(tmp_path: Path) -> None:
    found = explained(tmp_path, flat(1, vcpus=2), spec(vcpus=5))
    [miss] = found.misses
    assert miss.text == "has 2 of the 5 VCPU wanted"


def test_a_host_is_named_where_the_request_names_it(tmp_path: Path) -> None:
    cloud = flat(2, vcpus=2)
    wanted = spec(vcpus=2, requested_host="host0", ignore_hosts=frozenset({"host0"}))
    found = explained(tmp_path, cloud, wanted)
    texts = [found.sentence, *found.query, *(each.name for each in found.stages)]
    texts += [each.text for each in (*found.misses, *found.relaxations)]
    assert texts
    # The providers of this cloud have a uuid in their names.
    bare = [text.replace(f"name of {each.uuid}", "") for text in texts for each in cloud.providers[:1]]
    assert not any(each.uuid in text for text in bare for each in cloud.providers)


def test_a_zone_is_called_by_its_name(tmp_path: Path) -> None:
    cloud = flat(2)
    zone = HostAggregate(AGGREGATES[0], "an aggregate", {"availability_zone": "north"})
    cloud.providers[1].aggregates = frozenset({zone.uuid})
    cloud.reports[1] = replace_report(cloud.reports[1], aggregates=(zone,), enabled=False)
    found = explained(tmp_path, cloud, spec(availability_zone="north"))
    assert found.sentence == "1 of 2 hosts is in the availability zone north; that one, host1, is disabled"
    wanted = spec(12, availability_zone="north")
    cloud.reports[1] = replace_report(cloud.reports[1], enabled=True)
    (tmp_path / "more").mkdir()
    found = explained(tmp_path / "more", cloud, wanted)
    assert "zone north" in found.sentence and zone.uuid not in found.sentence + found.public


def test_two_causes_are_named_where_it_takes_both(tmp_path: Path) -> None:
    found = explained(
        tmp_path, flat(3), spec(extra_specs={"resources:CUSTOM_GPU": "1", "trait:CUSTOM_RED": "required"})
    )
    assert [(each.text, each.met, each.wanted, each.free) for each in found.causes] == [
        ("have 1 CUSTOM_GPU free", 0, 1, 0),
        ("have the trait CUSTOM_RED", 0, None, None),
    ]
    assert [each.text for each in found.relaxations] == [
        "without 1 CUSTOM_GPU and without required CUSTOM_RED"
    ]


def test_a_cause_is_a_condition_that_alone_keeps_some_host_from_the_request(tmp_path: Path) -> None:
    """The trait is the last condition that is met by a host, and that host lacks room as well."""
    cloud = flat(3)
    cloud.providers[0].traits = frozenset({"CUSTOM_FAST"})
    cloud.providers[0].used = {"VCPU": 8}
    cloud.reports[0] = replace_report(cloud.reports[0], enabled=False)
    found = explained(tmp_path, cloud, spec(extra_specs={"trait:CUSTOM_FAST": "required"}))
    [cause] = found.causes
    assert (cause.text, cause.met, cause.hosts) == ("have the trait CUSTOM_FAST", 1, 2)
    assert found.sentence.startswith("2 of 3 hosts have 1 VCPU free; none of these has the trait CUSTOM_FAST")


def test_more_than_two_causes_are_not_named(tmp_path: Path) -> None:
    extra = {"resources:CUSTOM_GPU": "1", "trait:CUSTOM_RED": "required"}
    found = explained(tmp_path, flat(2), spec(12, extra_specs=extra))
    assert found.causes == () and found.relaxations == ()
