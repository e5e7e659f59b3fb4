"""Counters, gauges and histograms in memory."""

import pytest

from roost.process.metrics.instruments import (
    MOST_SERIES,
    OTHER,
    Counter,
    Gauge,
    Histogram,
    Label,
    start_counting,
    stop_counting,
)

COLOUR = Label("colour", "`red` or `blue`.", ("red", "blue"))
OPEN = Label("thing", "Anything.")


def test_nothing_is_counted_before_the_start() -> None:
    counter, gauge = Counter("c", "", ""), Gauge("g", "", "")
    histogram = Histogram("h", "", "", bounds=(1, 2))
    counter.inc()
    gauge.set(1)
    histogram.observe(1)
    assert (counter.labels().numbers(), gauge.labels().numbers()) == ((0,), ())
    assert histogram.labels().numbers() == (0, 0, 0, 0)


@pytest.mark.usefixtures("counted")
def test_a_value_is_in_the_bucket_of_the_bound_that_it_does_not_exceed() -> None:
    histogram = Histogram("h", "", "", bounds=(1, 2))
    for value in (0.5, 1, 1.5, 2, 2.5, 9):
        histogram.observe(value)
    assert histogram.labels().numbers() == (2, 2, 2, 16.5)


@pytest.mark.usefixtures("counted")
def test_label_values_outside_of_their_set_are_counted_together() -> None:
    counter = Counter("c", "", "", (COLOUR,))
    for value in ("red", "green", "yellow", "red"):
        counter.labels(value).inc()
    assert {labels: count.value for labels, count in counter.series.items()} == {("red",): 2, (OTHER,): 2}


@pytest.mark.usefixtures("counted")
def test_the_number_of_series_is_bounded() -> None:
    counter = Counter("c", "", "", (OPEN,))
    for number in range(2 * MOST_SERIES):
        counter.labels(str(number)).inc()
    assert len(counter.series) <= MOST_SERIES + 1
    assert sum(count.value for count in counter.series.values()) == 2 * MOST_SERIES
    counter.labels("0").inc()
    assert counter.series["0",].value == 2


@pytest.mark.usefixtures("counted")
def test_a_gauge_follows_its_source() -> None:
    gauge, level = Gauge("g", "", ""), [3]
    gauge.follow(lambda: level[0])
    assert gauge.labels().numbers() == (3,)
    level[0] = 4
    assert gauge.labels().numbers() == (4,)


def test_counting_begins_at_zero_and_with_all_series_that_are_known() -> None:
    known, partly = Counter("a", "", "", (COLOUR,)), Counter("b", "", "", (COLOUR, OPEN))
    alone, gauge = Histogram("c", "", "", bounds=(1,)), Gauge("d", "", "")
    start_counting((known, partly, alone, gauge))
    known.labels("red").inc()
    gauge.set(1)
    # As in a process that is forked.
    start_counting((known, partly, alone, gauge))
    assert {labels: each.numbers() for labels, each in known.series.items()} == {
        ("red",): (0,),
        ("blue",): (0,),
    }
    assert partly.series == {}
    assert alone.series[()].numbers() == (0, 0, 0)
    assert gauge.labels().numbers() == ()
    stop_counting()


def test_labels_must_be_all_given() -> None:
    with pytest.raises(AssertionError, match="colour"):
        Counter("c", "", "", (COLOUR,)).labels()
