"""Tokens and the password of Roost's own account are in no log line and no answer, with all messages on."""

import signal
from pathlib import Path

import httpx

from support.keystone import PASSWORD, Keystone
from support.serving import Serving
from support.waiting import patience
from web.auth.conftest import configure

REQUESTS = (
    ("GET", "/", None),
    ("GET", "/resource_providers", None),
    ("GET", "/nothing", None),
    ("POST", "/resource_providers", b"{"),
    ("PUT", "/allocations/x", b'{"a": 1}'),
    ("GET", "/v1/changes?after=-1", None),
    ("DELETE", "/traits", None),
)


def test_no_secret_is_in_the_log_or_an_answer(keystone: Keystone, tmp_path: Path) -> None:
    """Requests with valid, unknown and expired-looking tokens that succeed, are refused, or are malformed."""
    configure(tmp_path, keystone.url)
    lines = (tmp_path / "placement.conf").read_text().splitlines()[1:]
    settings = [f"keystone_authtoken.{line.replace(' = ', '=', 1)}" for line in lines]
    settings += ["api.auth_strategy=keystone", "DEFAULT.debug=true", "DEFAULT.access_log=true"]
    settings += ["DEFAULT.default_log_levels=keystonemiddleware=DEBUG,keystoneauth=DEBUG"]
    server = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log", settings=settings)
    tokens = (keystone.token(), keystone.token("rita", "alpha"), "gAAAAABno-such-token-but-secret")
    answers = []
    for token in tokens:
        headers = {"x-auth-token": token, "x-service-token": token, "content-type": "application/json"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=patience(60), verify=False) as client:
            for method, path, body in REQUESTS:
                answer = client.request(method, path, content=body)
                answers.append(f"{answer.headers}{answer.text}")
    server.end(signal.SIGTERM)
    told = "".join(answers) + server.said()
    assert server.said().count("roost.access") >= len(tokens) * len(REQUESTS), server.said()
    for secret in (*tokens, f"password={PASSWORD}", f"'{PASSWORD}'", f'"{PASSWORD}"'):
        assert secret not in told
