"""The node table of the bridge follows Nova's databases."""

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from roost.scheduler.nodes.journal import PastTable
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.node_journal import NodeJournals
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database
from support.agents import until
from support.nova_clouds import FedTable, NovaCloud, cell_uuid, moment


def test_table_has_the_nodes_of_all_cells_by_uuid(cloud: NovaCloud, fed: FedTable) -> None:
    one, two = cloud.host("cell1", "a"), cloud.host("cell2", "b")
    cloud.node("cell0", "nowhere")
    fed.refresh()
    assert {(r.node, r.host, r.cell) for r in map(fed.table.report, range(len(fed.table)))} == {
        (one, "a", cell_uuid("cell1")),
        (two, "b", cell_uuid("cell2")),
    }
    assert fed.up == {"a", "b"}


def test_service_that_stands_still_is_down_and_comes_back(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell1", "b")
    for _ in range(14):
        fed.refresh(after=5.0)
        cloud.report("cell1", "a")
    assert fed.up == {"a"}
    cloud.report("cell1", "b")
    fed.refresh(after=5.0)
    assert fed.up == {"a", "b"}


def test_service_that_died_before_the_start_is_down_until_it_reports(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell1", "dead")
    cloud.service("cell1", "a", at=61.0)
    fed.refresh()
    assert fed.up == {"a"}
    fed.refresh(after=5.0)
    assert fed.up == {"a"}
    cloud.report("cell1", "dead")
    fed.refresh(after=5.0)
    assert fed.up == {"a", "dead"}


def test_host_of_a_disabled_or_forced_down_service_gets_nothing_at_the_next_look(
    cloud: NovaCloud, fed: FedTable
) -> None:
    for host in "abc":
        cloud.host("cell1", host)
    fed.refresh()
    cloud.service("cell1", "a", disabled=True)
    cloud.service("cell1", "b", forced_down=True)
    fed.look()
    assert fed.enabled == {"c"}
    cloud.service("cell1", "a", disabled=False)
    fed.look()
    assert fed.enabled == {"a", "c"}
    fed.refresh(after=5.0)
    assert fed.up == {"a", "c"}


def test_changed_new_and_deleted_nodes_are_found(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell1", "b")
    fed.refresh()
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 3, "io_workload": 2, "failed_builds": "1"})
    cloud.remove_node("cell1", "b")
    cloud.host("cell1", "c")
    fed.refresh(after=29.0)
    assert fed.up == {"a", "b", "c"}, "a service without a node is looked for"
    fed.refresh(after=1.0)
    assert sorted(host for host in "abc" if fed.table.index(host) is not None) == ["a", "c"]
    report = fed.table.report(fed.table.index("a") or 0)
    assert (report.num_instances, report.num_io_ops, report.failed_builds) == (3, 2, 1)


def test_hint_reads_a_node_at_once(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    fed.refresh()
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 3})
    cloud.instance("cell1", "i", "a")
    fed.feed.node_changed("a")
    fed.refresh(after=1.0)
    assert fed.table.report(0).num_instances == 3


def test_renewal_reads_all_that_has_changed_but_once_in_two_seconds(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    fed.refresh()
    before = fed.feed.changes
    fed.renew()
    assert fed.feed.changes == before
    cloud.host("cell1", "b")
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 3})
    fed.renew(after=1.0)
    assert fed.feed.changes == before
    fed.renew(after=1.0)
    assert fed.up == {"a", "b"}
    assert fed.table.report(fed.table.index("a") or 0).num_instances == 3
    assert fed.feed.changes != before


