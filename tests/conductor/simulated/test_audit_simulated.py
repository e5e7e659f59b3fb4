"""The audit in simulated time: it repairs what a doubled message broke, and nothing else."""

from collections.abc import Callable

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.audit import rounds
from roost.conductor.audit.findings import (
    CLAIM_AGAIN,
    DESTROY_GUEST,
    DRY_RUN,
    END_INSTANCE,
    FOLLOW_GUEST,
    FREE_CLAIM,
    MAP_AGAIN,
    UNKNOWN_GUEST,
)
from roost.conductor.comparison import (
    LEAKED_CLAIM,
    MISSING_CLAIM,
    MISSING_INSTANCE,
    UNMAPPED_INSTANCE,
    WRONG_CELL,
    WRONG_HOST,
)
from roost.model import move_states
from roost.model.instance import ACTIVE, Instance
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import CannotAllocate
from roost.scheduler.request.scheduling_request import HostRequest
from roost.state.api_database.audit import (
    DONE,
    ask_for_audit_round,
    begin_repair,
    read_audit_state,
    read_findings,
    read_repairs,
)
from roost.state.api_database.mappings import find_mappings
from roost.state.api_database.tables import instance_mappings
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.host_admission import accept_held_host, read_held_hosts
from roost.state.cell_database.rows import selection_text
from roost.state.cell_database.tables import fences, instances, moves
from support.clouds import spec
from support.simulation.cloud_world import CloudWorld
from support.simulation.kinds import CLOUD_KINDS
from support.simulation.scripted import Scripted
from support.simulation.seeds import simulate

ONE = "instance0"
SEEDS = range(3)
SCHEDULES = 2


class Audited(Scripted):
    """A scripted cloud whose conductors audit."""

    audits = True
    breaks = True


class Doubling(CloudWorld):
    """A cloud in which a claim may arrive again after the end of its instance."""

    doubles_claims = True


def claim_again(cloud: Scripted, *uuids: str) -> None:
    """What a second server answers to a claim that a proxy sends a second time."""
    for uuid in uuids:
        cloud.placement.select(HostRequest(spec(1), (uuid,), 0, 1, {}))


def gone(cloud: Scripted, *uuids: str) -> None:
    """Instances are built and deleted."""
    cloud.doubles_claims = True
    cloud.request(*uuids)
    for uuid in uuids:
        cloud.wait_for(uuid, ACTIVE)
    cloud.delete(*uuids)
    cloud.wait(20.0)
    assert not any(map(cloud.placement.held, uuids))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_claim_that_arrives_again_after_its_instance_is_freed_with_its_proof(seed: int) -> None:
    with Audited(seed=seed) as cloud:
        gone(cloud, ONE)
        claim_again(cloud, ONE)
        held = cloud.placement.held(ONE)
        assert held is not None
        cloud.wait_for_rounds(2)
        assert cloud.placement.held(ONE) is None
        [repair] = cloud.read("api", read_repairs(None, 10))
        assert (repair.finding.kind, repair.finding.subject) == (LEAKED_CLAIM, ONE)
        assert (repair.finding.action, repair.result) == (FREE_CLAIM, DONE)
        proof = {"generation": held.consumer.generation, "allocations": held.allocations}
        assert repair.finding.proof == {"claim": proof, "mapping": None, "rows": {}, "is_past": True}
        cloud.finish()


def test_a_claim_of_the_same_type_that_no_conductor_made_is_left_alone() -> None:
    with Audited() as cloud:
        gone(cloud, ONE)
        claim_again(cloud, "of-another-program")
        cloud.wait_for_rounds(3)
        assert cloud.placement.held("of-another-program") is not None
        [(_, finding)] = cloud.read("api", read_findings(0, 10))
        assert "another program" in finding.waits_for
        cloud.placement.free(("of-another-program",))
        cloud.finish()


