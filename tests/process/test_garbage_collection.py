"""What a process has loaded is kept from the garbage collector, which still finds what is garbage."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from roost.process.garbage_collection import YOUNG_OBJECTS, keep_what_is_loaded


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.callbacks.clear()
    gc.unfreeze()
    gc.set_threshold(*before)


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_cycles_are_collected_after_some_thousands_of_objects_and_not_before():
    keep_what_is_loaded()
    cycle = weakref.ref(Cycle())
    some = [[] for _ in range(YOUNG_OBJECTS // 2)]
    assert cycle() is not None
    more = [[] for _ in range(YOUNG_OBJECTS)]
    assert cycle() is None
    assert len(some) < len(more)


def test_what_is_loaded_is_visited_no_more():
    loaded = [[] for _ in range(100)]
    keep_what_is_loaded()
    assert not any(each is loaded for each in gc.get_objects())


def test_what_a_whole_collection_finds_alive_is_visited_no_more():
    keep_what_is_loaded()
    cached = [[] for _ in range(100)]
    assert any(each is cached for each in gc.get_objects())
    gc.collect()
    assert not any(each is cached for each in gc.get_objects())
    cycle = weakref.ref(Cycle())
    gc.collect()
    assert cycle() is None


def test_exempt_garbage_is_found_when_very_much_is_exempt(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("roost.process.garbage_collection.SPARE_OBJECTS", -gc.get_freeze_count() - 10_000_000)
    monkeypatch.setattr("roost.process.garbage_collection.ROUNDS", 1)
    keep_what_is_loaded()
    cycle = Cycle()
    gc.collect()
    seen = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert seen() is None


def test_a_whole_collection_comes_after_as_many_objects_however_many_are_exempt():
    exempt = [[] for _ in range(2_000_000)]
    keep_what_is_loaded()
    whole = gc.get_stats()[2]["collections"]
    kept = [[] for _ in range(150_000)]
    assert gc.get_stats()[2]["collections"] > whole
    assert len(kept) < len(exempt)
