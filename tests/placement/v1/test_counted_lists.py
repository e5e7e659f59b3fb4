"""Lists that anybody can make longer are computed with work that is counted."""

from typing import Any

import pytest

from roost.fleet.work import WorkBudget
from roost.placement.commands.names import AddResourceClass, AddTrait
from roost.placement.queries import budget
from roost.placement.v1 import candidates
from support.v1_api import V1Api


@pytest.mark.parametrize(
    ("path", "command", "least"), [("/traits", AddTrait, 20), ("/resource_classes", AddResourceClass, 50)]
)
def test_names_are_listed_with_work_that_grows_with_their_number(
    v1: V1Api,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    command: type[AddTrait | AddResourceClass],
    least: int,
) -> None:
    made: list[WorkBudget] = []

    def work(units: int) -> WorkBudget:
        made.append(WorkBudget(units))
        return made[-1]

    monkeypatch.setattr(budget, "WorkBudget", work)
    v1.read(path, openstack_api_version="placement 1.39")
    for number in range(50):
        v1.run(v1.ledger.execute(command(f"CUSTOM_{number:02}")))
    found = v1.read(path, openstack_api_version="placement 1.39")
    assert "CUSTOM_49" in str(found)
    before, after = made
    assert before.left - after.left >= least


def test_a_page_behind_more_candidates_than_the_loop_skips_is_read_in_a_process_of_its_own(
    v1: V1Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    v1.provider("root", MEMORY_MB=10)
    for number in range(8):
        v1.provider(f"child{number}", parent="root", VCPU=4)
    query = "resources1=VCPU:1&resources2=VCPU:2&group_policy=none"
    pages = v1.pages(query, 8)
    assert len(pages) == 8
    apart: list[int] = []
    forked = budget.run_forked

    async def counted(*arguments: Any) -> bytes:
        apart.append(1)
        return await forked(*arguments)

    monkeypatch.setattr(budget, "run_forked", counted)
    monkeypatch.setattr(candidates, "MOST_SKIPPED", 40)
    # All was read, so that no search is kept: the pages before these are skipped.
    for number, processes in ((6, 1), (5, 1)):
        cursor = pages[number - 1]["next"]
        again = v1.read(f"/v1/allocation_candidates?{query}&limit=8&cursor={cursor}")
        assert again["allocation_requests"] == pages[number]["allocation_requests"]
        assert len(apart) == processes
