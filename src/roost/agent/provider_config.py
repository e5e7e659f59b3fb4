"""Custom inventories and traits that operators add to providers by YAML files, beside those of the driver.

Source: the format is that of Nova's provider configuration files, schema 1.x.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jsonschema
import msgspec
import yaml

from roost.agent.errors import ProviderConfigConflict
from roost.agent.provider_tree import ProviderTree
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT, MAX_NAME

COMPUTE_NODE: Final = "$COMPUTE_NODE"
"""Stands for the root of each node that no file names by its uuid or name."""

_UUID = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_CUSTOM = "^CUSTOM_[A-Z0-9_]+$"
_AMOUNT = {"type": "integer", "minimum": 0, "maximum": MAX_INT}
_POSITIVE = {**_AMOUNT, "minimum": 1}
_RECORD = {
    "type": "object",
    "properties": {
        "total": _POSITIVE,
        "reserved": _AMOUNT,
        "min_unit": _POSITIVE,
        "max_unit": _POSITIVE,
        "step_size": _POSITIVE,
        "allocation_ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6},
    },
    "required": ["total"],
    "additionalProperties": False,
}
_PROVIDER = {
    "type": "object",
    "properties": {
        "identification": {
            "type": "object",
            "properties": {
                "uuid": {"type": "string", "pattern": rf"^({_UUID}|\{COMPUTE_NODE})$"},
                "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
        "inventories": {
            "type": "object",
            "properties": {
                "additional": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "patternProperties": {_CUSTOM: _RECORD},
                        "additionalProperties": False,
                    },
                }
            },
        },
        "traits": {
            "type": "object",
            "properties": {
                "additional": {"type": "array", "items": {"type": "string", "pattern": _CUSTOM}},
            },
        },
    },
    "required": ["identification"],
}
# Further properties are allowed: a file of a later minor version of the schema may have them.
_SCHEMA = {
    "type": "object",
    "properties": {
        "meta": {
            "type": "object",
            "properties": {"schema_version": {"type": "string", "pattern": r"^1\.(0|[1-9][0-9]*)$"}},
            "required": ["schema_version"],
        },
        "providers": {"type": "array", "items": _PROVIDER},
    },
    "required": ["meta"],
}
_VALIDATOR = jsonschema.Draft202012Validator(_SCHEMA)


@dataclass(frozen=True)
class ConfiguredProvider:
    """Inventories and traits that a file gives a provider. ``key``: its uuid or name, or `COMPUTE_NODE`."""

    key: str
    where: str
    inventories: Mapping[str, Inventory]
    traits: frozenset[str]


@dataclass(frozen=True)
class ProviderConfig:
    """The configuration of all files, by the uuid or name of the provider."""

    providers: Mapping[str, ConfiguredProvider] = field(default_factory=dict)

    def apply(self, tree: ProviderTree, node: str) -> None:
        """Add the configured inventories and traits to a driver's tree. ``node``: the node of the tree.

        A configured provider that is not in the tree is skipped: it may be another host's. Raises
        `ProviderConfigConflict`.
        """
        root = tree.data(node)
        found: dict[str, ConfiguredProvider] = {}
        for key, each in self.providers.items():
            if key in tree and (other := found.setdefault(tree.data(key).uuid, each)) is not each:
                raise ProviderConfigConflict(
                    f"{each.where}: {key} is configured as {other.key} in {other.where} already"
                )
        if COMPUTE_NODE in self.providers:
            found.setdefault(root.uuid, self.providers[COMPUTE_NODE])
        for provider, each in found.items():
            if taken := tree.driver_classes(provider) & each.inventories.keys():
                raise ProviderConfigConflict(
                    f"{each.where}: the driver reports {', '.join(sorted(taken))} of this provider itself"
                )
            if each.inventories:
                tree.add_inventory(provider, each.inventories)
            tree.add_traits(provider, *each.traits)


def read_provider_config(folder: Path) -> ProviderConfig:
    """Read the files ``*.yaml`` of a folder. Raises `OperatorError`, with the file and the path in it."""
    if not folder.is_dir():
        raise OperatorError(f"the folder of provider configurations {folder} cannot be read")
    providers: dict[str, ConfiguredProvider] = {}
    for path in sorted(folder.glob("*.yaml")):
        for each in _read(path):
            if (other := providers.get(each.key)) is not None:
                raise OperatorError(f"{each.where}: {each.key} is configured in {other.where} already")
            providers[each.key] = each
    return ProviderConfig(providers)


def _read(path: Path) -> list[ConfiguredProvider]:
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OperatorError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    wrong = jsonschema.exceptions.best_match(_VALIDATOR.iter_errors(document))
    if wrong is not None:
        raise OperatorError(f"{path}: {wrong.json_path}: {wrong.message}")
    return [
        _configured(f"{path}: $.providers[{number}]", each)
        for number, each in enumerate(document.get("providers", ()))
    ]


def _configured(where: str, said: Mapping[str, Any]) -> ConfiguredProvider:
    [key] = said["identification"].values()
    inventories: dict[str, Inventory] = {}
    for records in said.get("inventories", {}).get("additional", ()):
        for name, record in records.items():
            if name in inventories:
                raise OperatorError(f"{where}.inventories: {name} is there twice")
            inventories[name] = msgspec.convert(record, Inventory)
    traits = frozenset(said.get("traits", {}).get("additional", ()))
    uuid = "uuid" in said["identification"] and key != COMPUTE_NODE
    return ConfiguredProvider(key.lower() if uuid else key, where, inventories, traits)
