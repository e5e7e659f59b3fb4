"""The commands of the tutorial work as written, and print what it shows."""

import re
from pathlib import Path

from guides.running import ROOT, Machine, blocks, commands

TUTORIAL = "docs/tutorial.md"

VARYING = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"\d\d:\d\d:\d\d\.\d+", "TIME"),
    (r"\d+\.\d+ s\b", "SECONDS"),
    (r"\bhost-\d+", "HOST"),
    (r"\bcell[1-9]\b", "CELL"),
)
"""Patterns of what differs from run to run, and the words for it."""


def same(line: str) -> str:
    """A line with words for what varies, and with single spaces."""
    for pattern, word in VARYING:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def test_the_tutorial(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    # The cloud that commands find by themselves is this one.
    machine.environment |= dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), str(tmp_path))
    for name in [each for each in machine.environment if each.startswith(("OS_", "ROOST_"))]:
        del machine.environment[name]
    text = (ROOT / TUTORIAL).read_text()
    printed = {same(line) for line in machine.run(commands(TUTORIAL)).splitlines()}
    shown = [block.text for block in blocks(TUTORIAL) if block.language == "text"]
    # A sentence is shown as a quotation, without the other columns of its row.
    shown += [each.replace("\n> ", " ")[2:] for each in re.findall(r"(?:^> .*\n)+", text, re.MULTILINE)]
    for line in "\n".join(shown).splitlines():
        # What curl prints has no end of line.
        assert any(each.endswith(same(line)) for each in printed), line