def test_instances_are_listed_and_leave(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell1", "b")
    one = cloud.instance("cell1", "one", "a", image_ref="image")
    fed.refresh()
    reports = {report.host: report for report in map(fed.table.report, range(2))}
    assert reports["a"].instances[one].project_id == "p"
    assert reports["a"].instances[one].image == "image"
    cloud.instance("cell1", "one", "b")
    fed.refresh(after=30.0)
    reports = {report.host: report for report in map(fed.table.report, range(2))}
    assert [list(reports[host].instances) for host in "ab"] == [[], [one]]


def test_aggregates_count_at_the_next_look(cloud: NovaCloud, fed: FedTable) -> None:
    for host in "ab":
        cloud.host("cell1", host)
    cloud.aggregate("fast", ["a"], availability_zone="az1")
    fed.refresh()

    def zones() -> dict[str, list[str]]:
        table = fed.table
        labels = table.metadata("availability_zone")
        return {} if labels is None else {h: [*labels.of(table.index(h) or 0)] for h in "ab"}

    assert zones() == {"a": ["az1"], "b": []}
    for second, zone in enumerate(["az2", "az3"]):
        cloud.aggregate("fast", ["a"], at=float(second), availability_zone=zone)
        fed.look()
        assert zones()["a"] == [zone]
    cloud.aggregate("fast", ["b"], availability_zone="az3")
    fed.look()
    assert zones() == {"a": [], "b": ["az3"]}
    cloud.remove_aggregate("fast")
    fed.look()
    assert zones() == {}


def test_cell_that_was_never_read_ages_since_it_was_found(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    assert fed.feed.oldest_age == 0.0
    asyncio.run(fed.cells.refresh())
    restore = fed.lose("cell2")
    fed.refresh(after=100.0)
    assert fed.feed.oldest_age == 0.0
    fed.refresh(after=70.0)
    assert fed.feed.ages == {cell_uuid("cell1"): 0.0, cell_uuid("cell2"): None}
    assert fed.feed.oldest_age == 70.0
    restore()
    fed.refresh(after=5.0)
    assert fed.feed.oldest_age == 0.0


def test_cell_that_cannot_be_read_goes_down_and_the_other_does_not(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell2", "b")
    fed.refresh()

    restore = fed.lose("cell2")
    for second in range(0, 65, 5):
        assert fed.up == {"a", "b"}, second
        cloud.report("cell1", "a")
        fed.refresh(after=5.0)
    assert fed.up == {"a"}
    assert dict(fed.feed.cells_down) == {cell_uuid("cell2"): "gone"}
    assert fed.feed.ages == {cell_uuid("cell1"): 0.0, cell_uuid("cell2"): 65.0}
    assert fed.feed.oldest_age == 65.0
    restore()
    cloud.report("cell2", "b")
    fed.refresh(after=5.0)
    assert fed.up == {"a", "b"}
    assert not fed.feed.cells_down


def test_disabled_cell_is_left_out(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell2", "b")
    fed.refresh()
    cloud.disable_cell("cell2")
    fed.refresh(after=60.0)
    assert fed.table.index("b") is None


def test_hosts_without_a_mapping_are_counted_and_warned_about_once(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell2", "b")
    cloud.service("cell1", "new")
    cloud.node("cell1", "new")
    with capture_logs() as logs:
        fed.refresh()
        fed.refresh(after=60.0)
    assert fed.feed.unmapped_hosts == {"new"}
    assert [log["hosts"] for log in logs if "not mapped" in log["event"]] == [["new"]]
    cloud.map_host("cell1", "new")
    fed.refresh(after=60.0)
    assert fed.feed.unmapped_hosts == set()


def test_instance_with_another_image_is_read_again(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    instance = cloud.instance("cell1", "i", "a", image_ref="one", updated_at=moment(0))
    cloud.image(instance, "cell1", hw_disk_bus="scsi", os_distro="x")
    fed.refresh()
    assert fed.table.report(0).instances[instance].image_properties == {
        "hw_disk_bus": "scsi",
        "os_distro": "x",
    }
    fed.refresh(after=30.0)
    cloud.image(instance, "cell1", hw_disk_bus="ide")
    cloud.instance("cell1", "i", "a", image_ref="two", updated_at=moment(1))
    fed.refresh(after=30.0)
    listed = fed.table.report(0).instances[instance]
    assert (listed.image, listed.image_properties) == ("two", {"hw_disk_bus": "ide"})


def test_instances_of_a_host_with_several_nodes_are_each_on_their_own(
    cloud: NovaCloud, fed: FedTable
) -> None:
    cloud.host("cell1", "a")
    cloud.node("cell1", "a", "a2")
    one = cloud.instance("cell1", "one", "a", node="a")
    two = cloud.instance("cell1", "two", "a", node="a2")
    fed.refresh()
    listed = {r.nodename: list(r.instances) for r in map(fed.table.report, range(2))}
    assert listed == {"a": [one], "a2": [two]}


def test_no_node_is_in_the_table_before_the_words_about_it_were_read(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.host("cell2", "b")
    restore = fed.lose_api(after=1)
    fed.refresh()
    assert len(fed.table) == 0
    restore()
    fed.refresh(after=1.0)
    assert len(fed.table) == 2


def test_row_is_read_again_as_a_second_change_leaves_the_same_stamp(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    fed.refresh()
    cloud.node("cell1", "a", at=5.0, stats={"num_instances": 1})
    fed.feed.node_changed("a")
    fed.refresh(after=1.0)
    cloud.node("cell1", "a", at=5.0, stats={"num_instances": 2})
    fed.refresh(after=2.0)
    assert fed.table.report(0).num_instances == 2


def test_hints_of_a_failed_read_are_not_lost(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    fed.refresh()
    cloud.node("cell1", "a", at=5.0, stats={"num_instances": 1})
    restore = fed.lose("cell1")
    fed.feed.node_changed("a")
    fed.refresh(after=1.0)
    restore()
    fed.refresh(after=1.0)
    assert fed.table.report(0).num_instances == 1


def test_version_of_a_service_reaches_the_table(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    fed.refresh()
    assert fed.table.report(0).service_version == 70
    cloud.service("cell1", "a", version=74)
    fed.refresh(after=5.0)
    assert fed.table.report(0).service_version == 74


def test_hint_from_another_thread_wakes_the_feed(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")

    async def run() -> None:
        running = asyncio.create_task(fed.feed.run())
        await until(lambda: len(fed.table) == 1)
        cloud.node("cell1", "a", at=5.0, stats={"num_instances": 1})
        await asyncio.to_thread(fed.feed.node_changed, "a")
        await until(lambda: fed.table.report(0).num_instances == 1)
        running.cancel()

    asyncio.run(run())


def test_hint_of_a_new_host_reads_it_at_once(cloud: NovaCloud, fed: FedTable) -> None:
    fed.refresh()
    node = cloud.host("cell2", "new")
    instance = cloud.instance("cell2", "i", "new")
    fed.feed.node_changed("new")
    fed.feed.instances_changed("new")
    fed.refresh(after=1.0)
    report = fed.table.report(fed.table.index("new") or 0)
    assert (report.node, list(report.instances)) == (node, [instance])


def test_first_node_of_a_new_service_is_found_at_the_next_look(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    fed.refresh()
    cloud.service("cell1", "new")
    fed.refresh(after=6)
    cloud.node("cell1", "new")
    fed.refresh(after=6)
    assert len(fed.table.indexes_of_host("new")) == 1


def test_changed_node_of_a_host_with_many_is_read_alone(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    for number in range(9):
        cloud.node("cell1", "a", f"metal{number}")
    fed.refresh()
    before = fed.feed.rows_read[cell_uuid("cell1")]
    cloud.node("cell1", "a", "metal3", at=1.0, stats={"num_instances": 1})
    fed.feed.node_changed("a")
    fed.refresh(after=1.0)
    assert fed.table.report(fed.table.index("a", "metal3") or 0).num_instances == 1
    stamps, row = 10, 1
    assert fed.feed.rows_read[cell_uuid("cell1")] - before == stamps + row


def test_changes_of_the_table_are_in_the_journal(cloud: NovaCloud, tmp_path: Path) -> None:
    own = Database(f"sqlite:///{tmp_path / 'own.db'}")
    SCHEMA.upgrade(own)
    fed = FedTable(cloud, journal=own)
    cloud.host("cell1", "a")
    fed.refresh()
    cloud.service("cell1", "a", disabled=True)
    fed.look()
    fed.close()

    async def past() -> NodeTable:
        journals = NodeJournals(own)
        newest = await journals.newest()
        assert newest is not None
        return await PastTable(journals, newest[0]).at(newest[1])

    table = asyncio.run(past())
    assert (table.hosts, table.enabled[0]) == (["a"], False)
    asyncio.run(own.close())


def test_row_with_a_new_stamp_alone_is_not_decoded_again(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a", stats={"num_instances": 1}, cpu_info={"model": "x"})
    fed.refresh()
    before = fed.table.report(0)
    cloud.node("cell1", "a", at=5.0, stats={"num_instances": 1}, cpu_info={"model": "x"})
    fed.feed.node_changed("a")
    fed.refresh(after=1.0)
    assert fed.table.report(0).cpu_info is before.cpu_info
    cloud.node("cell1", "a", at=6.0, stats={"num_instances": 2}, cpu_info={"model": "x"})
    fed.feed.node_changed("a")
    fed.refresh(after=3.0)
    assert fed.table.report(0).num_instances == 2
