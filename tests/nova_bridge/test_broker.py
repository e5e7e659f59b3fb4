"""The addresses in a transport_url, and the options of TLS."""

import ssl

import pytest

from roost.model.errors import OperatorError
from roost.nova.broker import BrokerAddress, RabbitOptions, broker_addresses, virtual_host


@pytest.mark.parametrize(
    ("url", "addresses", "host"),
    [
        ("rabbit://", [], "/"),
        ("fake://", [], "/"),
        ("rabbit://u:p@broker", [BrokerAddress("broker", 5672, "u", "p")], "/"),
        (
            "rabbit://u:p%40ss@a:5671,v:q@b:5673//nova",
            [BrokerAddress("a", 5671, "u", "p@ss"), BrokerAddress("b", 5673, "v", "q")],
            "/nova",
        ),
        ("rabbit://u:p@[::1]:5672/vh?ssl=1", [BrokerAddress("::1", 5672, "u", "p")], "vh"),
    ],
)
def test_addresses(url: str, addresses: list[BrokerAddress], host: str) -> None:
    assert broker_addresses(url) == addresses
    assert virtual_host(url) == host


@pytest.mark.parametrize("url", ["rabbit://u:secret@broker:port/", "rabbit://u:secret@[::1:5672/"])
def test_an_address_that_cannot_be_read(url: str) -> None:
    with pytest.raises(OperatorError, match=r"transport_url: ") as found:
        broker_addresses(url)
    assert "secret" not in str(found.value)


def test_tls() -> None:
    assert RabbitOptions().tls is False
    assert RabbitOptions(ssl=True).tls is True
    checked = RabbitOptions(ssl=True, ssl_ca_file="ca.pem", ssl_cert_file="c.pem").tls
    assert checked == {"ca_certs": "ca.pem", "certfile": "c.pem", "cert_reqs": ssl.CERT_REQUIRED}
