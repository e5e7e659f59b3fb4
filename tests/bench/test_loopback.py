"""Free ports for servers of tests."""

import multiprocessing
import socket

from roost.bench.loopback import free_ports


def test_ports_are_free_different_and_not_dealt_out_to_connections() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]):
        assert max(ports) < server.getsockname()[1]
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_processes_draw_from_ports_of_their_own() -> None:
    """Though no server listens at any of them yet, and whether a process was forked or started."""
    here = free_ports(20)
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            there = pool.apply(free_ports, (20,))
        assert {port // 500 for port in there}.isdisjoint(port // 500 for port in here)
    again = free_ports(20)
    assert set(again).isdisjoint(here)
    assert {port // 500 for port in again} == {port // 500 for port in here}
