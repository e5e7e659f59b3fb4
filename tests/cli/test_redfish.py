"""What an operator is told of bare metal nodes, and says of them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from roost.agent.drivers.redfish.words import FOLDER, NodeStatus, NodeStatuses, take_orders, write_statuses
from roost.cli.redfish import redfish

NODES = (
    NodeStatus(uuid="u1", name="n1", resource_class="CUSTOM_A", phase="free", on=False),
    NodeStatus(
        uuid="u2", name="n2", resource_class="CUSTOM_A", phase="running", why="it has", on=True, instance="i"
    ),
    NodeStatus(uuid="u3", name="n3", resource_class="CUSTOM_A", phase="uncleaned", why="the image was late"),
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / FOLDER).mkdir()
    write_statuses(tmp_path / FOLDER, NodeStatuses(NODES))
    return tmp_path


def test_nodes_are_listed_with_what_stands_against_them(state: Path) -> None:
    shown = CliRunner().invoke(redfish, ["nodes", "--state-dir", str(state)])
    assert shown.exit_code == 0, shown.output
    assert "the image was late" in shown.stdout and "it has" not in shown.stdout
    asked = CliRunner().invoke(redfish, ["nodes", "--state-dir", str(state), "--reserved", "--json"])
    assert [each["name"] for each in json.loads(asked.stdout)["nodes"]] == ["n2", "n3"]


@pytest.mark.parametrize("word", ["clean", "release"])
def test_a_word_reaches_the_agent_once(state: Path, word: str) -> None:
    said = CliRunner().invoke(redfish, [word, "--state-dir", str(state), "n3"])
    assert said.exit_code == 0, said.output
    assert take_orders(state / FOLDER) == [("u3", word)]
    assert take_orders(state / FOLDER) == []


def test_words_without_meaning_are_refused(state: Path) -> None:
    for name, why in (("n2", "is running: there is nothing to release"), ("none", "has no node none")):
        said = CliRunner().invoke(redfish, ["release", "--state-dir", str(state), name])
        assert said.exit_code != 0 and why in str(said.exception)
    assert take_orders(state / FOLDER) == []
