"""The claims of decisions count until rows of Nova count their instances, or the instances are gone."""

import uuid

import pytest

from roost.nova.arrivals import COUNTED_SECONDS
from roost.nova.settlement import LOST_SECONDS, SETTLE_SECONDS
from support.nova_clouds import FedTable, NovaCloud
from support.nova_traces import buried, mapped, placed, requested


def claimed(fed: FedTable, instance: str, host: str = "a") -> None:
    """Claim a node of a host for an instance, as a decision does."""
    index = fed.table.index(host)
    assert index is not None
    fed.table.claim(instance, index, memory_mb=100)
    assert counts(fed)


def counts(fed: FedTable) -> bool:
    return len(fed.table.outstanding) == 1


def pass_time(fed: FedTable, seconds: float) -> None:
    for _ in range(int(seconds / SETTLE_SECONDS)):
        fed.refresh(after=SETTLE_SECONDS)


@pytest.fixture
def hosts(cloud: NovaCloud, fed: FedTable) -> None:
    for host in "ab":
        cloud.host("cell1", host)
    cloud.host("cell2", "c")
    fed.refresh()


@pytest.mark.usefixtures("hosts")
def test_claim_counts_until_a_later_row_of_the_node_counts_the_instance(
    cloud: NovaCloud, fed: FedTable
) -> None:
    instance = cloud.instance("cell1", "i", None, vm_state="building")
    claimed(fed, instance)
    cloud.instance("cell1", "i", "a", vm_state="building")
    fed.feed.instances_changed("a")
    fed.refresh(after=1.0)
    assert counts(fed)
    assert instance not in fed.table.report(fed.table.index("a") or 0).instances
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 1, "io_workload": 1})
    fed.refresh(after=1.0)
    assert not counts(fed)
    report = fed.table.report(fed.table.index("a") or 0)
    assert (report.num_instances, list(report.instances)) == (1, [instance])
    assert fed.table.num_instances[fed.table.index("a") or 0] == 1


@pytest.mark.usefixtures("hosts")
def test_claim_ends_at_once_by_a_row_whose_number_of_instances_has_the_arrived_one(
    cloud: NovaCloud, fed: FedTable
) -> None:
    instance = cloud.instance("cell1", "i", "a")
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 1})
    claimed(fed, instance)
    fed.feed.instances_changed("a")
    fed.refresh(after=1.0)
    assert not counts(fed)
    assert list(fed.table.report(fed.table.index("a") or 0).instances) == [instance]


@pytest.mark.usefixtures("hosts")
def test_arrived_instance_is_counted_in_time_by_a_row_that_had_it_already(
    cloud: NovaCloud, fed: FedTable
) -> None:
    # An instance that the compute does not count any more is still listed.
    cloud.instance("cell1", "leaving", "a")
    instance = cloud.instance("cell1", "i", "a")
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 1})
    claimed(fed, instance)
    fed.feed.instances_changed("a")
    for _ in range(int(COUNTED_SECONDS)):
        fed.refresh(after=1.0)
        assert counts(fed)
    fed.refresh(after=1.0)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
def test_arrival_is_found_without_a_cast(cloud: NovaCloud, fed: FedTable) -> None:
    instance = cloud.instance("cell1", "i", "a")
    claimed(fed, instance)
    fed.refresh(after=SETTLE_SECONDS)
    fed.refresh(after=1.0)
    cloud.node("cell1", "a", at=1.0)
    fed.refresh(after=1.0)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
