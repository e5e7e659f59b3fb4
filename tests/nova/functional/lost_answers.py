"""Nova's own services when the answer of a scheduler that has claimed is lost, and the audit that follows.

Cases for run.py with ``--scheduler nova``. The judge is ``nova-manage placement audit``: it finds allocations
that no instance on the host explains, before the audit and not after it.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import databases
import in_process
import oslo_messaging
from nova.cmd import manage
from nova.db.api import api as api_database
from nova.scheduler.client import query
from nova.tests.functional import integrated_helpers

from roost.nova.audit.rounds import NovaAudit, UnansweredRules, bridge_audit_tenure
from roost.nova.audit.unanswered import BESIDE, BURIED, SHELVED
from roost.nova.database.cells import NovaCells
from roost.nova.feed import NovaFeed
from roost.nova.options import BridgeOptions
from roost.process.asyncio_context import AsyncioContext
from roost.records import Retention
from roost.records.sql import SqlRecords
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.audit import read_findings
from roost.state.api_database.tables import SCHEMA
from roost.state.leases import renew
from roost.storage import Database
from roost.web.auth.credentials import FixedCredentials

databases.note_cells()
in_process.note_placement()

SECONDS = 60.0
"""Seconds that Nova has to give up."""

EXPLAINED, ORPHANED = 0, 3
"""Exit codes of ``nova-manage placement audit``."""


class LostAnswers(integrated_helpers.ProviderUsageBaseTestCase):
    """Two computes, and a scheduler whose answers can be lost."""

    compute_driver = "fake.SmallFakeDriver"
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.computes = {host: self._start_compute(host) for host in ("host1", "host2")}
        databases.map_cells()

    @contextmanager
    def lost(self) -> Iterator[None]:
        """Let the scheduler decide and claim, and its caller get no answer."""
        decide = query.SchedulerQueryClient.select_destinations

        def unanswered(*arguments: object, **options: object) -> None:
            decide(*arguments, **options)
            raise oslo_messaging.MessagingTimeout()

        with mock.patch.object(query.SchedulerQueryClient, "select_destinations", unanswered):
            yield

    def boot(self, state: str = "ACTIVE") -> dict:
        flavor = self.api.get_flavors()[0]["id"]
        server = self._build_server(flavor_id=flavor, networks="none")
        return self._wait_for_state_change(self.api.post_server({"server": server}), state)

    def wait_for_failed(self, server: dict, action: str) -> None:
        """Wait until an action on a server has failed."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            found = self.admin_api.get_instance_actions(server["id"])
            if any(each["action"] == action and each["message"] == "Error" for each in found):
                return
            time.sleep(0.1)
        self.fail(f"{action} has not failed")

    def judged(self) -> int:
        return manage.PlacementCommands().audit()

    def audit(self) -> dict[str, str]:
        """Make two rounds of the audit. Returns the kinds of what the first one found, by instance."""
        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(self._audit(Path(folder)))

    async def _audit(self, folder: Path) -> dict[str, str]:
        url = api_database.get_engine().url.render_as_string(hide_password=False)
        api = Database(url, deferred=True, create=False)
        own = Database(f"sqlite:///{folder / 'bridge.db'}")
        SCHEMA.prepare(own)
        cells, table = NovaCells(api, None), NodeTable()
        feed = NovaFeed(cells, table, BridgeOptions())
        placement = in_process.WatchedPlacement(
            FixedCredentials("http://placement", "admin"), client=in_process.placement_client()
        )
        records = SqlRecords(Database(f"sqlite:///{folder / 'records.db'}"), Retention())
        context, tenure = AsyncioContext(lambda _: own), bridge_audit_tenure("here")
        rules = UnansweredRules(every=1.0, frees=True, timeout=1800.0)
        audit = NovaAudit(context, tenure, cells, placement, table, records, rules)
        try:
            await feed.refresh()
            await renew(context, "api", tenure)
            await audit.round()
            found = {each.subject: each.kind for _, each in await own.read(read_findings(0, 100))}
            await audit.round()
            self.assertEqual({}, audit.state.unread)
            self.assertEqual(len(found), audit.state.freed)
            return found
        finally:
            for each in (records, feed, placement, cells, own, api):
                await each.close()

    def hosts_of(self, server: dict) -> set[str]:
        """The providers that a server holds of."""
        return set(self.placement.get(f"/allocations/{server['id']}").body["allocations"])

    def test_boot(self) -> None:
        other = self.boot()
        with self.lost():
            server = self.boot("ERROR")
        self.assertEqual(ORPHANED, self.judged())
        self.assertEqual({server["id"]: BURIED}, self.audit())
        self.assertEqual((set(), 1), (self.hosts_of(server), len(self.hosts_of(other))))
        self.assertEqual(EXPLAINED, self.judged())

    def test_evacuation(self) -> None:
        server = self.boot()
        host = server["OS-EXT-SRV-ATTR:host"]
        self.computes[host].stop()
        [service] = self.admin_api.get_services(host=host, binary="nova-compute")
        self.admin_api.put_service_force_down(service["id"], True)
        before = self.hosts_of(server)
        with self.lost():
            self.admin_api.post_server_action(server["id"], {"evacuate": {}})
            self.wait_for_failed(server, "evacuate")
        self.assertEqual((ORPHANED, 2), (self.judged(), len(self.hosts_of(server))))
        self.assertEqual({server["id"]: BESIDE}, self.audit())
        self.assertEqual((EXPLAINED, before), (self.judged(), self.hosts_of(server)))

    def test_unshelve(self) -> None:
        server = self._shelve_server(self.boot(), expected_state="SHELVED_OFFLOADED")
        with self.lost():
            self.api.post_server_action(server["id"], {"unshelve": None})
            self.wait_for_failed(server, "unshelve")
        self.assertEqual((ORPHANED, 1), (self.judged(), len(self.hosts_of(server))))
        self.assertEqual({server["id"]: SHELVED}, self.audit())
        self.assertEqual((EXPLAINED, set()), (self.judged(), self.hosts_of(server)))

    def test_resize(self) -> None:
        server = self.boot()
        before = self.hosts_of(server)
        with self.lost():
            larger = self.api.get_flavors()[1]["id"]
            self.api.post_server_action(server["id"], {"resize": {"flavorRef": larger}})
            self.wait_for_failed(server, "resize")
        # Nova's conductor has moved the allocations of the migration back, over those of the claim.
        self.assertEqual({}, self.audit())
        self.assertEqual((EXPLAINED, before), (self.judged(), self.hosts_of(server)))
