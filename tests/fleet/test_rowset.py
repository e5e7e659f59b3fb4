"""A set of rows against Python's own set, sparse and dense."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.fleet.rowset import RowSet

ROWS_IN_FLEET = 300

OPERATIONS = st.tuples(
    st.sampled_from(["add", "add", "discard"]), st.integers(0, ROWS_IN_FLEET), st.sampled_from([1, 5, 50])
)


def assert_same(rows: RowSet, model: set[int]) -> None:
    asked = np.arange(ROWS_IN_FLEET + 200, dtype=np.intp)
    assert len(rows) == len(model)
    assert rows.rows().tolist() == sorted(model)
    assert rows.rows().dtype == np.intp
    assert rows.among(asked).tolist() == [row in model for row in asked.tolist()]
    assert all((row in rows) is (row in model) for row in asked.tolist())
    assert rows.among(asked[:0]).tolist() == []


@settings(deadline=None)
@given(st.lists(OPERATIONS, max_size=12), st.booleans())
def test_is_a_set(operations: list[tuple[str, int, int]], copied: bool) -> None:
    rows, model = RowSet(), set[int]()
    for operation, first, count in operations:
        left, left_model = rows, frozenset(model)
        if copied:
            rows = rows.copy()
        for row in range(first, first + count):
            if operation == "add":
                rows.add(row, ROWS_IN_FLEET)
                model.add(row)
            else:
                rows.discard(row)
                model.discard(row)
        assert_same(rows, model)
        if copied:
            assert_same(left, set(left_model))


def test_becomes_dense_and_empty_again() -> None:
    rows = RowSet()
    for row in range(0, 400, 2):
        rows.add(row, ROWS_IN_FLEET)
    assert_same(rows, set(range(0, 400, 2)))
    for row in range(400):
        rows.discard(row)
    assert_same(rows, set())
