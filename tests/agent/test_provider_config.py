"""Files of operators add custom inventories and traits to what the driver reports."""

import asyncio
from pathlib import Path

import pytest

from roost.agent.driver_calls import DriverService
from roost.agent.errors import ProviderConfigConflict
from roost.agent.protocol.types import SessionKey
from roost.agent.provider_config import ProviderConfig, read_provider_config
from roost.agent.provider_report import report_providers
from roost.agent.provider_tree import ProviderTree
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from support.drivers import HeldDriver
from support.provider_worlds import ProviderWorld, amounts, inventories

ROOT, GPU = provider_uuid("host"), provider_uuid("gpu")
LICENSES = """
meta: {schema_version: "1.0"}
providers:
  - identification: {uuid: $COMPUTE_NODE}
    inventories: {additional: [{CUSTOM_LICENSE: {total: 5, reserved: 1}}]}
    traits: {additional: [CUSTOM_RACK_7]}
  - identification: {name: gpu}
    traits: {additional: [CUSTOM_COOLED]}
"""


def write(folder: Path, text: str, name: str = "a.yaml") -> ProviderConfig:
    (folder / name).write_text(text)
    return read_provider_config(folder)


def one(identification: str, more: str = "", version: str = "1.0") -> str:
    identified = f"identification: {{{identification}}}{more}"
    return f'meta: {{schema_version: "{version}"}}\nproviders: [{{{identified}}}]'


def filled(config: ProviderConfig, tree: ProviderTree) -> None:
    """What the driver says, and then the files."""
    tree.update_inventory("host", inventories(VCPU=8))
    tree.update_traits("host", ["CUSTOM_FAST"])
    tree.put_child("gpu", "host")
    tree.update_inventory("gpu", inventories(VGPU=2))
    tree.update_traits("gpu", [])
    config.apply(tree, "host")


def report(world: ProviderWorld, config: ProviderConfig) -> None:
    world.fill = lambda tree: filled(config, tree)
    session = SessionKey("host", "nonce", 1)
    assert world.run(report_providers(world, session, "host", ROOT, world.kept)).refusals == ()


def test_what_a_file_adds_is_taken_away_with_it_and_what_others_made_stays(tmp_path: Path) -> None:
    world = ProviderWorld()
    report(world, write(tmp_path, LICENSES))
    assert world.states[ROOT].inventories["CUSTOM_LICENSE"] == Inventory(5, reserved=1)
    assert world.states[ROOT].traits == {"CUSTOM_FAST", "CUSTOM_RACK_7"}
    assert world.states[GPU].traits == {"CUSTOM_COOLED"}
    world.change(ROOT, traits=world.states[ROOT].traits | {"CUSTOM_OPERATOR"})
    report(world, ProviderConfig())
    assert amounts(world.states[ROOT]) == {"VCPU": 8}
    assert world.states[ROOT].traits == {"CUSTOM_FAST", "CUSTOM_OPERATOR"}
    assert world.states[GPU].traits == frozenset()


def test_node_that_a_file_names_is_not_configured_by_the_one_for_all(tmp_path: Path) -> None:
    write(tmp_path, LICENSES)
    config = write(tmp_path, one(f"uuid: {ROOT.upper()}", ", traits: {additional: [CUSTOM_OWN]}"), "b.yaml")
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    filled(config, tree)
    assert tree.data("host").traits == {"CUSTOM_FAST", "CUSTOM_OWN"}


def test_files_are_applied_after_the_driver(tmp_path: Path) -> None:
    async def fill() -> ProviderTree:
        tree = ProviderTree()
        tree.new_root("host", ROOT)
        return await DriverService(HeldDriver(), write(tmp_path, LICENSES)).fill_tree(tree, "host")

    assert set(asyncio.run(fill()).data("host").inventory) == {"VCPU", "CUSTOM_LICENSE"}


def test_inventory_of_the_driver_is_a_conflict_that_names_the_file_and_the_place(tmp_path: Path) -> None:
    config = write(tmp_path, LICENSES)
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    tree.update_inventory("host", inventories(CUSTOM_LICENSE=1))
    with pytest.raises(ProviderConfigConflict, match=r"a.yaml: \$.providers\[0\]: .* reports CUSTOM_LICENSE"):
        config.apply(tree, "host")


def test_provider_that_is_named_by_its_uuid_and_its_name_is_a_conflict_that_names_both(
    tmp_path: Path,
) -> None:
    write(tmp_path, one(f"uuid: {ROOT}", ", traits: {additional: [CUSTOM_A]}"))
    config = write(tmp_path, one("name: host", ", traits: {additional: [CUSTOM_B]}"), "b.yaml")
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    with pytest.raises(
        ProviderConfigConflict, match=rf"b\.yaml.*: host is configured as {ROOT} in .*a\.yaml"
    ):
        config.apply(tree, "host")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("providers: []", "'meta' is a required property"),
        (one("name: a", version="2.0"), r"\$.meta.schema_version"),
        (one("uuid: a"), r"\$.providers\[0\].identification.uuid"),
        (one("name: a, uuid: $COMPUTE_NODE"), r"\$.providers\[0\].identification"),
        (one("name: a", ", inventories: {additional: [{VCPU: {total: 1}}]}"), "'VCPU' does not match"),
        (one("name: a", ", inventories: {additional: [{CUSTOM_A: {reserved: 1}}]}"), "'total' is a required"),
        (
            one("name: a", ", inventories: {additional: [{CUSTOM_A: {total: 1}}, {CUSTOM_A: {total: 2}}]}"),
            "CUSTOM_A is there twice",
        ),
        (one("name: a", ", traits: {additional: [HW_GPU]}"), "'HW_GPU' does not match"),
        ("a: [", "cannot be read"),
    ],
)
def test_file_that_is_wrong_is_refused_with_the_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(OperatorError, match=rf"a\.yaml.*{told}"):
        write(tmp_path, text)


def test_provider_that_two_files_name_is_refused_with_both(tmp_path: Path) -> None:
    write(tmp_path, one("name: a"))
    with pytest.raises(OperatorError, match=r"b\.yaml: \$.providers\[0\]: a is configured in .*a\.yaml"):
        write(tmp_path, one("name: a"), "b.yaml")


def test_later_minor_version_with_unknown_fields_is_read(tmp_path: Path) -> None:
    config = write(tmp_path, one("name: a", ", colour: {is: red}", version="1.7"))
    assert set(config.providers) == {"a"}


def test_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="none cannot be read"):
        read_provider_config(tmp_path / "none")
