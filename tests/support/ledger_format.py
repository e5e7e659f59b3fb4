"""Values and helpers of the tests of docs/format.md."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

from roost.ledger import findings
from roost.model.change import Change

TAGS = {kind.__struct_config__.tag: kind for kind in get_args(Change)}
"""The kinds of changes: tag -> type."""

COMPARED = {
    findings.BROKEN_REFERENCE,
    findings.EMPTY_CONSUMER,
    findings.COMMIT_GAP,
    findings.COMMIT_UNREADABLE,
    findings.STATE_DIFFERS,
    findings.UNEXPLAINED,
}
"""The kinds of findings that are contradictions of the format. The reader knows no rules of amounts."""


def copied(source: Path, target: Path) -> Path:
    """Copy a database with what its log has. Returns the copy."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    return target
