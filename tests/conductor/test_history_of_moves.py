"""Moves in the history of an instance: an action for each, with the targets that were tried."""

from roost.conductor.history.timeline import actions_of
from roost.conductor.history.types import InstanceAction, InstanceHistory
from roost.dashboard.views.host_stays import stays_of
from roost.model.instance import (
    ACTIVE,
    ASSIGNED,
    DELETING,
    LOST,
    MOVED,
    MOVING,
    NOT_MOVED,
    Requester,
    Transition,
)
from roost.model.record import REFUSED, Attempt, Run
from roost.model.visibility import seen
from roost.records import RunWithAttempts
from roost.state.api_database.past import KnownInstance
from roost.state.cell_database.history import StoredHistory

OLGA = Requester("olga", "operators", "req-1")
BUILT = (
    Transition(state=ASSIGNED, at=1.0, attempt=1, host="a", node="node-a", ordinal=1),
    Transition(state=ACTIVE, at=2.0),
)


def moving(at: float, attempt: int, host: str, reason: str | None = None, kind: str = "migrate"):
    facts = {"attempt": attempt, "host": host, "node": f"node-{host}", "ordinal": 1}
    return Transition(state=MOVING, at=at, reason=reason, by=OLGA, kind=kind, **facts)


def moved(at: float, attempt: int, host: str):
    return Transition(state=MOVED, at=at, attempt=attempt, host=host, node=f"node-{host}", kind="migrate")


def actions(*transitions: Transition, runs: tuple[RunWithAttempts, ...] = ()) -> list[InstanceAction]:
    stored = StoredHistory(
        uuid="i",
        request_id="r",
        run="",
        project_id="p",
        user_id="u",
        flavor="f",
        state=ACTIVE,
        transitions=(*BUILT, *transitions),
        complete=True,
    )
    known = KnownInstance(
        uuid="i", cell="cell1", request_id="r", project_id="p", user_id="u", accepted_at=None
    )
    return actions_of(known, stored, runs)


def events(action: InstanceAction) -> list[tuple[object, ...]]:
    return [(each.name, each.attempt, each.host, each.result, each.reason) for each in action.events]


def test_a_move_has_an_event_for_each_target_that_was_tried() -> None:
    found = actions(moving(10.0, 2, "b"), moving(12.0, 3, "c", "no IP"), moved(15.0, 3, "c"))
    move = found[-1]
    assert [each.kind for each in found] == ["create", "migrate"]
    assert (move.started_at, move.finished_at, move.result, move.reason) == (10.0, 15.0, "success", None)
    assert (move.user_id, move.request_id) == ("olga", "req-1")
    assert events(move) == [
        ("move", 2, "b", "failed", "no IP"),
        ("move", 3, "c", "moved", None),
    ]


def test_a_move_that_failed_tells_why_and_one_without_a_target_too() -> None:
    for tried in ((), (moving(10.0, 2, "b"),)):
        stayed = Transition(
            state=NOT_MOVED,
            at=20.0,
            attempt=1,
            host="a",
            node="node-a",
            reason="no host",
            by=OLGA,
            kind="resize",
        )
        move = actions(*tried, stayed)[-1]
        assert (move.kind, move.result, move.reason, move.user_id) == (
            "migrate" if tried else "resize",
            "error",
            "no host",
            "olga",
        )
        assert events(move) == [("move", 2, "b", "failed", "no host") for _ in tried]


def test_a_revert_is_an_action_of_its_own_and_what_follows_is_on_the_host_again() -> None:
    lost = Transition(state=LOST, at=30.0, reason="gone")
    found = actions(moving(10.0, 2, "b"), moved(15.0, 2, "b"), moved(20.0, 1, "a"), lost)
    assert [(each.kind, each.result) for each in found] == [
        ("create", "success"),
        ("migrate", "success"),
        ("revert", "success"),
        ("lose", None),
    ]
    assert events(found[2]) == [("move", 1, "a", "moved", None)]
    assert found[3].events[0].host == "a"


def test_a_guest_that_is_lost_with_its_host_runs_again_where_it_is_evacuated_to() -> None:
    lost = Transition(state=LOST, at=9.0, reason="its host is dead: fire")
    found = actions(
        lost, moving(10.0, 2, "b", kind="evacuate"), moved(15.0, 2, "b"), Transition(state=ACTIVE, at=15.0)
    )
    assert [(each.kind, each.result, each.finished_at) for each in found[1:]] == [
        ("lose", "success", 15.0),
        ("evacuate", "success", 15.0),
    ]


def test_a_deletion_ends_the_move_that_is_under_way() -> None:
    found = actions(moving(10.0, 2, "b"), Transition(state=DELETING, at=12.0))
    assert [(each.kind, each.result) for each in found[1:]] == [("migrate", "abandoned"), ("delete", None)]
    assert events(found[1]) == [("move", 2, "b", "abandoned", None)]


def test_runs_of_moves_are_in_their_moves() -> None:
    def run(name: str, operation: str, began: float, *attempts: Attempt) -> RunWithAttempts:
        return RunWithAttempts(
            Run(
                id=name,
                request_id="r",
                project_id="p",
                user_id="u",
                instances=("i",),
                spec={"operation": operation},
                started_at=began,
                finished_at=began + 0.5,
                version=None,
            ),
            list(attempts),
        )

    refused = Attempt(
        run="two",
        ordinal=1,
        request_id="r",
        instance="i",
        host="c",
        node="node-c",
        cell="cell1",
        weight=1.0,
        at=9.2,
        result=REFUSED,
    )
    found = actions(
        moving(10.0, 2, "b"),
        moved(15.0, 2, "b"),
        runs=(run("one", "create", 0.5), run("two", "migrate", 9.0, refused), run("late", "migrate", 50.0)),
    )
    assert [each.run for each in found[0].events if each.name == "schedule"] == ["one"]
    assert [(each.name, each.host, each.run) for each in found[1].events] == [
        ("schedule", None, "two"),
        ("claim", "c", "two"),
        ("move", "b", "two"),
    ]
    assert found[1].started_at == 9.0


def history(found: list[InstanceAction]) -> InstanceHistory:
    return InstanceHistory(
        uuid="i",
        request_id="r",
        project_id="p",
        user_id="u",
        flavor="f",
        state=ACTIVE,
        cell="cell1",
        actions=found,
        missing=[],
    )


def test_its_project_sees_that_it_moved_and_neither_hosts_nor_operators() -> None:
    shown = seen(history(actions(moving(10.0, 2, "b", "secret"), moved(15.0, 2, "b"))))
    move = shown.actions[-1]
    assert (move.kind, move.result, move.user_id, move.request_id) == ("migrate", "success", None, None)
    assert events(move) == [("move", 2, None, "moved", None)]


def test_a_stay_ends_when_the_instance_runs_elsewhere() -> None:
    found = history(
        actions(moving(10.0, 2, "b"), moving(11.0, 3, "c"), moved(15.0, 3, "c"), moved(20.0, 1, "a"))
    )
    stays = [(each.host, each.result, each.began, each.ran, each.ended) for each in stays_of(found)]
    assert stays == [
        ("a", "built", 1.0, 2.0, 15.0),
        ("b", "failed", 10.0, None, 11.0),
        ("c", "built", 11.0, 15.0, 20.0),
        ("a", "built", 20.0, 20.0, None),
    ]
