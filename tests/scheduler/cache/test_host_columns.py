"""Places: each host has one, cells do not share blocks, and in a cell hosts stand as ties break."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roost.scheduler.cache.host_columns import PlaceLayout


@given(st.lists(st.integers(0, 3), max_size=200), st.randoms(use_true_random=False))
def test_every_host_has_a_place_in_its_cell(cells: list[int], random: Random) -> None:
    ranks = list(range(len(cells)))
    random.shuffle(ranks)
    layout = PlaceLayout(np.array(cells, dtype=np.int32), 4, np.array(ranks, dtype=np.intp))
    assert len(layout) == layout.blocks * layout.size
    assert layout.index_at[layout.place_of].tolist() == list(range(len(cells)))
    assert not layout.spare[layout.place_of].any()
    assert int((~layout.spare).sum()) == len(cells)
    for cell, (first, end) in enumerate(layout.of_cell):
        places = slice(first * layout.size, end * layout.size)
        hosts = layout.index_at[places][~layout.spare[places]].tolist()
        here = [index for index, of in enumerate(cells) if of == cell]
        assert hosts == sorted(here, key=ranks.__getitem__)
        assert layout.rank_at[places].tolist() == [ranks[index] for index in layout.index_at[places].tolist()]
        # Spare places repeat a host of the same cell, whose numbers spoil no bound.
        assert {cells[index] for index in layout.index_at[places].tolist()} <= {cell}


def test_blocks_grow_with_the_fleet_but_not_beyond_its_cells() -> None:
    few, many = np.arange(100), np.arange(100_000)
    assert PlaceLayout(np.zeros(100, dtype=np.int32), 1, few).size == 16
    assert PlaceLayout(np.zeros(100_000, dtype=np.int32), 1, many).size == 512
    assert PlaceLayout(np.arange(100_000, dtype=np.int32) % 2_000, 2_000, many).size == 32
