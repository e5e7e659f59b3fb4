"""The life of servers in a real Nova cloud on Roost's scheduler."""

from typing import Any

import pytest

from support.nova_cloud.cloud import NovaCloud

pytestmark = pytest.mark.nightly

SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10}
LARGE = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 20}


def one(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The only instance."""
    [instance] = found.values()
    return instance


def act(
    cloud: NovaCloud, function: str, name: str, state: str = "active", **arguments: Any
) -> dict[str, Any]:
    """The instance after a call of a user."""
    cloud.ask(function, instance=name, **arguments)
    return one(cloud.settle(name, state=state))


def ends(cloud: NovaCloud, name: str) -> list[str]:
    """The status of each migration of an instance."""
    return [each["status"] for each in cloud.ask("migrations", instance=name)]


@pytest.fixture
def server(cloud: NovaCloud) -> Any:
    """A server, and its end."""
    [name] = cloud.boot()
    cloud.settle(name)
    yield name
    cloud.delete(name)


def test_servers_hold_of_their_hosts_what_they_claimed_and_nothing_when_they_end(cloud: NovaCloud) -> None:
    names = cloud.boot(count=4)
    for name, each in cloud.settle(*names).items():
        assert cloud.held(name) == {each["host"]: SMALL}
    cloud.delete(*names)
    assert not any(cloud.held(name) for name in names)


def test_a_resize_moves_and_goes_back_or_stays(cloud: NovaCloud, server: str) -> None:
    source = one(cloud.settle(server))["host"]
    moved = act(cloud, "resize", server, "resized", flavor="large")
    assert (moved["flavor"], cloud.held(server)) == ("large", {moved["host"]: LARGE})
    assert moved["host"] != source
    back = act(cloud, "revert", server)
    assert (back["host"], cloud.held(server)) == (source, {source: SMALL})
    moved = act(cloud, "resize", server, "resized", flavor="large")
    stayed = act(cloud, "confirm", server)
    assert (stayed["host"], cloud.held(server)) == (moved["host"], {moved["host"]: LARGE})


def test_a_cold_migration_has_another_host_of_the_cell(cloud: NovaCloud, server: str) -> None:
    before = one(cloud.settle(server))
    after = act(cloud, "resize", server, "resized", flavor=None)
    assert (after["cell"], after["host"] == before["host"]) == (before["cell"], False)
    act(cloud, "confirm", server)
    assert cloud.held(server) == {after["host"]: SMALL}


def test_a_live_migration_has_another_host(cloud: NovaCloud, server: str) -> None:
    before = one(cloud.settle(server))
    cloud.ask("live_migrate", instance=server)
    cloud.wait_for(lambda: ends(cloud, server) == ["completed"])
    after = one(cloud.settle(server))
    assert after["host"] != before["host"]
    assert cloud.held(server) == {after["host"]: SMALL}


def test_an_evacuation_claims_beside_the_dead_host(cloud: NovaCloud, server: str) -> None:
    source = one(cloud.settle(server))["host"]
    with cloud.dead(source):
        cloud.ask("evacuate", instance=server)
        cloud.wait_for(lambda: ends(cloud, server) == ["done"])
        after = one(cloud.settle(server))
        assert after["host"] != source
        assert cloud.held(server) == {source: SMALL, after["host"]: SMALL}
    # The host that comes back finds that its guest has left it.
    cloud.wait_for(lambda: cloud.held(server) == {after["host"]: SMALL})


def test_an_unshelved_server_gets_a_host(cloud: NovaCloud, server: str) -> None:
    cloud.ask("shelve", instance=server)
    cloud.settle(server, state="shelved_offloaded")
    assert cloud.held(server) == {}
    after = act(cloud, "unshelve", server)
    assert cloud.held(server) == {after["host"]: SMALL}


def test_a_host_that_refuses_a_guest_is_followed_by_an_alternate_of_its_cell(cloud: NovaCloud) -> None:
    refusing = [hosts[0] for hosts in cloud.hosts.values()]
    with cloud.refusing(*refusing):
        names = cloud.boot(count=6)
        built = cloud.settle(*names)
    assert not {each["host"] for each in built.values()} & set(refusing)
    for name, each in built.items():
        assert cloud.held(name) == {each["host"]: SMALL}
    assert any("refuses guests" in cloud.computes[host].said() for host in refusing)
    cloud.delete(*names)


def test_servers_that_fit_nowhere_end_in_error_with_a_reason(cloud: NovaCloud) -> None:
    with cloud.disabled(*(host for hosts in cloud.hosts.values() for host in hosts)):
        [name] = cloud.boot()
        failed = one(cloud.settle(name, state="error"))
    assert (failed["cell"], failed["host"]) == ("cell0", None)
    assert "No valid host was found" in failed["fault"]
    assert not any(host in failed["fault"] for hosts in cloud.hosts.values() for host in hosts)
    cloud.delete(name)


def test_novas_own_judges_find_nothing(cloud: NovaCloud) -> None:
    names = cloud.boot(count=3)
    cloud.settle(*names)
    cloud.judge()
    cloud.delete(*names)
    cloud.judge()
