"""The process that runs Nova's classes."""

import re
from pathlib import Path

import pytest

from support.nova import ROOT, Nova, NovaError


def test_it_is_the_nova_that_is_locked(nova: Nova) -> None:
    lock = Path(ROOT / "requirements-nova.lock").read_text()
    assert re.findall(r"(?m)^nova==(\S+)", lock) == [nova.ask("installed", "nova_version")]


def test_what_nova_raises_is_raised_here_and_the_process_goes_on(nova: Nova) -> None:
    with pytest.raises(NovaError, match="ModuleNotFoundError: No module named 'nowhere'"):
        nova.ask("nowhere", "version")
    assert nova.ask("installed", "nova_version") == "34.0.0"
