"""Rates and latencies follow from two samples, which are read from Prometheus' text."""

import math

import pytest

from roost.cli.top.figures import OperationFigures, ProcessFigures, figures, parse_sample, quantile

BEFORE = """\
# HELP roost_http_request_duration_seconds Time.
# TYPE roost_http_request_duration_seconds histogram
roost_http_request_duration_seconds_bucket{le="0.01",operation="GET /usages",status="200"} 10.0
roost_http_request_duration_seconds_bucket{le="0.1",operation="GET /usages",status="200"} 10.0
roost_http_request_duration_seconds_bucket{le="+Inf",operation="GET /usages",status="200"} 10.0
roost_http_request_duration_seconds_count{operation="GET /usages",status="200"} 10.0
roost_http_request_duration_seconds_sum{operation="GET /usages",status="200"} 0.05
# TYPE roost_scheduler_decisions_total counter
roost_scheduler_decisions_total{result="placed"} 5.0
# TYPE roost_scheduler_refusals_total counter
roost_scheduler_refusals_total{cause="placement"} 1.0
# TYPE roost_ledger_commits_total counter
roost_ledger_commits_total 100.0
# TYPE roost_ledger_version gauge
roost_ledger_version 7.0
# TYPE roost_process_cpu_seconds_total counter
roost_process_cpu_seconds_total{process="1"} 30.0
roost_process_cpu_seconds_total{process="2"} 30.0
"""

NOW = """\
# TYPE roost_http_request_duration_seconds histogram
roost_http_request_duration_seconds_bucket{le="0.01",operation="GET /usages",status="200"} 20.0
roost_http_request_duration_seconds_bucket{le="0.1",operation="GET /usages",status="200"} 28.0
roost_http_request_duration_seconds_bucket{le="+Inf",operation="GET /usages",status="200"} 28.0
roost_http_request_duration_seconds_bucket{le="0.01",operation="GET /usages",status="503"} 0.0
roost_http_request_duration_seconds_bucket{le="0.1",operation="GET /usages",status="503"} 2.0
roost_http_request_duration_seconds_bucket{le="+Inf",operation="GET /usages",status="503"} 2.0
roost_http_request_duration_seconds_count{operation="GET /usages",status="200"} 28.0
roost_http_request_duration_seconds_count{operation="GET /usages",status="503"} 2.0
# TYPE roost_scheduler_decisions_total counter
roost_scheduler_decisions_total{result="placed"} 7.0
roost_scheduler_decisions_total{result="refused"} 4.0
# TYPE roost_scheduler_refusals_total counter
roost_scheduler_refusals_total{cause="placement"} 5.0
# TYPE roost_ledger_commits_total counter
roost_ledger_commits_total 20.0
# TYPE roost_ledger_version gauge
roost_ledger_version 2.0
# TYPE roost_scheduler_decision_duration_seconds histogram
roost_scheduler_decision_duration_seconds_bucket{le="0.01"} 4.0
roost_scheduler_decision_duration_seconds_bucket{le="+Inf"} 4.0
# TYPE roost_http_overload_refusals_total counter
roost_http_overload_refusals_total{cause="reads"} 6.0
# TYPE roost_health_check_passed gauge
roost_health_check_passed{check="database"} 1.0
roost_health_check_passed{check="ledger"} 0.0
# TYPE roost_ledger_lag_commits gauge
roost_ledger_lag_commits 3.0
# TYPE roost_ledger_lag_seconds gauge
roost_ledger_lag_seconds 1.25
# TYPE roost_process_cpu_seconds_total counter
roost_process_cpu_seconds_total{process="1"} 31.0
roost_process_cpu_seconds_total{process="2"} 0.5
# TYPE roost_process_start_time_seconds gauge
roost_process_start_time_seconds{process="1"} 1000.0
# TYPE roost_process_resident_memory_bytes gauge
roost_process_resident_memory_bytes{process="10"} 2048.0
"""


def test_rates_are_growth_by_seconds_and_a_counter_that_begins_again_counts_from_0() -> None:
    found = figures(parse_sample(BEFORE, 100.0), parse_sample(NOW, 102.0))
    assert found.seconds == 2.0
    [usages] = found.operations
    assert usages == OperationFigures("GET /usages", 10.0, 1.0, pytest.approx(0.01), pytest.approx(0.0982))
    assert found.decisions == {"placed": 1.0, "refused": 2.0}
    assert found.refusals == {"placement": 2.0}
    assert found.commits == 10.0
    assert found.version == 2.0
    assert (found.decision_p50, found.decision_p99) == (pytest.approx(0.005), pytest.approx(0.0099))
    assert found.overload == {"reads": 3.0}
    assert found.failing == ["ledger"]
    assert (found.lag_commits, found.lag_seconds) == (3.0, 1.25)
    assert (found.outruns, found.waiting) == (None, None)
    assert found.processes == [
        ProcessFigures("1", 1000.0, 0.5, None),
        ProcessFigures("2", None, 0.25, None),
        ProcessFigures("10", None, None, 2048.0),
    ]


def test_an_operation_without_a_request_between_the_samples_is_left_out() -> None:
    assert figures(parse_sample(NOW, 1.0), parse_sample(NOW, 2.0)).operations == []


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (0.75, 1.5), (1.0, 2.0)]
)
def test_a_quantile_is_linear_inside_of_a_bucket(share: float, expected: float) -> None:
    assert quantile(share, {1.0: 50.0, 2.0: 100.0, math.inf: 100.0}) == pytest.approx(expected)


def test_a_quantile_beyond_the_last_bound_is_this_bound_and_of_nothing_is_none() -> None:
    assert quantile(0.9, {1.0: 1.0, math.inf: 10.0}) == 1.0
    assert quantile(0.5, {1.0: 0.0, math.inf: 0.0}) is None
    assert quantile(0.5, {}) is None


def test_what_is_no_metric_is_refused() -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_sample("<html>not found</html>", 0.0)