def test_nothing_is_freed_while_its_host_does_not_report() -> None:
    with Audited() as cloud:
        gone(cloud, ONE)
        for agent in cloud.agents:
            agent.stop()
        # What was on its way when they stopped is a sign of life yet.
        cloud.wait(10.0)
        claim_again(cloud, ONE)
        cloud.wait_for_rounds(3)
        assert cloud.placement.held(ONE) is not None
        [(_, finding)] = cloud.read("api", read_findings(0, 10))
        assert "shows no sign of life" in finding.waits_for
        for agent in cloud.agents:
            agent.go_on()
        cloud.finish()
        assert cloud.placement.held(ONE) is None


def test_many_repairs_at_once_wait_for_an_operator_who_permits_them() -> None:
    uuids = [f"instance{number}" for number in range(4)]
    with Audited() as cloud:
        for uuid in uuids:
            gone(cloud, uuid)
        claim_again(cloud, *uuids)
        cloud.wait_for_rounds(3)
        assert all(map(cloud.placement.held, uuids))
        state = cloud.read("api", read_audit_state())
        assert state.report.findings == 4
        assert "4 repairs are due" in state.report.asks
        cloud.network.databases["api"].run(ask_for_audit_round(3), True)
        cloud.wait_for_rounds(1)
        assert sum(cloud.placement.held(uuid) is not None for uuid in uuids) == 1
        # The one that is left is few enough.
        cloud.finish()
        assert not any(map(cloud.placement.held, uuids))
        assert len(cloud.read("api", read_repairs(None, 10))) == 4


def test_a_dry_run_repairs_nothing_and_says_what_it_would() -> None:
    with Audited() as cloud:
        gone(cloud, ONE)
        cloud.wait_for_rounds(1)
        cloud.network.databases["api"].run(ask_for_audit_round(DRY_RUN), True)
        claim_again(cloud, ONE)
        cloud.wait_for_rounds(1)
        assert cloud.placement.held(ONE) is not None
        assert cloud.read("api", read_audit_state()).report.asks == "1 repairs are due; this was a dry run"
        [(_, finding)] = cloud.read("api", read_findings(0, 10))
        assert (finding.action, finding.waits_for) == (FREE_CLAIM, None)
        cloud.finish()
        assert cloud.placement.held(ONE) is None


def test_a_claim_that_changes_between_the_looks_and_the_repair_is_left_alone() -> None:
    with Audited() as cloud:
        gone(cloud, ONE)
        claim_again(cloud, ONE)

        def claim_anew(process: object) -> float:
            cloud.placement.free((ONE,))
            claim_again(cloud, ONE)
            cloud.placement.select(HostRequest(spec(1), (ONE,), 0, 1, {ONE: 1}))
            return 0.0

        cloud.before(begin_repair, claim_anew, "super")
        cloud.wait_for_rounds(1)
        [repair] = cloud.read("api", read_repairs(None, 10))
        assert "refused" in repair.result
        assert cloud.placement.held(ONE) is not None
        cloud.finish()
        assert cloud.placement.held(ONE) is None


@pytest.mark.parametrize("kind", ["weather", "crashes"])
def test_claims_that_are_doubled_end_repaired(kind: str) -> None:
    simulate(lambda seed: Doubling(CLOUD_KINDS[kind], seed), range(SCHEDULES), kind)


def repairs_of(cloud: Scripted) -> list[tuple[str, str, str | None]]:
    """All repairs that were made: kind, action, result."""
    return [
        (each.finding.kind, each.finding.action, each.result)
        for each in reversed(cloud.read("api", read_repairs(None, 10)))
    ]


