"""The log of changed rows."""

from roost.fleet.invalidation_log import InvalidationLog


def test_a_position_that_the_log_no_longer_reaches_gives_none() -> None:
    log = InvalidationLog(min_entries=3)
    for row in range(6):
        log.append(row)
    assert log.since(0) == {0, 1, 2, 3, 4, 5}
    log.append(6)
    assert log.end == 7
    assert log.since(2) is None
    assert log.since(3) == {3, 4, 5, 6}
    assert log.since(7) == set()
