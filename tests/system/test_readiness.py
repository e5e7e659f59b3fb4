"""The readiness of a whole system: of its ledger and of each cell's database."""

import asyncio
from pathlib import Path

import httpx

from roost.system.readiness import system_health
from roost.web.health import HealthOptions
from support.processes import RoostUp
from support.systems import opened_system


def test_the_database_of_a_cell_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path) as system:
            assert (await system_health(system, HealthOptions()).readiness()).ready
            name, cell = sorted(system.cells.items())[-1]
            await cell.database.close()
            report = await system_health(system, HealthOptions()).readiness()
            assert [check.name for check in report.checks if not check.passed] == [f"cell {name}"]

    asyncio.run(run())


def test_a_running_system_answers_probes(tmp_path: Path) -> None:
    disabled = tmp_path / "disabled"
    options = tmp_path / "options"
    options.write_text(f"[healthcheck]\ndisable_by_file_path = {disabled}\n")
    with RoostUp(tmp_path / "data", ["--hosts", "4", "--cells", "2", "--config-file", str(options)]) as up:
        up.wait_until_up()
        url = f"http://127.0.0.1:{up.port}"
        report = httpx.get(f"{url}/readyz").json()
        assert report["ready"]
        names = [check["name"] for check in report["checks"]]
        assert names[:3] == ["database", "ledger", "history"]
        assert len([name for name in names if name.startswith("cell ")]) == 3
        assert httpx.head(f"{url}/healthz").status_code == 200
        assert httpx.get(f"{url}/healthcheck").text == "OK"
        disabled.touch()
        assert httpx.get(f"{url}/readyz").status_code == 503
        assert httpx.head(f"{url}/healthcheck").status_code == 503
