"""``roost instance list``: an empty list of a place that is not there is told."""

from typing import Any

import pytest
from click.testing import CliRunner

from roost.cli.instance import instance
from roost.cli.service_client import RequestRefused, ServiceClient


@pytest.fixture(params=[True, False], ids=["admin", "may not see places"])
def cloud(request, monkeypatch) -> bool:
    """A conductor with the host host1 and the cell cell1, and no instances."""

    def ask(self: ServiceClient, method: str, path: str, body: Any = None, query: Any = None) -> Any:
        if path == "/v1/instances":
            return {"instances": [], "cells_down": [], "next": None}
        if not request.param:
            raise RequestRefused(403, "not for you")
        if path not in ("/v1/hosts/host1", "/v1/cells/cell1"):
            raise RequestRefused(404, f"no such place as {path}")
        return {}

    monkeypatch.setattr(ServiceClient, "ask", ask)
    return request.param


@pytest.mark.parametrize("place", [(), ("--host", "host1"), ("--cell", "cell1", "--host", "host1")])
def test_a_place_that_is_there_may_be_empty(cloud, place: tuple[str, ...]) -> None:
    assert CliRunner().invoke(instance, ["list", *place]).exit_code == 0


@pytest.mark.parametrize(
    "place", [("--host", "hots1"), ("--cell", "cell2"), ("--cell", "cell1", "--host", "x")]
)
def test_a_place_that_is_not_there_is_not_told_as_empty(cloud: bool, place: tuple[str, ...]) -> None:
    result = CliRunner().invoke(instance, ["list", *place])
    assert isinstance(result.exception, RequestRefused) == cloud
    assert (result.exit_code == 0) != cloud
