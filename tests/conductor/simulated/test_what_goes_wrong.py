"""What went wrong in a cloud of several conductors, cells and agents, each as a schedule in steps.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

import pytest

from roost.agent.protocol.questions import Confirm
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, FAILED, LOST
from roost.process.context import Context
from roost.state.api_database.build_requests import FinishRequest, MapInstances
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.conductor_work import reassign_instance
from roost.state.cell_database.host_admission import accept_held_host, read_held_hosts
from roost.state.cell_database.nodes import read_signs
from roost.state.leases import ObservedLiveness
from roost.storage import StorageError
from support.simulation import faults
from support.simulation.process import PLACEMENT, SCHEDULER, Process
from support.simulation.scripted import NONE, Scripted, found

ONE = "instance0"


def play(script):
    """Play a script with no fault in it, with some seeds."""
    for seed in range(3):
        script(NONE, seed)


# Several conductors


def a_second_super_conductor_starts_while_the_first_is_between_claim_and_mapping(faults, seed):
    with Scripted(faults, seed, waiting=("super1",)) as cloud:
        cloud.before(MapInstances, lambda _: cloud.process("super1").start() or 4.0)
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        assert len(cloud.said("resuming a request")) == 0
        cloud.finish()


def test_a_second_super_conductor_frees_nothing_of_the_first():
    play(a_second_super_conductor_starts_while_the_first_is_between_claim_and_mapping)


def a_second_cell_conductor_starts_while_the_first_moves_an_instance(faults, seed):
    with Scripted(faults, seed, conductors=2, cells=("c1",), waiting=("c1-conductor1",)) as cloud:
        cloud.fail(ONE, 1)
        cloud.before(reassign_instance, lambda _: cloud.process("c1-conductor1").start() or 4.0)
        cloud.request(ONE)
        assert cloud.wait_for(ONE, ACTIVE).attempt == 2
        cloud.finish()


def test_a_second_cell_conductor_moves_nothing_that_the_first_moves():
    play(a_second_cell_conductor_starts_while_the_first_moves_an_instance)


# Late writes


def an_insert_comes_after_the_takeover_of_its_request(faults, seed):
    with Scripted(faults, seed) as cloud:
        cloud.pause_before(AddInstances, 25.0, "super")
        cloud.request(ONE)
        cloud.wait(60.0)
        assert cloud.said("resuming a request")
        cloud.finish()


def test_an_insert_that_comes_after_the_takeover_of_its_request_puts_nothing_into_the_cell():
    play(an_insert_comes_after_the_takeover_of_its_request)
    assert found(an_insert_comes_after_the_takeover_of_its_request, faults.NO_FENCE)


def a_mapping_comes_after_the_takeover_of_its_request(faults, seed):
    with Scripted(faults, seed) as cloud:
        # The first goes on after the second has placed the instance, and before it has finished the request.
        cloud.pause_before(MapInstances, 25.0, "super")
        cloud.pause_before(FinishRequest, 20.0, "super")
        cloud.request(ONE)
        cloud.wait(60.0)
        cloud.finish()


def test_a_mapping_that_comes_after_the_takeover_of_its_request_is_not_written():
    play(a_mapping_comes_after_the_takeover_of_its_request)
    assert found(a_mapping_comes_after_the_takeover_of_its_request, faults.NO_OWNER)


def a_claim_is_looked_at_after_the_takeover_of_its_request(faults, seed):
    with Scripted(faults, seed) as cloud:
        # The request is taken over twice. Its second owner goes on when the third has finished it.
        cloud.before(AddInstances, lambda process: cloud.restart_after(process, 1.0), "super")
        cloud.pause_before("holdings", 25.0, "super")
        cloud.request(ONE)
        cloud.wait(60.0)
        assert len(cloud.said("resuming a request")) == 2
        cloud.finish()


def test_an_owner_that_looks_at_a_claim_after_the_takeover_of_its_request_replaces_nothing():
    play(a_claim_is_looked_at_after_the_takeover_of_its_request)


def an_insert_comes_after_the_deletion_of_its_instance(faults, seed):
    with Scripted(faults, seed) as cloud:
        cloud.pause_before(AddInstances, 6.0, "super")
        cloud.request(ONE)
        cloud.wait(1.0)
        cloud.delete(ONE)
        cloud.wait(60.0)
        cloud.finish()


def test_an_insert_that_comes_after_the_deletion_of_its_instance_brings_nothing_back():
    play(an_insert_comes_after_the_deletion_of_its_instance)
    assert found(an_insert_comes_after_the_deletion_of_its_instance, faults.NO_TOMBSTONE)


def a_swap_comes_after_another_conductor_has_moved_the_instance(faults, seed):
    with Scripted(faults, seed, conductors=2, cells=("c1",), hosts=3) as cloud:
        cloud.fail(ONE, 1)
        cloud.pause_before("use_alternate", 25.0)
        cloud.request(ONE)
        cloud.wait(60.0)
        cloud.finish()


def test_a_swap_that_comes_after_another_conductor_has_moved_the_instance_is_refused():
    play(a_swap_comes_after_another_conductor_has_moved_the_instance)
    assert "holds" in found(a_swap_comes_after_another_conductor_has_moved_the_instance, faults.NO_GENERATION)


# Databases and placement that are away


def test_a_database_that_stops_for_half_a_minute_and_clocks_that_are_stepped_make_nothing_expire():
    with Scripted(build_seconds=20.0) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        for number, process in enumerate(cloud.processes):
            process.offset = (-1) ** number * 7_200.0
        for database in [*cloud.network.databases]:
            cloud.take_away(database, 30.0)
        cloud.wait(60.0)
        for process in cloud.processes:
            process.offset *= -1
        cloud.wait(60.0)
        assert not cloud.said("a process shows no sign of life: its work is free")
        assert not cloud.said("builds were not confirmed in time")
        cloud.finish()


def test_a_cell_that_is_down_keeps_nobody_else_from_working():
    with Scripted(waiting=("super",)) as cloud:
        cloud.take_away("cell/c1", 100.0)
        for each in cloud.supers:
            each.start()
        cloud.wait(10.0)
        requested = [f"instance{number}" for number in range(6)]
        for uuid in requested:
            cloud.request(uuid)
        cloud.wait(40.0)
        elsewhere = [uuid for uuid, row in cloud.rows("c2").items() if row.state == ACTIVE]
        assert elsewhere
        cloud.delete(elsewhere[0])
        cloud.wait(30.0)
        assert elsewhere[0] not in cloud.rows("c2")
        assert not cloud.rows("cell0")
        cloud.finish()
        assert all(cloud.row(uuid).state == ACTIVE for uuid in requested if uuid != elsewhere[0])


@pytest.mark.parametrize("service", [PLACEMENT, SCHEDULER])
def test_an_outage_of_placement_or_the_scheduler_ends_no_request_and_burns_no_move(service):
    with Scripted(cells=("c1",), hosts=3) as cloud:
        cloud.fail(ONE, 1)
        for kind in ("select_destinations", "use_alternate"):
            cloud.before(kind, lambda process: cloud.cut(process.name, service, seconds=60.0))
        cloud.request(ONE)
        assert cloud.wait_for(ONE, ACTIVE, seconds=400.0).attempt == 2
        cloud.finish()


# Hosts


def a_host_is_stopped_during_its_build_and_goes_on_when_another_one_runs_the_instance(faults, seed):
    with Scripted(faults, seed, build_seconds=8.0, cells=("c1",), hosts=3) as cloud:
        cloud.pause_before(Confirm, 40.0)
        cloud.request(ONE)
        cloud.wait(80.0)
        cloud.finish()


def test_a_host_that_was_stopped_during_its_build_does_not_start_what_another_one_runs():
    play(a_host_is_stopped_during_its_build_and_goes_on_when_another_one_runs_the_instance)
    script = a_host_is_stopped_during_its_build_and_goes_on_when_another_one_runs_the_instance
    assert "while it runs as" in found(script, faults.NO_CONFIRMATION)


def test_a_host_that_was_cut_off_during_its_build_does_not_start_what_another_one_runs():
    with Scripted(build_seconds=20.0, cells=("c1",), hosts=3) as cloud:
        cloud.build_in(1.0)
        cloud.before(Confirm, lambda process: cloud.cut(process.name, "cell", seconds=60.0))
        cloud.request(ONE)
        cloud.wait(70.0)
        assert cloud.wait_for(ONE, ACTIVE).attempt == 2
        cloud.finish()


def test_a_build_of_an_agent_that_died_goes_to_another_host():
    with Scripted(build_seconds=10.0, cells=("c1",), hosts=3) as cloud:
        cloud.build_in(1.0)
        cloud.before(Confirm, lambda process: cloud.restart_after(process, 100.0))
        cloud.request(ONE)
        cloud.wait_for(ONE, ASSIGNED)
        assert cloud.wait_for(ONE, ACTIVE, seconds=40.0).attempt == 2
        cloud.finish()


def test_a_deletion_on_a_dead_host_frees_its_claim_and_the_guest_goes_when_the_host_is_back():
    with Scripted(cells=("c1",)) as cloud:
        cloud.request(ONE)
        row = cloud.wait_for(ONE, ACTIVE)
        cloud.process(f"{row.host}-agent").crash()
        cloud.delete(ONE)
        cloud.wait_for(ONE, DELETING)
        # The end of the session of the host, too, is seen as a sign of life.
        cloud.wait(140.0)
        assert cloud.row(ONE) is None
        assert cloud.placement.held(ONE) is None
        assert cloud.guests.running(ONE)
        cloud.finish()


def test_a_build_that_hangs_does_not_keep_its_instance_from_being_deleted():
    with Scripted(build_seconds=600.0, cells=("c1",)) as cloud:
        cloud.build_in(600.0)
        cloud.request(ONE)
        cloud.wait_for(ONE, ASSIGNED)
        cloud.wait(5.0)
        cloud.delete(ONE)
        cloud.wait(20.0)
        assert cloud.row(ONE) is None
        cloud.finish()


async def judge(context: Context, liveness: ObservedLiveness) -> None:
    """Look every second which hosts of a cell are up, as the feed of the scheduler does."""
    while True:
        began = context.monotonic()
        try:
            signs = await context.read("cell/c1", read_signs())
            liveness.look(signs.sessions, signs.owing, began, context.monotonic())
        except StorageError:
            liveness.away(context.monotonic())
        await context.sleep(1.0)


def test_clocks_of_hosts_that_are_off_hide_no_host_and_an_outage_hides_none_either():
    with Scripted(cells=("c1",), hosts=3) as cloud:
        everybody = cloud.guests.hosts.keys()
        for agent, seconds in zip(cloud.agents, (-7_200.0, 0.0, 30.0), strict=True):
            agent.offset = seconds
        liveness = ObservedLiveness(60.0)
        Process(
            "judge", cloud.network, lambda process: process.run("judges", judge(process.context, liveness))
        ).start()
        cloud.wait(150.0)
        assert liveness.up == everybody
        cloud.take_away("cell/c1", 50.0)
        cloud.wait(60.0)
        assert liveness.up == everybody
        cloud.agents[0].crash()
        cloud.wait(100.0)
        assert liveness.up == everybody - {"c1-host0"}
        cloud.agents[0].start()
        cloud.wait(10.0)
        assert liveness.up == everybody


def test_a_guest_that_vanished_is_told_of_and_idle_hosts_cost_a_write_every_few_seconds():
    with Scripted(cells=("c1",)) as cloud:
        cloud.request(ONE)
        row = cloud.wait_for(ONE, ACTIVE)
        cloud.wait(60.0)
        before = len(cloud.network.trace)
        cloud.wait(100.0)
        writes = [
            note
            for note in cloud.network.trace[before:]
            if note.what[1] == "writes" and type(note.what[3]).__name__ == "StorePoll"
        ]
        assert 0 < len(writes) <= len(cloud.agents) * 100.0 / 5.0
        cloud.guests.hosts[row.host].lose(ONE)
        cloud.wait_for(ONE, LOST, seconds=30.0)
        cloud.finish()


def test_agents_destroy_nothing_when_their_cell_has_an_empty_database():
    with Scripted(cells=("c1",)) as cloud:
        cloud.request(ONE)
        row = cloud.wait_for(ONE, ACTIVE)
        cloud.lose_database("cell/c1")
        cloud.wait(120.0)
        assert cloud.guests.running(ONE) == [(row.host, row.attempt)]
        assert {agent.memory["agent"].held is not None for agent in cloud.agents} == {True}
        cloud.check_foreign()


def test_a_build_is_not_given_to_another_host_because_the_database_has_forgotten_its_confirmation():
    with Scripted(build_seconds=20.0, cells=("c1",), hosts=3, fails_over=True) as cloud:
        cloud.build_in(1.0)
        cloud.request(ONE)
        row = cloud.wait_for(ONE, ACTIVE)
        # The next writes of the hosts' polls make snapshots; this one is of before the confirmation.
        cloud.network.databases["cell/c1"].fail_over(1.0)
        assert cloud.row(ONE).state == ASSIGNED
        cloud.wait(60.0)
        assert cloud.guests.running(ONE) == [(row.host, 1)]
        held = cloud.read("cell/c1", read_held_hosts())
        assert row.host in held
        for host in held:
            cloud.network.databases["cell/c1"].run(accept_held_host(host), True)
        assert cloud.wait_for(ONE, ACTIVE).attempt == 1
        cloud.finish()
        assert not cloud.read("cell/c1", read_held_hosts())


def a_cell_is_taken_back_while_a_host_waits_that_has_failed_to_build(faults, seed):
    with Scripted(faults, seed, cells=("c1",), hosts=3, fails_over=True) as cloud:
        cell = cloud.network.databases["cell/c1"]
        cloud.guests.have_ports = False
        cloud.fail(ONE, 1)
        cloud.build_in(3.0)
        cloud.request(ONE)
        failed_on = cloud.wait_for(ONE, ASSIGNED).host
        cloud.wait(1.0)
        kept_at = cloud.loop.now
        cell.run(lambda connection: None, True)
        while cloud.row(ONE).attempt == 1:
            cloud.wait(0.1)
        runs_on = cloud.wait_for(ONE, ACTIVE).host
        for host in cloud.guests.hosts.values():
            host.fails.clear()
        # The host's poll was counted before, and waits: its answer has what there was to do before.
        cell.fail_over(cloud.loop.now - kept_at)
        assert cloud.row(ONE).attempt == 1
        cloud.wait(60.0)
        assert cloud.guests.running(ONE) == [(runs_on, 2)]
        # An operator decides whose word counts, before anybody accepts the cell's.
        assert failed_on in cloud.read("cell/c1", read_held_hosts())


def test_a_host_starts_nothing_for_a_cell_that_was_taken_back_since_its_last_poll():
    script = a_cell_is_taken_back_while_a_host_waits_that_has_failed_to_build
    play(script)
    assert "while it runs as" in found(script, faults.NO_COUNT)


def test_failed_attempts_are_recorded_once():
    with Scripted(cells=("c1",), hosts=3) as cloud:
        cloud.fail(ONE, 1, 2)
        cloud.request(ONE)
        assert cloud.wait_for(ONE, ACTIVE).attempt == 3
        ends = [each for each in cloud.network.attempts if each.result == FAILED]
        assert len(ends) == len({(each.run, each.instance, each.ordinal) for each in ends}) == 2
        cloud.finish()