def active(cloud: Scripted, *failing: int) -> Instance:
    """An instance that runs, after its first attempts have failed."""
    cloud.fail(ONE, *failing)
    cloud.request(ONE)
    return cloud.wait_for(ONE, ACTIVE)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_instance_that_runs_without_a_claim_gets_what_it_was_built_with(seed: int) -> None:
    with Audited(seed=seed) as cloud:
        active(cloud)
        before = cloud.placement.held(ONE)
        cloud.placement.free((ONE,))
        cloud.wait_for_rounds(2)
        after = cloud.placement.held(ONE)
        assert after is not None and before is not None
        assert (after.allocations, after.consumer) == (before.allocations, before.consumer)
        assert repairs_of(cloud) == [(MISSING_CLAIM, CLAIM_AGAIN, DONE)]
        cloud.delete(ONE)
        cloud.finish()


def test_a_claim_on_another_host_than_the_instance_is_moved_to_it() -> None:
    with Audited() as cloud:
        row = active(cloud)
        before = cloud.placement.held(ONE)
        assert before is not None
        elsewhere = next(
            host.node
            for host in cloud.guests.hosts.values()
            if host.node != row.node and host.cell == row.selection.cell
        )
        consumer = before.consumer
        write = ConsumerWrite(
            consumer=ONE,
            allocations={elsewhere: {"VCPU": 1}},
            project_id=consumer.project_id,
            user_id=consumer.user_id,
            generation=consumer.generation,
        )
        cloud.placement.write([write])
        cloud.wait_for_rounds(2)
        assert cloud.placement.held(ONE).allocations == before.allocations
        assert repairs_of(cloud) == [(WRONG_HOST, CLAIM_AGAIN, DONE)]
        cloud.finish()


def test_a_claim_that_no_longer_fits_is_not_made_again() -> None:
    with Audited() as cloud:
        row = active(cloud)
        before = cloud.placement.held(ONE)
        cloud.placement.free((ONE,))
        others = room_taken(cloud, row.node)
        cloud.wait_for_rounds(2)
        assert cloud.placement.held(ONE) is None
        kind, action, result = repairs_of(cloud)[0]
        assert (kind, action) == (MISSING_CLAIM, CLAIM_AGAIN)
        assert "refused" in result and "capacity" in result
        cloud.placement.free(others)
        cloud.wait_for_rounds(2)
        cloud.finish()
        assert cloud.placement.held(ONE).allocations == before.allocations


def room_taken(cloud: Scripted, node: str) -> list[str]:
    """The consumers with which another program takes all room of a node."""
    consumers: list[str] = []
    while True:
        write = ConsumerWrite(
            consumer=f"of-another-program-{len(consumers)}",
            allocations={node: {"VCPU": 1}},
            project_id="p",
            user_id="u",
            consumer_type="OTHER",
            generation=None,
        )
        try:
            cloud.placement.write([write])
        except CannotAllocate:
            return consumers
        consumers.append(write.consumer)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_guest_of_an_instance_that_was_deleted_is_destroyed(seed: int) -> None:
    with Audited(seed=seed) as cloud:
        gone(cloud, ONE)
        host = next(iter(cloud.guests.hosts.values()))
        host.guests[ONE] = 1
        cloud.wait_for_rounds(3)
        assert ONE not in host.guests
        [repair] = cloud.read("api", read_repairs(None, 10))
        assert (repair.finding.kind, repair.finding.action) == (UNKNOWN_GUEST, DESTROY_GUEST)
        [[guest]] = repair.finding.proof["guests"].values()
        assert (guest["instance"], guest["attempt"], guest["host"]) == (ONE, 1, host.name)
        cloud.finish()


def test_a_guest_of_an_earlier_attempt_is_destroyed_and_that_of_the_present_one_stays() -> None:
    with Audited() as cloud:
        row = active(cloud, 1)
        assert row.attempt == 2
        [attempt] = cloud.read(f"cell/{row.selection.cell}", ended_attempts_of(ONE))
        cloud.guests.hosts[attempt.host].guests[ONE] = 1
        cloud.wait_for_rounds(3)
        assert cloud.guests.running(ONE) == [(row.host, 2)]
        assert repairs_of(cloud) == [(UNKNOWN_GUEST, DESTROY_GUEST, DONE)]
        cloud.finish()


