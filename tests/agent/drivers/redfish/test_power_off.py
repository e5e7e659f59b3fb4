"""A machine is powered off by its BMC, without an agent: it is certainly off, or that is said."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from roost.cli.redfish import redfish
from roost.model.errors import OperatorError
from support.redfish_emulator import Emulator
from support.redfish_hosts import node_lines, write_nodes

ON = 1


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("bmc"), 3, on=frozenset({ON})) as emulator:
        yield emulator


def power_off(file: Path, name: str, seconds: float = 20.0) -> Result:
    return CliRunner().invoke(redfish, ["power-off", "--nodes", str(file), "--seconds", str(seconds), name])


def test_a_machine_is_off_when_the_command_ends_and_others_are_left_alone(
    bmc: Emulator, tmp_path: Path
) -> None:
    file = write_nodes(tmp_path / "bmcs.toml", {bmc.url: [node_lines(0), node_lines(ON)]})
    # Again too: it is off already.
    for _ in range(2):
        ended = power_off(file, f"n{ON}")
        assert ended.exit_code == 0, ended.exception
        assert not bmc.is_on(ON)
    assert power_off(file, "n0").exit_code == 0


def test_a_machine_that_the_file_does_not_name_is_not_taken_for_off(bmc: Emulator, tmp_path: Path) -> None:
    file = write_nodes(tmp_path / "bmcs.toml", {bmc.url: [node_lines(0)]})
    ended = power_off(file, "n2")
    assert isinstance(ended.exception, OperatorError)
    assert "names no machine n2" in str(ended.exception)


def test_a_machine_whose_bmc_does_not_answer_is_not_taken_for_off(tmp_path: Path) -> None:
    file = write_nodes(tmp_path / "bmcs.toml", {"http://127.0.0.1:9": [node_lines(0)]})
    ended = power_off(file, "n0", seconds=1.0)
    assert isinstance(ended.exception, OperatorError)
    assert "machine n0 is not known to be off" in str(ended.exception)
