"""The panes: what each asks services for, and the rows that it makes of the answers."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from roost.cli.top.panes.cells import CellsPane
from roost.cli.top.panes.devices import DevicesPane
from roost.cli.top.panes.hosts import HostsPane
from roost.cli.top.panes.pane import Pane, PaneQuery, PaneView
from roost.cli.top.panes.refusals import MOST_KEPT, PAGE, REASONS_SECONDS, RefusalsPane

Answers = Mapping[str, Callable[[dict[str, Any]], object] | object]


class Told:
    """Services that answer by path. ``asked``: the path and the query of each request."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def read(self, service: str, path: str, form: type[Any], **query: Any) -> Any:
        given = {name: each for name, each in query.items() if each is not None}
        self.asked.append((f"{service} {path}", given))
        answer = self._answers[path]
        return msgspec.convert(answer(query) if callable(answer) else answer, form)


def read(pane: Pane, services: Told, query: PaneQuery) -> PaneView:
    return pane.read(services, query)  # type: ignore[arg-type]


def shown(view: PaneView, width: int = 200) -> list[list[str]]:
    """The words of the head and of all rows."""
    lines = [*view.head(width), *view.lines(width, 0, 1000)]
    return [line.plain.split() for line in lines]


def host(name: str, state: str = "up", **used: int) -> dict[str, object]:
    resources = {key: {"capacity": 100, "used": amount} for key, amount in used.items()}
    return {
        "host": name,
        "zone": "z",
        "cell": "c",
        "state": state,
        "instances": 3,
        "resources": resources,
    }


def page(*hosts: dict[str, object], matching: int | None = None, known: int = 9) -> dict[str, object]:
    number = len(hosts) if matching is None else matching
    return {"hosts": hosts, "matching": number, "up": number, "disabled": 0, "down": 0, "hosts_known": known}


def test_hosts_are_sorted_and_paged_by_the_scheduler() -> None:
    services = Told({"/v1/scheduler/hosts": page(host("a", VCPU=50, CUSTOM_X=95), host("b"), matching=1000)})
    view = read(HostsPane(), services, PaneQuery(1, first=40, rows=30, sort="used", search="rack"))
    assert services.asked == [
        ("scheduler /v1/scheduler/hosts", {"sort": "used", "search": "rack", "offset": 40, "limit": 30})
    ]
    assert view.total(200) == 1000
    assert [line.plain.split() for line in view.lines(200, 39, 4)] == [
        ["…"],
        ["a", "up", "c", "z", "3", "50%", "95%", "███████████▍", "CUSTOM_X"],
        ["b", "up", "c", "z", "3"],
        ["…"],
    ]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"matching": 9, "up": 5, "disabled": 3, "down": 1}, "9 hosts: 5 up, 3 disabled, 1 down"),
        ({"matching": 1, "up": 1}, "1 host of 9: 1 up"),
    ],
)
def test_states_add_up_to_the_hosts_that_match(counts: dict[str, int], said: str) -> None:
    answer = {"hosts": [], "hosts_known": 9, "disabled": 0, "down": 0, **counts}
    view = read(HostsPane(), Told({"/v1/scheduler/hosts": answer}), PaneQuery(1, sort="used"))
    assert view.head(60)[0].plain == f"{said}; fullest first"


def test_names_of_others_cannot_move_the_cursor() -> None:
    evil = "a\x1b[2J\nb\u202e"
    services = Told({"/v1/scheduler/hosts": page({**host(evil, state=evil), "zone": evil, "cell": evil})})
    view = read(HostsPane(), services, PaneQuery(1, sort="name", search=evil))
    assert all(line.plain.isprintable() for line in [*view.head(200), *view.lines(200, 0, 9)])


def capacity(**used: int) -> dict[str, object]:
    return {"resources": {name: {"capacity": 16, "used": amount} for name, amount in used.items()}}