def test_instance_that_waits_for_its_compute_keeps_its_claim(cloud: NovaCloud, fed: FedTable) -> None:
    instance = cloud.instance("cell1", "i", None, vm_state="building")
    claimed(fed, instance)
    pass_time(fed, 2 * LOST_SECONDS)
    assert counts(fed)


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(
    "row",
    [
        {"host": None, "vm_state": "error"},
        {"host": "b", "vm_state": "active"},
        {"host": None, "vm_state": "building", "deleted": 1},
        {"host": None, "vm_state": "shelved_offloaded", "task_state": None},
    ],
)
def test_claim_whose_build_ended_elsewhere_is_released(
    cloud: NovaCloud, fed: FedTable, row: dict[str, str | None]
) -> None:
    instance = cloud.instance("cell1", "i", **row)
    claimed(fed, instance)
    fed.refresh(after=SETTLE_SECONDS)
    assert counts(fed)
    fed.refresh(after=SETTLE_SECONDS)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
def test_instance_in_no_cell_is_on_its_way_while_its_build_request_is_there(
    cloud: NovaCloud, fed: FedTable
) -> None:
    instance = str(uuid.uuid4())
    cloud.request(instance)
    claimed(fed, instance)
    pass_time(fed, LOST_SECONDS)
    assert counts(fed)
    pass_time(fed, SETTLE_SECONDS)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
def test_instance_in_no_cell_without_a_build_request_is_gone(fed: FedTable) -> None:
    claimed(fed, str(uuid.uuid4()))
    pass_time(fed, 2 * SETTLE_SECONDS)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("kind", ["migration", "live-migration", "evacuation"])
def test_move_counts_until_the_target_counts_the_migration(
    cloud: NovaCloud, fed: FedTable, kind: str
) -> None:
    instance = cloud.instance("cell1", "i", "b")
    cloud.migration(
        "cell1", instance, source_compute="b", source_node="b", status="accepted", migration_type=kind
    )
    claimed(fed, instance)
    pass_time(fed, LOST_SECONDS)
    assert counts(fed)
    cloud.migration("cell1", instance, dest_compute="a", dest_node="a")
    pass_time(fed, LOST_SECONDS)
    assert counts(fed)
    cloud.migration("cell1", instance, dest_compute_id=1)
    pass_time(fed, SETTLE_SECONDS)
    assert counts(fed)
    cloud.node("cell1", "a", at=1.0)
    pass_time(fed, 2 * SETTLE_SECONDS)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("status", ["error", "cancelled", "reverted", "failed"])
def test_claim_of_a_move_that_failed_is_released(cloud: NovaCloud, fed: FedTable, status: str) -> None:
    instance = cloud.instance("cell1", "i", "b")
    cloud.migration("cell1", instance, status=status, dest_compute="a", dest_node="a", dest_compute_id=1)
    claimed(fed, instance)
    pass_time(fed, 2 * SETTLE_SECONDS)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
def test_claim_on_a_node_of_a_cell_that_is_away_stays(cloud: NovaCloud, fed: FedTable) -> None:
    claimed(fed, str(uuid.uuid4()))
    fed.lose("cell1")
    pass_time(fed, 2 * SETTLE_SECONDS)
    assert counts(fed)


@pytest.mark.usefixtures("hosts")
def test_claim_of_an_instance_that_is_mapped_to_a_cell_that_is_away_stays(
    cloud: NovaCloud, fed: FedTable
) -> None:
    requested(cloud, "i")
    claimed(fed, mapped(cloud, "i", "cell2"))
    restore = fed.lose("cell2")
    pass_time(fed, 2 * LOST_SECONDS)
    assert counts(fed)
    restore()
    pass_time(fed, 4 * SETTLE_SECONDS)
    assert not counts(fed)


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("ended", ["failed", "buried", "deleted"])
def test_claim_ends_by_the_cell_of_its_node_while_another_one_is_away(
    cloud: NovaCloud, fed: FedTable, ended: str
) -> None:
    requested(cloud, "i")
    if ended == "buried":
        instance = buried(cloud, "i")
    else:
        instance = placed(cloud, "i", "cell1", None, vm_state="error", deleted=int(ended == "deleted"))
    claimed(fed, instance)
    fed.lose("cell2")
    pass_time(fed, 2 * SETTLE_SECONDS)
    assert not counts(fed)
