"""One cause that the query and a filter both check is one condition, which can be the near miss."""

import asyncio
from pathlib import Path

import msgspec

from roost.model.reasons import Reasons
from roost.model.spec import RequestSpec
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler import Scheduler
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import NOW, Cloud, Kept, filled, flat, replace_report, spec


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
