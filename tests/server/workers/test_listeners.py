"""Listening sockets: ports whose connections are steered, and UNIX sockets."""

import errno
import os
import socket
import stat
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from roost.bench.loopback import free_port
from roost.model.errors import OperatorError
from roost.server.workers.listeners import Address, Listeners, UnixAddress, listen


def accepted(listeners: Listeners, port: int, number: int) -> Counter[int]:
    """The number of connections that each slot gets of ``number`` new ones."""
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(number)]
    found: Counter[int] = Counter()
    for slot, each in enumerate(listeners.sockets):
        while True:
            try:
                connection, _ = each.accept()
            except BlockingIOError:
                break
            connection.close()
            found[slot] += 1
    for client in clients:
        client.close()
    assert found.total() == number
    return found


def test_new_connections_go_to_the_slots_that_serve() -> None:
    port = free_port()
    with closing(listen(Address("127.0.0.1", port), 3)) as listeners:
        assert set(accepted(listeners, port, 100)) == {0, 1, 2}
        for serving in ({1}, {0, 2}, {2}, {0, 1}):
            listeners.steer(serving)
            assert set(accepted(listeners, port, 100)) == serving
        listeners.steer({0, 1, 2})
        assert set(accepted(listeners, port, 100)) == {0, 1, 2}


def test_a_port_in_use_and_an_address_of_another_machine_are_refused() -> None:
    port = free_port()
    with closing(listen(Address("127.0.0.1", port), 2)), pytest.raises(OperatorError, match=f"port {port}"):
        listen(Address("127.0.0.1", port), 2)
    with pytest.raises(OperatorError, match="on 192"):
        listen(Address("192.0.2.1", port), 1)


def test_a_unix_socket_has_its_mode_and_is_removed_at_the_end(tmp_path: Path) -> None:
    address = UnixAddress(tmp_path / "socket", 0o606)
    mask = os.umask(0o077)
    try:
        with closing(listen(address, 2)) as listeners:
            assert stat.S_IMODE(address.path.stat().st_mode) == 0o606
            assert len(listeners.sockets) == 2
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(address.path))
                connection, _ = listeners.sockets[1].accept()
                connection.close()
    finally:
        os.umask(mask)
    assert not address.path.exists()


def test_the_socket_of_a_dead_service_is_replaced_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    address = UnixAddress(tmp_path / "socket", 0o600)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(address.path))
    with closing(listen(address, 1)), pytest.raises(OperatorError, match="another process does"):
        listen(address, 1)
    assert not address.path.exists()


def test_other_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(OperatorError, match="it is a file and not a socket"):
        listen(UnixAddress(path, 0o600), 1)
    assert path.read_text() == "mine"
    with pytest.raises(OperatorError, match=os.strerror(errno.ENOENT)):
        listen(UnixAddress(tmp_path / "none" / "socket", 0o600), 1)
