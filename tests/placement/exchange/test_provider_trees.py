"""The trees of providers: everybody once, parents first, circles broken in one place."""

from hypothesis import given
from hypothesis import strategies as st

from roost.placement.exchange.provider_trees import arrange_trees

IDS = st.integers(1, 12)
PARENTS = st.dictionaries(IDS, st.none() | IDS, max_size=12)


@given(PARENTS)
def test_everybody_is_there_once_after_their_parents(parents: dict[int, int | None]) -> None:
    trees = arrange_trees(parents)
    assert sorted(trees.order) == sorted(parents)
    place = {row: number for number, row in enumerate(trees.order)}
    for row, parent in trees.parents.items():
        assert parents[row] == parent and place[parent] < place[row]
        assert trees.roots[row] == trees.roots[parent]


@given(PARENTS)
def test_only_what_cannot_be_is_changed(parents: dict[int, int | None]) -> None:
    trees = arrange_trees(parents)
    assert trees.orphans == sorted(
        row for row, parent in parents.items() if parent is not None and parent not in parents
    )
    broken = [loop[0] for loop in trees.loops]
    for loop in trees.loops:
        assert loop[0] == min(loop)
        assert all(parents[row] == above for row, above in zip(loop, [*loop[1:], loop[0]], strict=True))
    tops = {row for row in parents if row not in trees.parents}
    assert tops == {row for row, parent in parents.items() if parent is None} | {*trees.orphans, *broken}
    assert {row for row in parents if trees.roots[row] == row} == tops


@given(PARENTS)
def test_a_tree_stays_together(parents: dict[int, int | None]) -> None:
    trees = arrange_trees(parents)
    roots = [trees.roots[row] for row in trees.order]
    assert len([one for one, before in zip(roots, [None, *roots], strict=False) if one != before]) == len(
        set(roots)
    )
