"""Values that many nodes share."""

import numpy as np

from roost.scheduler.nodes.labels import HAS, LACKS, NONE, Labels


def test_equal_values_are_judged_once() -> None:
    labels = Labels(())
    for index in range(0, 1000, 2):
        labels.put(index, ("az1",))
    labels.put(3, ("az1", "az2"))
    asked = []

    def judge(values: tuple[str, ...]) -> float:
        asked.append(values)
        return len(values)

    assert labels.judged(judge, np.array([0, 1, 3, 998])).tolist() == [1, 0, 2, 1]
    assert sorted(asked) == [(), ("az1",), ("az1", "az2")]


def test_host_beyond_those_with_values_has_none() -> None:
    labels = Labels(())
    labels.put(0, ("x",))
    assert labels.judged(len, np.array([0, 5000])).tolist() == [1, 0]
    assert labels.of(5000) == ()
    assert labels.of(0) == ("x",)


def test_values_can_be_changed_and_taken_away() -> None:
    labels = Labels(())
    labels.put(0, ("x",))
    labels.put(0, ("y", "z"))
    assert labels.of(0) == ("y", "z")
    labels.put(0, ())
    assert labels.of(0) == ()
    assert labels.judged(len, np.array([], dtype=np.intp)).tolist() == []


def test_value_that_no_node_has_is_forgotten() -> None:
    labels = Labels("")
    for number in range(10_000):
        labels.put(number % 3, f"value {number}")
    asked: list[str] = []
    labels.judged(lambda value: asked.append(value) or 0.0, np.arange(3))
    assert len(asked) <= 5
    assert [labels.of(index) for index in range(3)] == ["value 9999", "value 9997", "value 9998"]
    assert labels.labelled == 3


def test_words_are_found_without_a_look_at_all_values() -> None:
    labels, asked = Labels[tuple[str, ...]](()), list[tuple[str, ...]]()

    def split(value: tuple[str, ...]) -> tuple[str, ...]:
        asked.append(value)
        return value

    nodes = np.arange(5)
    labels.put(1, ("a",))
    labels.put(2, ("a", "b"))
    labels.put(3, ("c",))
    assert labels.holding("a", split, nodes).tolist() == [NONE, HAS, HAS, LACKS, NONE]
    assert labels.holding("b", split, nodes).tolist() == [NONE, LACKS, HAS, LACKS, NONE]
    assert labels.holding("x", split, nodes).tolist() == [NONE, LACKS, LACKS, LACKS, NONE]
    assert len(asked) == 3
    labels.put(1, ("b",))
    labels.put(3, ())
    assert labels.holding("b", split, nodes).tolist() == [NONE, HAS, HAS, NONE, NONE]
    assert labels.holding("c", split, nodes).tolist() == [NONE, LACKS, LACKS, NONE, NONE]
