"""Free ports for servers of tests."""

import socket

from roost.bench.loopback import free_ports


def test_ports_are_free_different_and_not_dealt_out_to_connections() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]):
        assert max(ports) < server.getsockname()[1]
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()
