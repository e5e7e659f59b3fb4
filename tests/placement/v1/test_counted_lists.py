"""Lists that anybody can make longer are computed with work that is counted."""

import pytest

from roost.fleet.work import Work
from roost.placement.commands.names import AddResourceClass, AddTrait
from roost.placement.queries import budget
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
    made: list[Work] = []

    def work(units: int) -> Work:
        made.append(Work(units))
        return made[-1]

    monkeypatch.setattr(budget, "Work", work)
    v1.read(path, openstack_api_version="placement 1.39")
    for number in range(50):
        v1.run(v1.ledger.execute(command(f"CUSTOM_{number:02}")))
    found = v1.read(path, openstack_api_version="placement 1.39")
    assert "CUSTOM_49" in str(found)
    before, after = made
    assert before.left - after.left >= least