@pytest.mark.parametrize("attempt", [2, 7])
def test_a_guest_of_an_attempt_that_its_cell_does_not_know_is_left_to_an_operator(attempt: int) -> None:
    """The cell's database may have been taken back."""
    with Audited() as cloud:
        row = active(cloud)
        other = next(
            host
            for host in cloud.guests.hosts.values()
            if host.cell == row.selection.cell and host.name != row.host
        )
        other.guests[ONE] = attempt
        cloud.wait_for_rounds(3)
        assert other.guests[ONE] == attempt
        [(_, finding)] = cloud.read("api", read_findings(0, 10))
        assert (finding.kind, finding.action) == (UNKNOWN_GUEST, None)
        assert f"host {other.name} has a guest of attempt {attempt}" in finding.detail
        del other.guests[ONE]
        cloud.wait_for_rounds(3)
        assert not cloud.read("api", read_findings(0, 10))
        cloud.finish()


def lose(cloud: Scripted, database: str, table: sa.Table, column: str) -> None:
    """A row of the instance is lost, as by a hand that slipped."""

    def delete(connection: Connection) -> None:
        connection.execute(sa.delete(table).where(table.c[column] == ONE))

    cloud.network.databases[database].run(delete, True)


def findings_of(cloud: Scripted) -> set[tuple[str, str | None]]:
    return {(each.kind, each.action) for _, each in cloud.read("api", read_findings(0, 10))}


def row_of(cloud: Scripted, cell: str) -> dict[str, object]:
    """The row of the instance, as a backup of its cell has it."""
    one = sa.select(instances).where(instances.c.uuid == ONE)
    return cloud.read(f"cell/{cell}", lambda connection: dict(connection.execute(one).one()._asdict()))


def take_back(cloud: Scripted, cell: str, row: dict[str, object]) -> None:
    """A cell is taken back to when it had this row, and no move. Its processes are restarted."""

    def restore(connection: Connection) -> None:
        for table, column in ((instances, "uuid"), (moves, "instance_uuid"), (fences, "instance_uuid")):
            connection.execute(sa.delete(table).where(table.c[column] == ONE))
        connection.execute(sa.insert(instances), row)

    of_cell = [each for each in cloud.processes if each.name.startswith(f"{cell}-")]
    for process in of_cell:
        process.crash()
    cloud.network.databases[f"cell/{cell}"].run(restore, True)
    for process in of_cell:
        process.start()


def accept_held(cloud: Scripted, cell: str) -> list[str]:
    """An operator looks at the hosts whose agents wait for him, and accepts them; returns their names."""
    held = sorted(cloud.read(f"cell/{cell}", read_held_hosts()))
    for host in held:
        cloud.network.databases[f"cell/{cell}"].run(accept_held_host(host), True)
    return held


@pytest.mark.parametrize("seed", SEEDS)
def test_an_instance_of_a_cell_that_was_taken_back_is_where_its_guest_has_moved_meanwhile(seed: int) -> None:
    with Audited(seed=seed, hosts=6) as cloud:
        before = active(cloud)
        cell = before.selection.cell
        row = row_of(cloud, cell)
        cloud.wait_for_move(cloud.migrate(ONE), move_states.DONE)
        moved = cloud.row(ONE)
        take_back(cloud, cell, row)
        cloud.wait_for_rounds(2)
        assert not repairs_of(cloud)
        assert accept_held(cloud, cell) == [moved.host]
        cloud.wait_for_rounds(2)
        assert repairs_of(cloud) == [(UNKNOWN_GUEST, FOLLOW_GUEST, DONE)]
        after = cloud.row(ONE)
        assert (after.state, after.host, after.node, after.attempt) == (ACTIVE, moved.host, moved.node, 2)
        assert after.selection.allocations == moved.selection.allocations
        assert after.selection.generation == cloud.placement.held(ONE).consumer.generation
        assert cloud.guests.running(ONE) == [(moved.host, 2)]
        # It goes on as any other.
        cloud.wait_for_move(cloud.migrate(ONE), move_states.DONE)
        assert cloud.row(ONE).attempt == 3
        cloud.delete(ONE)
        cloud.finish()