def test_devices_are_the_classes_beside_processors_memory_and_disk() -> None:
    services = Told(
        {
            "/v1/capacity": capacity(VCPU=1, PCPU=1, MEMORY_MB=1, DISK_GB=1, VGPU=4, CUSTOM_FPGA=9),
            "/v1/scheduler/hosts": page(host("a", VGPU=30), host("b", state="down", VGPU=0)),
        }
    )
    for choice, name in ((0, "CUSTOM_FPGA"), (1, "VGPU"), (2, "CUSTOM_FPGA"), (-1, "VGPU")):
        view = read(DevicesPane(), services, PaneQuery(3, rows=10, sort="free", choice=choice))
        assert services.asked[-1][1]["resource_class"] == name
    assert shown(view) == [
        ["◂", "2/2", "▸", "VGPU:", "4", "used", "of", "16,", "2", "hosts;", "most", "free", "first"],
        ["host", "state", "cell", "zone", "free", "used", "of"],
        ["a", "up", "c", "z", "70", "30", "100", "███▋"],
        ["b", "down", "c", "z", "100", "0", "100"],
    ]


def test_a_cloud_without_devices_says_so() -> None:
    view = read(DevicesPane(), Told({"/v1/capacity": capacity(VCPU=1)}), PaneQuery(3, sort="free"))
    assert view.lines(60, 0, 9)[0].plain.startswith("No host has a resource class but")


def test_cells_that_are_not_up_come_first() -> None:
    counts = {"active": 4, "error": 1}
    cell = {"conductors": 1, "instances": counts, "enabled": True, "hosts": 9, "hosts_up": 9}
    cells = [
        {**cell, "name": "a", "state": "up"},
        {**cell, "name": "b", "state": "up", "enabled": False},
        {**cell, "name": "c", "state": "no_conductor", "hosts_up": 8},
        {**cell, "name": "d", "state": "down", "instances": None, "enabled": None},
    ]
    view = read(CellsPane(), Told({"/v1/cells": {"cells": cells}}), PaneQuery(2))
    assert shown(view) == [
        ["4", "cells:", "2", "up,", "1", "down,", "1", "no", "conductor;", "35", "of", "36", "hosts", "up"],
        ["cell", "state", "conductors", "hosts", "up", "instances", "active", "error"],
        ["c", "no", "conductor", "1", "8", "of", "9", "5", "4", "1"],
        ["d", "down", "1", "9", "of", "9", "?", "?", "?"],
        ["b", "disabled", "1", "9", "of", "9", "5", "4", "1"],
        ["a", "up", "1", "9", "of", "9", "5", "4", "1"],
    ]


