"""The readiness of a whole system: of its API database and its ledger."""

from pathlib import Path

import httpx

from support.processes import RoostUp


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
        # A cell that is down keeps nobody else from being served.
        assert names == ["api database", "database", "ledger", "history"]
        assert httpx.head(f"{url}/healthz").status_code == 200
        assert httpx.get(f"{url}/healthcheck").text == "OK"
        disabled.touch()
        assert httpx.get(f"{url}/readyz").status_code == 503
        assert httpx.head(f"{url}/healthcheck").status_code == 503
