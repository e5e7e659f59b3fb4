"""Builds and moves of Nova's own services, and the ends of their attempts as Roost reads them.

Cases for run.py with ``--scheduler nova``.
"""

import asyncio

import databases
from nova.db.api import api as api_database
from nova.tests.functional import integrated_helpers

from roost.model.record import BUILT, FAILED
from roost.nova.attempt_ends import RESCHEDULED, AttemptEnd, AttemptFacts, ends_of
from roost.nova.database.actions import read_actions, read_faults
from roost.nova.database.cells import NovaCells
from roost.nova.database.traces import read_row_traces
from roost.storage import Database

databases.note_cells()

HOST = "OS-EXT-SRV-ATTR:host"


class TwoComputes(integrated_helpers.ProviderUsageBaseTestCase):
    """Two computes, and the ends of attempts on servers that move between them."""

    compute_driver = "fake.SmallFakeDriver"
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.computes = {host: self._start_compute(host) for host in ("host1", "host2")}
        databases.map_cells()

    def boot(self, state: str = "ACTIVE") -> dict:
        flavor = self.api.get_flavors()[0]["id"]
        server = self._build_server(flavor_id=flavor, networks="none")
        return self._wait_for_state_change(self.api.post_server({"server": server}), state)

    def other(self, server: dict) -> str:
        """The host that a server is not on."""
        [other] = self.computes.keys() - {server[HOST]}
        return other

    def ends(self, server: dict, action: str, *hosts: str) -> list[AttemptEnd]:
        return asyncio.run(self._ends(server["id"], action, hosts))

    async def _ends(self, uuid: str, name: str, hosts: tuple[str, ...]) -> list[AttemptEnd]:
        url = api_database.get_engine().url.render_as_string(hide_password=False)
        api = Database(url, deferred=True, create=False)
        cells = NovaCells(api, None)
        await cells.refresh()
        found: list[AttemptEnd] = []
        for cell in cells.cells.values():
            rows = await cell.database.read(read_row_traces([uuid]))
            if uuid in rows:
                actions = await cell.database.read(read_actions([uuid], name))
                faults = await cell.database.read(read_faults([uuid]))
                found = ends_of(hosts, AttemptFacts(rows[uuid], actions[uuid][-1], faults.get(uuid, ())))
        await cells.close()
        await api.close()
        return found


class Ends(TwoComputes):
    """Builds and moves that succeed."""

    def test_boot(self) -> None:
        server = self.boot()
        self.assertEqual([(server[HOST], BUILT, None)], self.ends(server, "create", server[HOST]))

    def test_resize(self) -> None:
        server = self.boot()
        other = self.other(server)
        larger = self.api.get_flavors()[1]["id"]
        self.api.post_server_action(server["id"], {"resize": {"flavorRef": larger}})
        self._wait_for_state_change(server, "VERIFY_RESIZE")
        self.assertEqual([(other, BUILT, None)], self.ends(server, "resize", other))
        self.api.post_server_action(server["id"], {"revertResize": None})
        self._wait_for_state_change(server, "ACTIVE")
        self.assertEqual([(other, BUILT, None)], self.ends(server, "resize", other))

    def test_live_migration(self) -> None:
        server = self.boot()
        other = self.other(server)
        self._live_migrate(server, api=self.admin_api)
        self.assertEqual([(other, BUILT, None)], self.ends(server, "live-migration", other))

    def test_evacuation(self) -> None:
        server = self.boot()
        host, other = server[HOST], self.other(server)
        self.computes[host].stop()
        [service] = self.admin_api.get_services(host=host, binary="nova-compute")
        self.admin_api.put_service_force_down(service["id"], True)
        self._evacuate_server(server)
        self.assertEqual([(other, BUILT, None)], self.ends(server, "evacuate", other))

    def test_unshelve(self) -> None:
        server = self._shelve_server(self.boot(), expected_state="SHELVED_OFFLOADED")
        self.api.post_server_action(server["id"], {"unshelve": None})
        server = self._wait_for_state_change(server, "ACTIVE")
        self.assertEqual([(server[HOST], BUILT, None)], self.ends(server, "unshelve", server[HOST]))


class RescheduledEnds(TwoComputes):
    """The first build on any host fails, and goes on at the other one."""

    compute_driver = "fake.FakeRescheduleDriver"

    def test_boot(self) -> None:
        server = self.boot()
        first, second = self.other(server), server[HOST]
        ends = [(first, FAILED, RESCHEDULED), (second, BUILT, None)]
        self.assertEqual(ends, self.ends(server, "create", first, second))


class FailedEnds(TwoComputes):
    """No build succeeds."""

    compute_driver = "fake.FakeBuildAbortDriver"

    def test_boot(self) -> None:
        server = self.boot("ERROR")
        ends = self.ends(server, "create", "host1", "host2")
        self.assertEqual(FAILED, ends[-1].result)
        self.assertIn("aborted", ends[-1].reason or "")
