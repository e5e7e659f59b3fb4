"""The page of cells and processes: states, counts, features, the audit, and cells that do not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import htpy as h
import pytest

from roost.dashboard.html.shell import Viewing
from roost.dashboard.pages.cells import CELLS
from roost.model.service_version import FEATURES
from roost.storage import DatabaseUnavailable
from support.dashboard_users import DashboardUsers, dashboard_users
from support.hostile_views import cells_view

VIEWING = Viewing("olga", True, "guard", "/ui/cells", nonce="nonce", acts=True)


def on_a_dashboard(directory: Path, check: Callable[[DashboardUsers], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with dashboard_users(directory) as users:
            await users.now.super.watch.look()
            await check(users)

    asyncio.run(opened())


def test_cells_have_their_counts_and_states(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        await users.ask_for("mia", 8)
        view = await users.view("/ui/cells")
        cells = {each["name"]: each for each in view["cells"]}
        assert sorted(cells) == ["cell0", "cell1", "cell2"]
        assert cells["cell1"]["hosts"] == 3 and cells["cell2"]["hosts"] == 2
        assert sum(each["instances"].get("assigned", 0) for each in cells.values()) == 8
        assert all(each["enabled"] for each in cells.values())
        assert {each["name"] for each in view["features"]} == {each.name for each in FEATURES}
        assert view["audit"]["round"] == 0
        assert [each["name"] for each in view["databases"]] == [
            "API database",
            "cell cell0",
            "cell cell1",
            "cell cell2",
        ]
        assert all(each["milliseconds"] is not None for each in view["databases"])
        assert view["ledger"]["lag_commits"] == 0
        page = (await users.get("/ui/cells")).text
        # Counts link to what they count, and no zero stands beside them.
        assert "/ui/instances?cell=cell1" in page and "/ui/hosts?cell=cell1" in page
        assert "/ui/actions/drain?cell=cell1" in page and "/ui/actions/drain?cell=cell0" not in page

    on_a_dashboard(tmp_path, check)


def test_a_disabled_cell_has_its_reason(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        await users.post("/ui/actions/disable", {"cell": "cell2", "reason": "new switch"})
        view = await users.view("/ui/cells")
        [cell] = [each for each in view["cells"] if each["name"] == "cell2"]
        assert (cell["enabled"], cell["reason"]) == (False, "new switch") and cell["said_at"] is not None
        page = (await users.get("/ui/cells")).text
        assert "new switch" in page and "/ui/actions/enable?cell=cell2" in page

    on_a_dashboard(tmp_path, check)


def test_a_cell_that_does_not_answer_is_down_and_the_others_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*works: object, **named: object) -> Any:
        raise DatabaseUnavailable("away")

    async def check(users: DashboardUsers) -> None:
        monkeypatch.setattr(users.now.cells["cell2"].database, "read", fail)
        for _ in range(2):
            # At first the cell is asked; then the watch knows that it does not answer.
            view = await users.view("/ui/cells")
            cells = {each["name"]: each for each in view["cells"]}
            assert cells["cell2"]["state"] == "down" and cells["cell2"]["instances"] is None
            assert cells["cell1"]["state"] != "down"
            answers = {each["cell"]: each["milliseconds"] for each in view["databases"]}
            assert answers["cell2"] is None and answers["cell1"] is not None
            page = (await users.get("/ui/cells")).text
            assert "Does not answer" in page and "Not known" in page
            await users.now.super.watch.look()

    on_a_dashboard(tmp_path, check)


@pytest.mark.parametrize("user", ["mia", "rita", "otto"])
def test_cells_are_for_operators(tmp_path: Path, user: str) -> None:
    async def check(users: DashboardUsers) -> None:
        for path in ("/ui/cells", "/ui/cells?format=json"):
            assert (await users.get(path, user)).status_code == 403

    on_a_dashboard(tmp_path, check)


def test_what_is_held_back_and_found_is_told() -> None:
    page = f"{h.div[CELLS.html(cells_view('x'), VIEWING)]}"
    told = ("1 held back", "and 6 more", "1 contradiction", "a round is under way", "2 scheduling")
    assert [words for words in told if words not in page] == []