def test_a_guest_in_a_cell_that_was_taken_back_is_left_to_an_operator_without_its_claim() -> None:
    with Audited(hosts=6) as cloud:
        before = active(cloud)
        row = row_of(cloud, before.selection.cell)
        cloud.wait_for_move(cloud.migrate(ONE), move_states.DONE)
        take_back(cloud, before.selection.cell, row)
        cloud.placement.free((ONE,))
        cloud.wait_for_rounds(1)
        accept_held(cloud, before.selection.cell)
        cloud.wait_for_rounds(3)
        assert not repairs_of(cloud)
        assert (UNKNOWN_GUEST, None) in findings_of(cloud)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_instance_that_was_deleted_is_deleted_again_from_a_cell_that_was_taken_back(
    seed: int,
) -> None:
    with Audited(seed=seed) as cloud:
        before = active(cloud)
        row = row_of(cloud, before.selection.cell)
        cloud.delete(ONE)
        while cloud.row(ONE) is not None:
            cloud.wait(1.0)
        cloud.wait(60.0)
        take_back(cloud, before.selection.cell, row)
        cloud.wait_for_rounds(4)
        assert (UNMAPPED_INSTANCE, END_INSTANCE, DONE) in repairs_of(cloud)
        assert cloud.row(ONE) is None
        cloud.finish()


def test_a_claim_stays_while_the_guest_of_a_row_that_was_lost_may_run() -> None:
    with Audited() as cloud:
        row = active(cloud)
        cell = f"cell/{row.selection.cell}"
        kept = row_of(cloud, row.selection.cell)
        lose(cloud, cell, instances, "uuid")
        cloud.wait_for_rounds(2)
        assert cloud.placement.held(ONE) is not None and not repairs_of(cloud)
        assert findings_of(cloud) == {(MISSING_INSTANCE, None), (LEAKED_CLAIM, None)}
        # The host lists its guests now and then, though nothing has changed there.
        cloud.wait(300.0)
        cloud.wait_for_rounds(2)
        assert findings_of(cloud) == {(MISSING_INSTANCE, None), (LEAKED_CLAIM, None), (UNKNOWN_GUEST, None)}
        assert cloud.guests.running(ONE) == [(row.host, 1)]
        cloud.network.databases[cell].run(
            lambda connection: connection.execute(sa.insert(instances), kept), True
        )
        cloud.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_instance_whose_mapping_is_lost_is_mapped_to_its_cell_again(seed: int) -> None:
    with Audited(seed=seed) as cloud:
        row = active(cloud)
        before = cloud.read("api", find_mappings((ONE,)))[ONE]
        lose(cloud, "api", instance_mappings, "instance_uuid")
        cloud.wait_for_rounds(2)
        assert repairs_of(cloud) == [(UNMAPPED_INSTANCE, MAP_AGAIN, DONE)]
        after = cloud.read("api", find_mappings((ONE,)))[ONE]
        assert (after.cell, after.project_id, after.request_id) == (
            row.selection.cell,
            before.project_id,
            before.request_id,
        )
        # When it was accepted no cell knows.
        change_mapping(cloud, accepted_at=before.accepted_at)
        cloud.delete(ONE)
        cloud.finish()
        assert cloud.row(ONE) is None


def change_mapping(cloud: Scripted, **values: object) -> None:
    def change(connection: Connection) -> None:
        of_it = instance_mappings.c.instance_uuid == ONE
        connection.execute(sa.update(instance_mappings).where(of_it).values(**values))

    cloud.network.databases["api"].run(change, True)


