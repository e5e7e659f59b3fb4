"""The values of the chart: the schema has each of them and refuses what cannot work. Helm is not needed."""

import copy
import json
import re
from typing import Any

import jsonschema
import pytest
import yaml

from guides.running import blocks
from install.manifests import CHART, FOLDER, RENDERING

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
URL = "postgresql+psycopg://roost@db.example/roost"


def merged(values: dict[str, Any], defaults: dict[str, Any] = DEFAULTS) -> dict[str, Any]:
    """The defaults with values over them, as Helm merges them."""
    result = copy.deepcopy(defaults)
    for name, value in values.items():
        there = result.get(name)
        result[name] = merged(value, there) if isinstance(there, dict) and isinstance(value, dict) else value
    return result


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    """The properties of an object of the schema; empty if it may have any."""
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    found: dict[str, Any] = schema.get("properties", {})
    return found


def differences(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> set[str]:
    """The paths of what is only in the values, or only in the schema."""
    known = properties(schema)
    found = {f"{path}{name}" for name in values.keys() ^ known.keys()}
    for name in values.keys() & known.keys():
        if isinstance(values[name], dict) and properties(known[name]):
            found |= differences(values[name], known[name], f"{path}{name}.")
    return found


def test_the_schema_has_each_value_and_no_other() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    # Helm adds global. What the resources are of is not the chart's.
    found = differences(DEFAULTS, SCHEMA) - {"global"}
    assert {each for each in found if not each.endswith("resources.claims")} == set()


def test_a_cell_may_have_what_all_cells_have() -> None:
    cell = properties(SCHEMA["properties"]["cells"]["items"])
    assert set(cell) == {"name", "database", *DEFAULTS["cellConductor"]}


@pytest.mark.parametrize("name", ["", *RENDERING["NAMES"]])
def test_values_are_accepted(name: str) -> None:
    values = yaml.safe_load(RENDERING["values_of"](name).read_text()) if name else {}
    VALIDATOR.validate(merged(values))
    assert not name or FOLDER.joinpath(f"{name}.yaml").is_file()


BLOCKS = blocks("docs/guides/kubernetes.md")
GUIDE = [yaml.safe_load(block.text) for block in BLOCKS if block.language == "yaml"]


@pytest.mark.parametrize("values", GUIDE, ids=lambda values: "+".join(values))
def test_values_of_the_guide_are_accepted(values: dict[str, Any]) -> None:
    VALIDATOR.validate(merged(values))


def test_values_that_are_set_in_commands_of_the_guide_are_there() -> None:
    text = "".join(block.text for block in BLOCKS)
    named = re.findall(r"--set(?:-file)? ([\w.]+)=", text)
    assert len(named) > 5
    for path in named:
        value: Any = DEFAULTS
        for name in path.split("."):
            value = value[name]


def test_the_readme_lists_every_value() -> None:
    table = re.findall(r"^\| (`.*`) \|", (CHART / "README.md").read_text(), flags=re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(table))) == sorted(DEFAULTS)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replicas": 3}, ""),
        ({"databases": {"placement": URL}}, "databases"),
        ({"databases": {"api": "sqlite:///roost.db"}}, "databases/api"),
        ({"databases": {"api": f"{URL}\nx = 1"}}, "databases/api"),
        ({"cells": [{"database": URL}]}, "cells/0"),
        ({"cells": [{"name": "Rack1"}]}, "cells/0/name"),
        ({"cells": [{"name": "cell0"}]}, "cells/0/name"),
        ({"cells": [{"name": "a" * 21}]}, "cells/0/name"),
        ({"config": {"api": {"tokens_file": "a\n[x]"}}}, "config/api/tokens_file"),
        ({"config": {"api]": {}}}, "config"),
        ({"config": {"api": "keystone"}}, "config/api"),
        ({"placement": {"workers": 0}}, "placement/workers"),
        ({"placement": {"workers": "many"}}, "placement/workers"),
        ({"dashboard": {"replicas": 2}}, "dashboard"),
        ({"metrics": {"port": 70000}}, "metrics/port"),
        ({"placement": {"service": {"type": "Magic"}}}, "placement/service/type"),
    ],
    ids=str,
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], place: str) -> None:
    errors = list(VALIDATOR.iter_errors(merged(values)))
    assert ["/".join(map(str, error.absolute_path)) for error in errors] == [place]
