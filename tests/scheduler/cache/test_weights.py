"""The weights of all hosts by several weighers together, kept as hosts change."""

import numpy as np
import pytest

from roost.fleet.columns import Float64
from roost.fleet.invalidation_log import InvalidationLog
from roost.scheduler.cache.host_columns import PlaceLayout
from roost.scheduler.cache.weights import MOST, BlockScores, Scale, weigh_one

HOSTS = 100


class Columns:
    """Two weighers' numbers of some hosts, and the weights of all that are worked out one by one."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        ranks = rng.permutation(HOSTS).astype(np.intp)
        self.layout = PlaceLayout(np.zeros(HOSTS, dtype=np.int32), 1, ranks)
        self.raws = [rng.random(len(self.layout)), rng.integers(0, 3, len(self.layout)).astype(np.float64)]
        self.changed = InvalidationLog()
        self.block_scores = BlockScores(self.layout, self.raws, self.changed)

    def weights(self, scales: list[Scale]) -> Float64:
        found = [
            weigh_one(scales, [raw.item(place) for raw in self.raws], place)
            for place in range(len(self.layout))
        ]
        return np.array(found).reshape(-1, self.layout.size)

    def put(self, number: int, place: int, value: float) -> None:
        self.raws[number][place] = value
        self.changed.append(place)


def scales(span: float = 1.0) -> list[Scale]:
    return [Scale(0, 0.0, span, 1.0), Scale(1, 0.0, 2.0, -0.7)]


def assert_weighed(columns: Columns, by: list[Scale], *, cached_only: bool) -> None:
    found = columns.block_scores.of(by, cached_only=cached_only)
    assert found is not None
    assert np.array_equal(found.weights, columns.weights(by))
    assert np.array_equal(found.most, columns.weights(by).max(axis=1))


def test_weights_are_those_of_each_host_to_the_last_bit_and_follow_changes() -> None:
    columns = Columns()
    assert columns.block_scores.of(scales(), cached_only=True) is None
    assert_weighed(columns, scales(), cached_only=False)
    for place, value in ((0, 5.0), (99, -1.0), (0, 0.25)):
        columns.put(0, place, value)
        columns.put(1, place, 2.0)
        assert_weighed(columns, scales(), cached_only=True)


def test_each_way_to_normalise_has_its_own_weights() -> None:
    columns = Columns()
    for span in range(1, MOST + 2):
        assert_weighed(columns, scales(float(span)), cached_only=False)
    columns.put(0, 50, 9.0)
    for span in range(2, MOST + 2):
        assert_weighed(columns, scales(float(span)), cached_only=True)
    assert columns.block_scores.of(scales(1.0), cached_only=True) is None


@pytest.mark.parametrize("multiplier", [1.0, 0.0, -2.0])
def test_a_multiplier_for_each_host_counts_as_one_for_all(multiplier: float) -> None:
    columns = Columns()
    of_each = np.full(len(columns.layout), multiplier)
    one, each = ([Scale(0, 0.0, 1.0, 1.0), Scale(1, 0.0, 2.0, by)] for by in (multiplier, of_each))
    assert np.array_equal(columns.weights(one), columns.weights(each))
    assert_weighed(columns, each, cached_only=False)
