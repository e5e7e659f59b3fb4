"""The files of npm packages that the dashboard serves: they are the locked ones, and each has its licence."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

VENDOR = Path(__file__).parents[2] / "src/roost/dashboard/assets/vendor"
LOCK: dict[str, Any] = json.loads((VENDOR / "lock.json").read_text())
TITLES = {"0BSD": "Zero-Clause BSD", "ISC": "ISC License", "MIT": "The MIT License"}
"""First words of each licence's text, by its identifier."""


def test_files_are_the_locked_ones_and_no_others() -> None:
    files = {path.name: path for path in VENDOR.iterdir() if path.name != "lock.json"}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == LOCK[
        "sha256"
    ]
    assert sorted(files) == sorted(name for package in LOCK["packages"].values() for name in package["files"])


@pytest.mark.parametrize("name", LOCK["packages"])
def test_each_package_has_its_licence_and_its_integrity(name: str) -> None:
    package = LOCK["packages"][name]
    assert (VENDOR / f"{name}.LICENSE").read_text().startswith(TITLES[package["licence"]])
    assert package["integrity"].startswith("sha512-")


def test_lock_names_no_address() -> None:
    assert "://" not in (VENDOR / "lock.json").read_text()


@pytest.mark.parametrize(("name", "file"), [("htmx.org", "htmx.min.js"), ("uplot", "uPlot.iife.min.js")])
def test_a_file_that_names_its_version_is_of_the_locked_one(name: str, file: str) -> None:
    assert LOCK["packages"][name]["version"] in (VENDOR / file).read_text()
