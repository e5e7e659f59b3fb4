"""The contention benchmark finds a service that allocates more than its capacity."""

from typing import Any

import httpx
import numpy as np
import pytest

from roost.bench import contention, measurement
from roost.bench.load_generator import LoadResult
from roost.bench.measurement import ComparedSetting


class FakeService:
    """A service with one provider, whose usage before and after the claims is given."""

    name = "told"
    port = 0

    def __init__(self, *used: int) -> None:
        self._used = iter(used)

    def request(self, method: str, path: str) -> httpx.Response:
        if path.endswith("usages"):
            return httpx.Response(200, json={"usages": {"VCPU": next(self._used)}})
        stock = {"total": 10, "reserved": 2, "allocation_ratio": 1.5}
        return httpx.Response(200, json={"inventories": {"VCPU": stock}})


def contended(monkeypatch: pytest.MonkeyPatch, service: Any, **outcomes: int) -> dict[str, Any]:
    """Return the row of a service with these answers."""
    seconds = np.full(sum(outcomes.values()), 0.01)
    named = {name.strip("_").replace("__", " placement."): count for name, count in outcomes.items()}
    answered = LoadResult(1.0, seconds.tobytes(), named, 0, 0.0, 1)
    monkeypatch.setattr(measurement, "run_load", lambda plan: answered)
    return contention.contend(ComparedSetting(folder=None), service, ["p"], 1, 1)  # type: ignore[arg-type]


def test_claims_up_to_the_capacity_are_well(monkeypatch):
    row = contended(
        monkeypatch, FakeService(2, 12), _204=10, _409__undefined_code=3, _409__concurrent_update=5
    )
    assert (row["claimed"], row["refused"], row["conflicts"], row["conflicts_per_success"]) == (10, 3, 5, 0.5)
    assert (row["overfull"], row["unaccounted"], row["other"]) == (0, 0, {})


def test_a_host_that_holds_more_than_it_has_is_found(monkeypatch):
    assert contended(monkeypatch, FakeService(3, 13), _204=10)["overfull"] == 1


def test_claims_that_are_not_in_use_are_found(monkeypatch):
    assert contended(monkeypatch, FakeService(2, 11), _204=10)["unaccounted"] == 1


def test_where_answers_were_missing_nobody_can_tell(monkeypatch):
    assert contended(monkeypatch, FakeService(2, 12), _204=9, overdue=1)["unaccounted"] is None