def test_a_mapping_that_names_another_cell_names_the_right_one_again() -> None:
    with Audited() as cloud:
        row = active(cloud)
        other = next(cell for cell in cloud.cells if cell != row.selection.cell)
        change_mapping(cloud, cell=other)
        cloud.wait_for_rounds(2)
        assert repairs_of(cloud) == [(WRONG_CELL, MAP_AGAIN, DONE)]
        assert cloud.read("api", find_mappings((ONE,)))[ONE].cell == row.selection.cell
        cloud.delete(ONE)
        cloud.finish()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cloud, other: cloud.placement.free((ONE,)),
        lambda cloud, other: cloud.take_away(f"cell/{other}", 1e9),
    ],
    ids=["without its claim", "while a cell is away"],
)
def test_a_mapping_that_names_another_cell_stays_where_the_right_one_is_not_certain(
    spoil: Callable[[Scripted, str], None],
) -> None:
    with Audited() as cloud:
        row = active(cloud)
        other = next(cell for cell in cloud.cells if cell != row.selection.cell)
        change_mapping(cloud, cell=other)
        spoil(cloud, other)
        cloud.wait_for_rounds(2)
        assert cloud.read("api", find_mappings((ONE,)))[ONE].cell != row.selection.cell
        assert MAP_AGAIN not in {action for _, action, _ in repairs_of(cloud)}


def never_claimed(cloud: Scripted, uuids: list[str]) -> None:
    """Instances run that hosts of the cells' databases were chosen for: nothing was claimed for them."""
    cloud.request(*uuids)
    for uuid in uuids:
        row = cloud.wait_for(uuid, ACTIVE)
        text = selection_text(msgspec.structs.replace(row.selection, generation=None))

        def forget(connection: Connection, uuid: str = uuid, text: str = text) -> None:
            connection.execute(sa.update(instances).where(instances.c.uuid == uuid).values(selection=text))

        cloud.network.databases[f"cell/{row.selection.cell}"].run(forget, True)
    cloud.placement.free(uuids)


def test_instances_that_never_had_a_claim_get_it_from_their_rows_however_many_they_are() -> None:
    uuids = [f"instance{number}" for number in range(4)]
    with Audited() as cloud:
        never_claimed(cloud, uuids)
        cloud.network.databases["api"].run(ask_for_audit_round(DRY_RUN), True)
        cloud.wait_for_rounds(1)
        assert not any(map(cloud.placement.held, uuids))
        cloud.wait_for_rounds(2)
        held = [cloud.placement.held(uuid) for uuid in uuids]
        assert [each.consumer.generation for each in held] == [1] * 4
        assert [each.allocations for each in held] == [
            cloud.row(uuid).selection.allocations for uuid in uuids
        ]
        assert {cloud.row(uuid).selection.generation for uuid in uuids} == {1}
        assert repairs_of(cloud) == [(MISSING_CLAIM, CLAIM_AGAIN, DONE)] * 4
        cloud.delete(*uuids)
        cloud.finish()


def test_first_claims_of_thousands_are_made_over_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "FIRST_CLAIMS", 3)
    uuids = [f"instance{number}" for number in range(4)]
    with Audited() as cloud:
        never_claimed(cloud, uuids)
        cloud.wait_for_rounds(1)
        assert len([uuid for uuid in uuids if cloud.placement.held(uuid)]) <= 3
        cloud.wait_for_rounds(2)
        assert all(map(cloud.placement.held, uuids))
        cloud.delete(*uuids)
        cloud.finish()


def test_a_repair_that_is_refused_again_and_again_is_recorded_once() -> None:
    with Audited() as cloud:
        row = active(cloud)
        cloud.placement.free((ONE,))
        others = room_taken(cloud, row.node)
        cloud.wait_for_rounds(4)
        [(kind, action, result)] = repairs_of(cloud)
        assert (kind, action) == (MISSING_CLAIM, CLAIM_AGAIN) and "refused" in result
        cloud.placement.free(others)
        cloud.wait_for_rounds(2)
        assert [result for _, _, result in repairs_of(cloud)][1:] == [DONE]
        cloud.finish()
