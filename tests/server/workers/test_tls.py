"""HTTPS: certificates of server and clients, their renewal, and files that cannot be used."""

import http.client
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from roost.model.errors import OperatorError
from roost.server.workers.tls import Tls
from support.certificates import Pair, issue, make_authority
from support.processes import RoostUp
from support.serving import SECONDS, Serving
from support.steady_load import SteadyLoad
from support.waiting import wait_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Pair:
    return make_authority(folder, "authority")


@pytest.fixture(scope="module")
def server(authority: Pair, folder: Path) -> Pair:
    return issue(authority, folder, "server")


def connector(
    port: int, authority: Pair, own: Pair | None = None
) -> Callable[[], http.client.HTTPConnection]:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return lambda: http.client.HTTPSConnection("127.0.0.1", port, timeout=SECONDS, context=context)


def subject(port: int, authority: Pair) -> str:
    """The common name of the certificate that the server shows."""
    connection = connector(port, authority)()
    connection.connect()
    assert isinstance(connection.sock, ssl.SSLSocket)
    certificate = connection.sock.getpeercert()
    connection.close()
    assert certificate is not None
    [[(_, name)]] = certificate["subject"]
    return str(name)


def status(connect: Callable[[], http.client.HTTPConnection]) -> int:
    with closing(connect()) as connection:
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
        return answer.status


@pytest.fixture
def https(tmp_path: Path, server: Pair) -> Iterator[Serving]:
    """A server whose certificate is a copy that a test may replace."""
    (tmp_path / "crt").write_bytes(server.certificate.read_bytes())
    (tmp_path / "key").write_bytes(server.key.read_bytes())
    arguments = ("--tls-cert", f"{tmp_path}/crt", "--tls-key", f"{tmp_path}/key")
    serving = Serving(
        f"sqlite:///{tmp_path}/api.db", tmp_path / "log", workers=2, arguments=arguments, waits=False
    )
    wait_for(lambda: f"Placement API on https://127.0.0.1:{serving.port}" in serving.said())
    yield serving
    serving.end(signal.SIGKILL)


def test_a_reload_renews_the_certificate_and_loses_no_request(
    https: Serving, authority: Pair, folder: Path, tmp_path: Path
) -> None:
    before = https.workers
    assert subject(https.port, authority) == "server"
    renewed = issue(authority, folder, "renewed")
    with SteadyLoad(connector(https.port, authority), clients=4) as load:
        load.wait_for_answers(20)
        (tmp_path / "crt").write_bytes(renewed.certificate.read_bytes())
        https.send_signal(signal.SIGHUP)
        wait_for(lambda: "does not belong to the certificate" in https.said())
        assert https.workers == before
        (tmp_path / "key").write_bytes(renewed.key.read_bytes())
        https.send_signal(signal.SIGHUP)
        wait_for(lambda: not https.workers & before)
        load.wait_for_answers(20)
    assert load.lost == []
    assert set(load.statuses) == {200}
    assert subject(https.port, authority) == "renewed"


def test_clients_need_a_certificate_of_the_authority(
    tmp_path: Path, server: Pair, authority: Pair, folder: Path
) -> None:
    arguments = ("--tls-cert", server.certificate, "--tls-key", server.key)
    arguments = (*arguments, "--tls-client-ca", authority.certificate)
    url, log = f"sqlite:///{tmp_path}/api.db", tmp_path / "log"
    serving = Serving(url, log, arguments=[str(each) for each in arguments], waits=False)
    try:
        wait_for(lambda: "Placement API on https" in serving.said())
        client = issue(authority, folder, "client")
        stranger = issue(make_authority(folder, "stranger"), folder, "strange-client")
        assert status(connector(serving.port, authority, client)) == 200
        for own in (None, stranger):
            with pytest.raises(OSError):
                status(connector(serving.port, authority, own))
    finally:
        serving.end(signal.SIGKILL)


def test_roost_up_serves_https(tmp_path: Path, server: Pair, authority: Pair) -> None:
    arguments = ("--hosts", "2", "--cells", "1", "--tls-cert", str(server.certificate))
    with RoostUp(tmp_path, (*arguments, "--tls-key", str(server.key))) as system:
        system.wait_until_up()
        assert status(connector(system.port, authority)) == 200


def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, server: Pair, authority: Pair, folder: Path
) -> None:
    other = issue(authority, folder, "other")
    encrypted, text = tmp_path / "encrypted", tmp_path / "text"
    text.write_text("no certificate")
    subprocess.run(
        ["openssl", "ec", "-aes256", "-passout", "pass:x", "-in", server.key, "-out", encrypted],
        check=True,
        capture_output=True,
    )
    Tls(server.certificate, server.key, authority.certificate).check()
    for tls, said in (
        (Tls(tmp_path / "none", server.key), f"cannot read {tmp_path}/none: No such file"),
        (Tls(server.certificate, tmp_path), f"cannot read {tmp_path}: Is a directory"),
        (Tls(server.certificate, other.key), f"{other.key} does not belong to the certificate"),
        (Tls(text, server.key), f"{text} and {server.key} are not a certificate and its key"),
        (Tls(server.certificate, encrypted), f"{encrypted} is encrypted"),
        (Tls(server.certificate, server.key, text), f"{text} has no certificate in PEM"),
    ):
        with pytest.raises(OperatorError, match=said):
            tls.check()
