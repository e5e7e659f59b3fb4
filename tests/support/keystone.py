"""A private Keystone for tests: the installed package on SQLite, with Fernet tokens, at a loopback port.

Its environment is ``.venv/keystone``, made from requirements-keystone.lock when it is first needed. In
Roost's own environment its packages would change the behaviour of libraries that both use.
"""

import base64
import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from roost.bench.loopback import free_port
from roost.bench.server_process import die_with_parent
from support.waiting import Deadline, patience

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements-keystone.lock"
ENVIRONMENT = ROOT / ".venv" / "keystone"
PASSWORD = "secret"
DOMAIN = {"id": "default"}
START_SECONDS = 120.0
CACHING = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
"""What Keystone compiles at its first start is kept: it is most of the time of a start."""
ANYWHERE = "http://127.0.0.1:1/v3"

USERS = (
    ("nova", "service", ("service",)),
    ("rita", "alpha", ("reader",)),
    ("mo", "alpha", ("member", "reader")),
)
"""Name, project and roles."""

_CONFIGURATION = """
[database]
connection = sqlite:///{folder}/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = {folder}/keys
[fernet_receipts]
key_repository = {folder}/keys
[credential]
key_repository = {folder}/keys
[identity]
password_hash_rounds = 4
[cache]
enabled = false
"""


def install() -> Path:
    """Return the interpreter of Keystone's environment, which is made unless it agrees with the lock file."""
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / "lock"
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    lock = ["--quiet", "--require-hashes", "-r", str(LOCK)]
    if uv := shutil.which("uv"):
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(ENVIRONMENT))
        _run(uv, "pip", "install", "--python", str(python), *lock)
    else:
        # The pip of the tests: one of its own takes as long to install as a quarter of the packages.
        _run(sys.executable, "-m", "venv", "--without-pip", str(ENVIRONMENT))
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
        _run(*pip, "install", "--no-compile", "--no-deps", *lock)
    stamp.write_text(wanted)
    return python


