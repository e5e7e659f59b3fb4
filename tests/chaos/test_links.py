"""Links cut, hold and refuse connections, and find another server where one is gone."""

import socket
import threading
from collections.abc import Iterator

import pytest

from chaos.links import Link, Network, network


class Echo:
    """A server that says its name, then whatever it is told."""

    def __init__(self, name: bytes) -> None:
        self._name = name
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            connection.sendall(self._name)
            while data := connection.recv(100):
                connection.sendall(data)


@pytest.fixture
def links() -> Iterator[Network]:
    with network() as made:
        yield made


def connect(link: Link) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", link.port), 10)
    connection.settimeout(10)
    return connection


def is_cut(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def test_what_is_sent_arrives_until_the_link_is_cut(links: Network) -> None:
    link = links.link("link", Echo(b"a").port)
    with connect(link) as connection:
        assert connection.recv(100) == b"a"
        connection.sendall(b"hello")
        assert connection.recv(100) == b"hello"
        links.cut(link)
        assert is_cut(connection)
    with connect(link) as connection:
        assert connection.recv(100) == b"a"


def test_what_is_held_goes_on_afterwards(links: Network) -> None:
    link = links.link("link", Echo(b"a").port)
    with connect(link) as connection:
        assert connection.recv(100) == b"a"
        links.hold(link, True)
        with connect(link) as late:
            connection.sendall(b"hello")
            late.sendall(b"late")
            for each in (connection, late):
                each.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    each.recv(100)
                each.settimeout(10)
            links.hold(link, False)
            assert connection.recv(100) == b"hello"
            assert late.recv(1) == b"a"
            assert late.recv(100) == b"late"


def test_a_refused_link_cuts_and_takes_nothing_until_it_is_well(links: Network) -> None:
    link = links.link("link", Echo(b"a").port)
    with connect(link) as connection:
        assert connection.recv(100) == b"a"
        links.refuse(link, True)
        assert is_cut(connection)
    with connect(link) as connection:
        assert is_cut(connection)
    links.refuse(link, False)
    with connect(link) as connection:
        assert connection.recv(100) == b"a"


def test_servers_take_connections_in_turn_and_one_that_is_gone_is_left_out(links: Network) -> None:
    first, second = Echo(b"a"), Echo(b"b")
    link = links.link("link", first.port, second.port)

    def name() -> bytes:
        with connect(link) as connection:
            return connection.recv(100)

    assert {name(), name()} == {b"a", b"b"}
    first.close()
    assert {name(), name()} == {b"b"}
