"""Pages of a version that is not the same after a restore."""

from pathlib import Path
from typing import Any

from roost.server.backup.creation import BackupSource, make_backup
from roost.server.backup.restore import restore_database
from support.ledgers import host, run
from support.placement_api import uuid_of
from support.v1_api import V1Api, fault_of

QUERY = "resources=VCPU:1"


def silent(*_: object) -> None:
    """Show no progress."""


def providers(pages: list[dict[str, Any]]) -> set[str]:
    return {uuid for page in pages for uuid in page["provider_summaries"]}


def test_a_version_that_was_made_before_a_restore_is_not_shown_after_it(v1: V1Api, tmp_path: Path) -> None:
    url = str(v1.ledger.database.url)
    v1.run(run(v1.ledger, *host(uuid_of("a"), VCPU=8), *host(uuid_of("b"), VCPU=8)))
    make_backup([BackupSource("database", url)], tmp_path / "backup", silent)
    v1.run(run(v1.ledger, *host(uuid_of("before"), VCPU=8)))
    before = v1.pages(QUERY, 1)
    assert providers(before) == {uuid_of("a"), uuid_of("b"), uuid_of("before")}
    restore_database(tmp_path / "backup", None, url, True, silent)
    v1.run(run(v1.ledger, *host(uuid_of("after"), VCPU=8)))
    after = v1.pages(QUERY, 1)
    assert after[0]["version"] == before[0]["version"]
    assert providers(after) == {uuid_of("a"), uuid_of("b"), uuid_of("after")}
    # A cursor of the earlier history is refused.
    refused = v1.fetch(f"/v1/allocation_candidates?{QUERY}&limit=1&cursor={before[0]['next']}")
    assert fault_of(refused)[0] == 400
