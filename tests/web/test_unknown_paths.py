"""A path that no operation has: services say so in words of their own, placement as upstream."""

import asyncio

from support.conductor_api import ADMIN, api
from support.ledgers import upgrade
from support.placement_api import Api


def test_a_path_that_no_operation_has_is_told_apart_from_a_resource_that_is_not_there(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            for path, code in (
                ("/v1/instnaces", "roost.no_operation"),
                ("/v1/cells/x", "conductor.not_found"),
            ):
                answer = await client.get(path, headers=ADMIN)
                error = answer.json()["errors"][0]
                assert (answer.status_code, error["code"]) == (404, code)
                assert path.rpartition("/")[2] in error["detail"]

    asyncio.run(run())


def test_placement_answers_as_upstream(tmp_path) -> None:
    upgrade(f"sqlite:///{tmp_path / 'roost.db'}")
    placement = Api(tmp_path)
    for path in ("/resource_provider", "/resource_providers/x"):
        error = placement.ask("GET", path).json["errors"][0]
        assert error["status"] == 404
        assert error["code"] == "placement.undefined_code"
        assert error["detail"].startswith("The resource could not be found.")
    placement.close()
