"""The table of programs: the parts of each command."""

import pytest

from roost.server.process import ProcessPart
from roost.server.programs import COMMANDS, PARTS, part_named

OF_OTHERS = {"cell0_mapping", "cell", "agents_api", "neighbours"} | {
    each for each in PARTS if each.startswith(("bridge", "nova"))
}
"""The parts for which `roost up` has others of its own, and the service that it does not have."""


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_there(name: str) -> None:
    assert isinstance(part_named(name), ProcessPart)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_must_be_ready_is_a_part_that_reports_it(command: str) -> None:
    parts, ready = COMMANDS[command]
    assert set(ready) <= parts <= set(PARTS)
    assert all(type(part_named(name)).readiness is not ProcessPart.readiness for name in ready)


def test_up_is_all_of_them() -> None:
    parts = frozenset[str]().union(*(each.parts for each in COMMANDS.values()))
    assert parts == set(PARTS)
    assert parts - OF_OTHERS == COMMANDS["up"].parts