class Records:
    """Refused runs of a scheduler, the last one first, as `/v1/scheduler/records` pages them."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.sent = 0

    def refuse(self, number: int, at: float, explained: bool = True) -> None:
        for _ in range(number):
            place = len(self.runs)
            stages = [{"name": "8 VCPU", "hosts": 10}, {"name": "ComputeFilter", "hosts": 0}]
            self.runs.insert(
                0,
                {
                    "id": f"run-{place}",
                    "request_id": f"req-{place}",
                    "instances": ["i"],
                    "started_at": at,
                    "refusal": "no candidates",
                    "steps": [{"name": "hosts with candidates", "left": 0}],
                    "reasons": {"sentence": "why", "hosts": 10, "stages": stages} if explained else None,
                },
            )

    def __call__(self, query: dict[str, Any]) -> object:
        assert query["refused"] == "true"
        found = [each for each in self.runs if each["started_at"] >= (query.get("since") or 0)]
        if query.get("marker"):
            names = [each["id"] for each in found]
            found = found[names.index(query["marker"]) + 1 :]
        sent = found[: query["limit"]]
        self.sent += len(sent)
        following = sent[-1]["id"] if len(found) > len(sent) else None
        return {"records": [{"run": each} for each in sent], "next": following}


def requests(view: PaneView) -> list[str]:
    """The requests of all rows, of any order."""
    return [line.plain.split()[-3] for line in view.lines(200, 0, 10_000)]


NOW = 1000.0


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def refusals(records: Records) -> Callable[..., PaneView]:
    """Reads the refusals, as a screen of ten rows from a row on."""
    pane, services = RefusalsPane(clock=lambda: NOW), Told({"/v1/scheduler/records": records})
    return lambda first=0: read(pane, services, PaneQuery(4, first=max(first - 10, 0), rows=30))


def test_only_new_refusals_are_read_again(records: Records, refusals: Callable[..., PaneView]) -> None:
    records.refuse(40, at=NOW - 500)
    assert requests(refusals()) == [f"req-{number}" for number in reversed(range(40))]
    records.sent = 0
    records.refuse(2, at=NOW - 5)
    assert requests(refusals())[:3] == ["req-41", "req-40", "req-39"]
    refusals()
    assert records.sent <= 40 + 2 + 2


def test_a_refusal_is_read_again_until_its_reasons_are_there(
    records: Records, refusals: Callable[..., PaneView]
) -> None:
    records.refuse(1, at=NOW - 2, explained=False)
    assert shown(refusals())[-1][1:4] == ["hosts", "with", "candidates"]
    records.refuse(1, at=NOW - 1)
    records.runs[1]["reasons"] = records.runs[0]["reasons"]
    assert [row[1:3] for row in shown(refusals())[-2:]] == [["8", "VCPU"], ["8", "VCPU"]]
    old = Records()
    old.refuse(1, at=NOW - REASONS_SECONDS - 1, explained=False)
    old.refuse(1, at=NOW - 1)
    services = Told({"/v1/scheduler/records": old})
    pane = RefusalsPane(clock=lambda: NOW)
    read(pane, services, PaneQuery(4, rows=30))
    read(pane, services, PaneQuery(4, rows=30))
    assert services.asked[-1][1]["since"] == NOW - 1


def test_older_refusals_are_read_when_they_are_scrolled_to(
    records: Records, refusals: Callable[..., PaneView]
) -> None:
    records.refuse(3 * PAGE, at=NOW - 700)
    assert len(requests(refusals())) == PAGE
    assert len(requests(refusals(PAGE + 20))) == 2 * PAGE
    assert requests(refusals(3 * PAGE - 10)) == [f"req-{number}" for number in reversed(range(3 * PAGE))]
    assert requests(refusals(5 * PAGE)) == requests(refusals())


def test_a_flood_between_two_readings_begins_the_list_anew(
    records: Records, refusals: Callable[..., PaneView]
) -> None:
    records.refuse(5, at=NOW - 60)
    refusals()
    records.refuse(2 * PAGE, at=NOW - 3)
    assert requests(refusals()) == [f"req-{number}" for number in reversed(range(PAGE + 5, 2 * PAGE + 5))]
    assert len(requests(refusals(2 * PAGE))) == 2 * PAGE + 5


def test_no_more_than_a_screen_needs_is_kept(records: Records, refusals: Callable[..., PaneView]) -> None:
    records.refuse(MOST_KEPT + 3 * PAGE, at=NOW - 700)
    assert len(requests(refusals(MOST_KEPT + 2 * PAGE))) <= MOST_KEPT + PAGE


def test_the_last_ten_minutes_are_counted_by_cause(
    records: Records, refusals: Callable[..., PaneView]
) -> None:
    assert refusals().head(60)[0].plain == "0 refused in 10 min"
    records.refuse(1, at=NOW - 900)
    records.refuse(3, at=NOW - 60)
    records.refuse(1, at=NOW - 50, explained=False)
    assert refusals().head(60)[0].plain == "4 refused in 10 min: 8 VCPU 3, hosts with candidates 1"
    records.refuse(PAGE, at=NOW - 10)
    assert refusals().head(60)[0].plain.startswith("100+ refused in 10 min: 8 VCPU 100")
