"""The life of an instance, told by the table in the docstring of `roost.state.cell_database`."""

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path

from roost.model import instance
from roost.state import cell_database
from roost.state.cell_database.move_changes import MOVE

FOLDER = Path(cell_database.__file__).parent
NAMES = {value for name, value in vars(instance).items() if name.isupper() and isinstance(value, str)}
STATES = NAMES - {instance.RESHAPED, instance.GONE, *instance.OF_MOVES}
ALSO = {"deletions.give_up_on_host": {"failed", "destroyed", "deleting"}}
"""States that a transaction enters by other transactions, as the text below the table says."""


def _told() -> dict[str, set[str]]:
    """The states that each transaction enters, as the table says."""
    rows = re.findall(r"→ ([a-z, -]+?) +(\w+\.\w+)$", cell_database.__doc__ or "", re.MULTILINE)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for states, name in rows:
        found[name] |= {*states.split(", ")} | ALSO.get(name, set())
    return dict(found)


def _declared() -> dict[str, set[str] | None]:
    """The states that each transaction declares to enter; None if they depend on its fields.

    What moves enter is left out: `roost.model.move_states` has their table.
    """
    found: dict[str, set[str] | None] = {}
    for path in FOLDER.glob("*.py"):
        module = importlib.import_module(f"roost.state.cell_database.{path.stem}")
        for node in ast.parse(path.read_text()).body:
            name = f"{path.stem}.{getattr(node, 'name', '')}"
            if isinstance(node, ast.ClassDef):
                if any(isinstance(each, ast.FunctionDef) and each.name == "enters" for each in node.body):
                    found[name] = None
            elif isinstance(node, ast.FunctionDef):
                for each in node.decorator_list:
                    if isinstance(each, ast.Call) and ast.unparse(each.func) == "entering":
                        states = {getattr(module, ast.unparse(state)) for state in each.args} - {MOVE}
                        if states:
                            found[name] = states
    return found


def test_the_table_names_each_transaction_and_the_states_that_it_enters() -> None:
    told, declared = _told(), _declared()
    assert declared.keys() <= told.keys()
    for name, states in declared.items():
        assert states is None or states == told[name], name


def test_each_transaction_of_the_table_exists() -> None:
    for name in _told():
        module, function = name.split(".")
        assert hasattr(importlib.import_module(f"roost.state.cell_database.{module}"), function)


def test_the_table_enters_each_state() -> None:
    assert {state for states in _told().values() for state in states} == {*STATES, instance.GONE}