def prepared() -> Path:
    """Return a folder with Keystone's keys and a database with `USERS` and a catalog. It is made once."""
    with _alone():
        install()
        done = ENVIRONMENT / "prepared"
        if not done.exists():
            _prepare().rename(done)
    return done


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock with which one process of a test run makes the environment while the others wait."""
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    with ENVIRONMENT.with_name("keystone.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _prepare() -> Path:
    folder = ENVIRONMENT / "preparing"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "keys").mkdir(mode=0o700, parents=True)
    for number in range(2):
        (folder / "keys" / str(number)).write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    manage = [str(ENVIRONMENT / "bin" / "keystone-manage"), "--config-file", str(_configure(folder))]
    _run(*manage, "db_sync")
    urls = (f"--bootstrap-{kind}-url={ANYWHERE}" for kind in ("admin", "public", "internal"))
    _run(*manage, "bootstrap", f"--bootstrap-password={PASSWORD}", "--bootstrap-region-id=here", *urls)
    keystone = Keystone(folder)
    for name, project, roles in USERS:
        keystone.add_user(name, project, *roles)
    keystone.add_service("placement")
    keystone.close()
    return folder


class Keystone:
    """Keystone, running on a folder with its keys and its database.

    It has the user ``admin`` of the project ``admin``, who may also act for the whole system, and `USERS`.
    """

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/v3"
        self._log = folder / "requests"
        self._log.touch()
        with contextlib.closing(sqlite3.connect(folder / "keystone.db")) as database, database:
            database.execute("UPDATE endpoint SET url = ? WHERE url LIKE '%/v3'", (self.url,))
        # -P: in the script's folder this module would be found as Keystone.
        script = Path(__file__).with_name("keystone_server.py")
        serve = [str(ENVIRONMENT / "bin" / "python"), "-P", str(script)]
        environment = {
            **CACHING,
            "OS_KEYSTONE_CONFIG_FILES": str(_configure(folder)),
            "TEST_PORT": str(port),
            "TEST_LOG": str(self._log),
        }
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                serve, env=environment, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        self._client = httpx.Client(base_url=self.url, timeout=patience(120), trust_env=False)
        until = Deadline(START_SECONDS)
        while not self._answers():
            if self._process.poll() is not None or until.passed:
                self.close()
                raise AssertionError(f"Keystone does not start:\n{(folder / 'log').read_text()[-3000:]}")
            time.sleep(0.1)
        self._tokens: dict[tuple[str, str | None], str] = {}
        self._admin = {"x-auth-token": self.token()}
        self._ids: dict[tuple[str, str], str] = {}

    @classmethod
    def start(cls, folder: Path) -> "Keystone":
        """Run another Keystone in a new folder."""
        shutil.copytree(prepared(), folder, dirs_exist_ok=True)
        return cls(folder)

    def close(self) -> None:
        self._client.close()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def validations(self) -> int:
        """How many tokens it was asked about until now.

        It writes its log after it has answered: the log is read until it stays the same for a while.
        """
        before = -1
        while (now := self._log.read_text().count("GET /v3/auth/tokens")) != before:
            before = now
            time.sleep(0.3)
        return now

    def token(
        self, user: str = "admin", project: str | None = "admin", seconds: int | None = None, **identity: Any
    ) -> str:
        """Return a token of a user for a project, or for the system if None. It is valid for ``seconds``.

        Each user has one for a project until it is revoked.
        """
        who = {"user": {"name": user, "domain": DOMAIN, "password": PASSWORD}}
        scope: Any = {"system": {"all": True}}
        if project is not None:
            scope = {"project": {"name": project, "domain": DOMAIN}}
        auth = {"identity": {"methods": ["password"], "password": who}, "scope": scope}
        if identity:
            auth = {"identity": identity}
        plain = seconds is None and not identity
        if plain and (user, project) in self._tokens:
            return self._tokens[user, project]
        answer = self._client.post(
            "/auth/tokens",
            json={"auth": auth},
            headers={} if seconds is None else {"x-test-expiration": str(seconds)},
        )
        assert answer.status_code == 201, answer.text
        token = answer.headers["x-subject-token"]
        if plain:
            self._tokens[user, project] = token
        return token

    def project_id(self, token: str) -> str:
        found = self._client.get("/auth/tokens", headers={**self._admin, "x-subject-token": token}).json()
        project: str = found["token"]["project"]["id"]
        return project

    def revoke(self, token: str) -> None:
        self._tokens = {of: each for of, each in self._tokens.items() if each != token}
        answer = self._client.delete("/auth/tokens", headers={**self._admin, "x-subject-token": token})
        assert answer.status_code == 204, answer.text

    def add_user(self, name: str, project: str, *roles: str) -> None:
        """Create a user with roles in a project, and what is missing of these."""
        user = self._made("user", name, password=PASSWORD, domain_id="default")
        of = self._made("project", project, domain_id="default")
        for role in roles:
            granted = self._made("role", role)
            self._ask("PUT", f"/projects/{of}/users/{user}/roles/{granted}")

    def add_service(self, kind: str, url: str = "http://there") -> None:
        """Add a service at a URL to the catalog."""
        service = self._ask("POST", "/services", {"service": {"type": kind, "name": kind}})["service"]["id"]
        endpoint = {"service_id": service, "interface": "public", "url": url, "region_id": "here"}
        self._ask("POST", "/endpoints", {"endpoint": endpoint})

    def application_credential(self, *rules: dict[str, str]) -> dict[str, Any]:
        """Return an application credential of the user admin with rules for its access."""
        found = self._client.get(
            "/auth/tokens", headers={**self._admin, "x-subject-token": self._admin["x-auth-token"]}
        ).json()["token"]
        body = {"application_credential": {"name": f"limited {len(self._ids)}", "access_rules": list(rules)}}
        path = f"/users/{found['user']['id']}/application_credentials"
        made = self._ask("POST", path, body)["application_credential"]
        of = {"id": made["id"], "secret": made["secret"]}
        return {"methods": ["application_credential"], "application_credential": of}

    def _made(self, kind: str, name: str, **more: str) -> str:
        if (kind, name) not in self._ids:
            found = self._ask("GET", f"/{kind}s?name={name}")[f"{kind}s"]
            if not found:
                found = [self._ask("POST", f"/{kind}s", {kind: {"name": name, **more}})[kind]]
            self._ids[kind, name] = found[0]["id"]
        return self._ids[kind, name]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._client.request(method, path, json=body, headers=self._admin)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def _answers(self) -> bool:
        try:
            return self._client.get(self.url).status_code == 200
        except httpx.TransportError:
            return False


def _configure(folder: Path) -> Path:
    file = folder / "keystone.conf"
    file.write_text(_CONFIGURATION.format(folder=folder))
    return file


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env=CACHING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
