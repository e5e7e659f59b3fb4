"""Topologies are read as nodes report them, or refused with a text."""

from typing import Any

import pytest

from roost.fleet.hardware.cpus import numbers_of, set_of
from roost.fleet.hardware.host_topology import Pages, UnreadableTopology, decoded, with_assigned
from roost.model.assignment import AssignedCell
from support.numa_hosts import enveloped, reported, reported_cell, two_cells


def test_a_set_of_cpus_has_the_numbers_that_it_was_made_of() -> None:
    assert numbers_of(set_of([70, 3, 0])) == (0, 3, 70)


def test_a_topology_is_read_with_nova_s_envelope_and_without() -> None:
    network = {"physnets": ["red"], "tunneled": True}
    plain = reported(
        reported_cell(0, range(4), dedicated=range(4, 8), threads=2, pinned_cpus=[5], socket=1),
        reported_cell(1, range(8, 12), network_metadata=network, cpu_usage=3, memory_usage=512),
    )
    topology = decoded(plain)
    first, second = topology.cells
    assert decoded(enveloped(plain)) == topology
    assert hash(decoded(enveloped(plain))) == hash(topology)
    assert (numbers_of(first.cpuset), numbers_of(first.free_cpus)) == ((0, 1, 2, 3), (4, 6, 7))
    assert [numbers_of(core) for core in first.free_cores] == [(4,), (6, 7)]
    assert first.threads_per_core == 2
    assert topology.sockets == {0: 1, 1: None}
    assert (set(second.physnets), second.tunneled) == ({"red"}, True)
    assert (second.cpu_usage, second.free_memory_mb) == (3, 3584)
    assert second.pages == (Pages(4, 2**20, 2**20),)


def test_a_cell_without_dedicated_cpus_of_its_own_has_all_of_them() -> None:
    cell = reported_cell(0, range(4))
    del cell["pcpuset"]
    assert decoded(reported(cell)).cells[0].pcpuset == set_of(range(4))


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        ({}, "cells"),
        ({"cells": [{"id": 0}]}, "cpuset"),
        (reported(reported_cell(0, [0, 10**6])), "8191"),
        (reported(reported_cell(0, [0], memory_usage=-1)), "memory_usage"),
        (reported(reported_cell(0, [0]), reported_cell(0, [1])), "two cells have the same id"),
        (reported(reported_cell(0, [0, 1]), reported_cell(1, [1])), "CPUs of another cell"),
        (reported({**reported_cell(0, [0, 1]), "siblings": [[0, 1], [1]]}), "are in two cores"),
        (
            reported({**reported_cell(0, [0]), "mempages": [{"size_kb": 4, "total": 1}] * 2}),
            "a page size twice",
        ),
    ],
)
def test_what_is_no_topology_is_refused(topology: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableTopology, match=said):
        decoded(topology)


def test_what_is_assigned_is_used() -> None:
    topology = decoded(two_cells(pages={4: 1000, 2048: 512}))
    used = with_assigned(
        topology,
        [
            AssignedCell(
                guest=0,
                host=1,
                shared=2,
                pinned=((0, 4),),
                reserved=(5,),
                withheld=(6,),
                memory_mb=1024,
                page_size_kb=2048,
            ),
            AssignedCell(guest=1, host=1, shared=1, memory_mb=1),
            AssignedCell(guest=2, host=7, shared=1, memory_mb=1),
        ],
    )
    cell = used.cells[1]
    assert used.cells[0] == topology.cells[0]
    assert (numbers_of(cell.free_cpus), cell.cpu_usage, cell.memory_used_mb) == ((7,), 3, 1025)
    assert cell.pages == (Pages(4, 1000, 744), Pages(2048, 512, 0))
    assert with_assigned(topology, []) is topology
