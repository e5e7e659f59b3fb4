"""Where a reshape is in the history of an instance."""

from roost.conductor.history.timeline import actions_of
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, LOST, RESHAPED, STARTING, Transition
from roost.state.api_database.past import KnownInstance
from roost.state.cell_database.history import StoredHistory

MOVED = Transition(state=RESHAPED, at=5.0, reason="holds 1 VGPU of a-gpu1")
ASSIGN = Transition(state=ASSIGNED, at=1.0, attempt=1, host="a", node="a", ordinal=1)
RUN = Transition(state=ACTIVE, at=2.0)


def kinds(*transitions: Transition) -> list[tuple[str, str | None, list[str]]]:
    """The actions of a history: kind, result and the names of the events."""
    stored = StoredHistory(
        uuid="i",
        request_id="r",
        run="",
        project_id="p",
        user_id="u",
        flavor="f",
        state=transitions[-1].state,
        transitions=transitions,
        complete=True,
    )
    known = KnownInstance(
        uuid="i", cell="cell1", request_id="r", project_id="p", user_id="u", accepted_at=None
    )
    actions = actions_of(known, stored, ())
    return [(each.kind, each.result, [event.name for event in each.events]) for each in actions]


def test_running_instance_is_reshaped_by_an_action_of_its_own() -> None:
    assert kinds(ASSIGN, RUN, MOVED) == [
        ("create", "success", ["build"]),
        ("reshape", "success", ["reshape"]),
    ]


def test_instance_that_is_built_is_reshaped_meanwhile() -> None:
    started = Transition(state=STARTING, at=1.5)
    assert kinds(ASSIGN, started, MOVED, RUN) == [("create", "success", ["build", "reshape"])]


def test_what_is_under_way_goes_on_after_a_reshape() -> None:
    lost, found = Transition(state=LOST, at=4.0), Transition(state=ACTIVE, at=6.0)
    assert [kind for kind, *_ in kinds(ASSIGN, RUN, lost, MOVED, found)] == ["create", "reshape", "lose"]
    assert kinds(ASSIGN, RUN, lost, MOVED, found)[-1] == ("lose", "success", ["lose", "find"])
    deleting = Transition(state=DELETING, at=4.0)
    assert [kind for kind, *_ in kinds(ASSIGN, RUN, deleting, MOVED)] == ["create", "reshape", "delete"]
