"""The load generator counts every answer once."""

import threading

import numpy as np
import pytest

from bench.answering import answering, http
from roost.bench.errors import BenchError
from roost.bench.load_generator import LoadPlan, LoadResult, run_plan
from roost.bench.measurement import Measurement, figures, http_request, run_load

BODY = b"x" * 100_000


def sent(port: int, *paths: str, **options) -> LoadResult:
    """Send requests for these paths once each on one connection, and return the result."""
    requests = [http_request("GET", path) for path in paths]
    options = {"clients": 1, "seconds": 5.0, "cyclic": False, "timeout": 2.0, **options}
    return run_plan(LoadPlan(port=port, requests=requests, **options))


def test_each_request_is_sent_once_and_in_order():
    with answering(lambda path: http("200", b"{}")) as server:
        answered = sent(server.port, "/a", "/b", "/c")
    assert server.paths == ["/a", "/b", "/c"]
    assert answered.outcomes == {"200": 3}
    assert len(answered.latencies) == 3 * 8


def test_warm_requests_are_sent_on_each_connection_and_not_counted():
    with answering(lambda path: http("200", b"{}")) as server:
        answered = sent(server.port, "/a", clients=3, warm_up=[http_request("GET", "/warm")])
    assert server.paths == ["/warm"] * 3 + ["/a"]
    assert answered.outcomes == {"200": 1}
    assert answered.received == 2


def test_requests_go_round_until_time_is_up():
    with answering(lambda path: http("204")) as server:
        answered = sent(server.port, "/a", "/b", cyclic=True, seconds=0.2)
    assert answered.outcomes["204"] == len(server.paths) > 10
    assert answered.seconds >= 0.2


def test_at_least_so_many_are_sent_however_long_they_take():
    with answering(lambda path: http("200", BODY), pause=0.05) as server:
        answered = sent(server.port, "/a", cyclic=True, seconds=0.01, min_requests=3)
    assert answered.outcomes == {"200": 3}
    # The answer has three pieces with a pause after each. The latency includes the last byte.
    assert np.frombuffer(answered.latencies).min() >= 0.1


def test_a_body_that_comes_in_pieces_is_counted_whole():
    with answering(lambda path: http("200", BODY), pause=0.01) as server:
        assert sent(server.port, "/a", "/b").received == 2 * len(BODY)


def test_errors_are_told_apart_by_their_code():
    answers = {
        b"/full": http("409", b'{"errors": [{"code": "placement.undefined_code"}]}'),
        b"/raced": http("409", b'{"errors": [{"code": "placement.concurrent_update"}]}'),
        b"/broken": http("500", b"oh"),
    }
    with answering(answers.__getitem__) as server:
        answered = sent(server.port, "/full", "/raced", "/broken")
    assert answered.outcomes == {
        "409 placement.undefined_code": 1,
        "409 placement.concurrent_update": 1,
        "500": 1,
    }


def test_after_a_conflict_the_same_request_is_sent_again_so_often():
    conflict = http("409", b'{"errors": [{"code": "placement.concurrent_update"}]}')
    with answering(lambda path: conflict) as server:
        answered = sent(server.port, "/a", "/b", conflict_retries=2)
    assert server.paths == ["/a"] * 3 + ["/b"] * 3
    assert answered.outcomes == {"409 placement.concurrent_update": 6}


def test_a_connection_that_is_closed_is_opened_again():
    with answering(lambda path: http("200", b"{}", b"Connection: close")) as server:
        answered = sent(server.port, "/a", "/b", "/c")
    assert answered.outcomes == {"200": 3}
    assert answered.connections == 3


def test_an_answer_that_does_not_come_is_an_outcome_too():
    with answering(lambda path: b"" if path == b"/b" else http("200", b"{}")) as server:
        assert sent(server.port, "/a", "/b", "/c").outcomes == {"200": 2, "cut off": 1}


def test_an_overdue_answer_ends_the_run():
    with answering(lambda path: http("200", BODY), pause=1.0) as server:
        answered = sent(server.port, "/a", "/b", timeout=0.2)
    assert answered.outcomes == {"overdue": 1}
    assert server.paths == ["/a"]


def test_many_connections_wait_for_their_answers_at_the_same_time():
    together = threading.Barrier(20)

    def when_all_are_there(path: bytes) -> bytes:
        together.wait(60)
        return http("200", BODY)

    with answering(when_all_are_there) as server:
        answered = sent(server.port, *["/a"] * 20, clients=20)
    assert answered.outcomes == {"200": 20}


def test_figures_are_those_of_the_load():
    load = Measurement()
    for milliseconds in (range(1, 51), range(51, 102)):
        seconds = np.array(milliseconds) / 1000
        load.add(LoadResult(2.0, seconds.tobytes(), {"200": len(seconds) - 1, "500": 1}, 1_010, 0.0101, 1))
    shown = figures(load)
    assert (shown.requests, shown.p50_ms, shown.p99_ms) == (101, pytest.approx(51), pytest.approx(100))
    assert shown.per_second == pytest.approx(99 / 4.0)
    assert shown.size == 20
    assert shown.client_us == pytest.approx(200)
    assert shown.failed == {"500": 2}
    assert figures(load, items=100).per_second == pytest.approx(100 * 99 / 4.0)


def test_the_generator_runs_in_a_process_of_its_own():
    with answering(lambda path: http("200", b"{}")) as server:
        plan = LoadPlan(
            port=server.port, clients=2, requests=[http_request("GET", "/a")] * 10, seconds=5, cyclic=False
        )
        assert run_load(plan).outcomes == {"200": 10}


def test_what_keeps_the_generator_from_running_is_said():
    with answering(lambda path: b"") as server:
        plan = LoadPlan(
            port=server.port, clients=1, requests=[], seconds=1, warm_up=[http_request("GET", "/a")]
        )
    with pytest.raises(BenchError, match=r"the load generator: [\s\S]*ConnectionRefused"):
        run_load(plan)
