"""Services are up by the counts of their reports, not by clocks."""

from roost.nova.database.services import ServiceRow
from roost.nova.liveness import ServiceLiveness
from support.nova_clouds import moment


def look(liveness: ServiceLiveness, at: float, counts: dict[str, int], seen: dict[str, float]) -> set[str]:
    rows = [ServiceRow(host, count, 70) for host, count in counts.items()]
    liveness.look(rows, {host: moment(second) for host, second in seen.items()}, at, at)
    return set(liveness.up)


def test_service_whose_clock_is_wrong_is_up_while_it_reports() -> None:
    liveness = ServiceLiveness(60.0)
    assert look(liveness, 0.0, {"a": 1, "b": 1}, {"a": 0.0, "b": 50.0}) == {"a", "b"}
    for second in range(5, 200, 5):
        counts = {"a": second, "b": second}
        assert not liveness.is_new([ServiceRow("a", second, 70)])
        assert look(liveness, float(second), counts, {}) == {"a", "b"}


def test_row_that_comes_later_with_an_old_report_is_down_until_it_reports() -> None:
    liveness = ServiceLiveness(60.0)
    look(liveness, 0.0, {"a": 1}, {"a": 0.0})
    assert liveness.is_new([ServiceRow("old", 4, 70)])
    seen = {"a": 100.0, "old": 0.0, "new": 90.0}
    assert look(liveness, 5.0, {"a": 2, "old": 4, "new": 0}, seen) == {"a", "new"}
    assert look(liveness, 10.0, {"a": 3, "old": 4, "new": 0}, {}) == {"a", "new"}
    assert look(liveness, 15.0, {"a": 4, "old": 5, "new": 0}, {}) == {"a", "old", "new"}


def test_service_that_never_reported_is_down_beside_one_that_did() -> None:
    liveness = ServiceLiveness(60.0)
    assert look(liveness, 0.0, {"a": 1, "b": 0}, {"a": 0.0}) == {"a"}
    assert look(liveness, 5.0, {"a": 1, "b": 1}, {}) == {"a", "b"}
    assert look(liveness, 10.0, {"a": 1}, {}) == {"a"}


def test_all_are_down_while_the_cell_is_away() -> None:
    liveness = ServiceLiveness(60.0)
    look(liveness, 0.0, {"a": 1}, {"a": 0.0})
    liveness.away(10.0)
    liveness.away(69.0)
    assert liveness.up == {"a"}
    liveness.away(70.0)
    assert liveness.up == set()
