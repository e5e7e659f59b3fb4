"""A host that an operator disables has Nova's trait in placement, whatever its agent goes through."""

import pytest

from roost.model.vocabulary import DISABLED_TRAIT
from roost.state.cell_database.disabled import enable_host
from support.simulation.scripted import Scripted

POLL = 20.0
"""Seconds of a poll: the next one brings the word of the operator."""


def word(cloud: Scripted, host: str, enabled: bool) -> None:
    """An operator enables or disables a host."""
    name = f"cell/{cloud.guests.hosts[host].cell}"
    cloud.network.databases[name].run(enable_host(host, enabled, "a new disk", cloud.loop.now), True)


def marked(cloud: Scripted) -> set[str]:
    """The hosts with the trait."""
    hosts = cloud.guests.hosts.values()
    return {host.name for host in hosts if DISABLED_TRAIT in cloud.placement.traits(host.node)}


@pytest.mark.parametrize("seed", range(3))
def test_a_host_that_is_disabled_is_marked_in_placement_until_it_is_enabled(seed: int) -> None:
    with Scripted(seed=seed) as cloud:
        host = next(iter(cloud.guests.hosts))
        word(cloud, host, False)
        cloud.wait(POLL + 5.0)
        assert marked(cloud) == {host}
        word(cloud, host, True)
        cloud.wait(POLL + 5.0)
        assert marked(cloud) == set()
        cloud.finish()


def test_the_mark_stays_while_the_agent_begins_anew_and_goes_with_a_word_that_came_meanwhile() -> None:
    with Scripted() as cloud:
        host = next(iter(cloud.guests.hosts))
        agent = next(each for each in cloud.agents if host in each.name)
        word(cloud, host, False)
        cloud.wait(POLL + 5.0)
        agent.crash()
        seen = set()
        agent.start()
        for _ in range(60):
            cloud.wait(0.5)
            seen.add(frozenset(marked(cloud)))
        assert seen == {frozenset({host})}
        agent.crash()
        word(cloud, host, True)
        cloud.wait(5.0)
        agent.start()
        cloud.wait(POLL)
        assert marked(cloud) == set()
        cloud.finish()
