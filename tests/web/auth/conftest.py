"""One Keystone for all tests, and the configuration of a service that believes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.process.option_source import Source
from support.keystone import PASSWORD, Keystone


@pytest.fixture(scope="session")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    running = Keystone.start(tmp_path_factory.mktemp("keystone"))
    yield running
    running.close()


@pytest.fixture
def configured(keystone: Keystone, tmp_path: Path) -> Source:
    return configure(tmp_path, keystone.url)


def configure(folder: Path, url: str, *more: str) -> Source:
    """A file as an operator has it, for a Keystone at a URL."""
    file = folder / "placement.conf"
    lines = (
        "[keystone_authtoken]",
        f"www_authenticate_uri = {url}",
        f"auth_url = {url}",
        "auth_type = password",
        "username = nova",
        f"password = {PASSWORD}",
        "project_name = service",
        "user_domain_name = Default",
        "project_domain_name = Default",
        "service_type = placement",
        "http_request_max_retries = 0",
        *more,
    )
    file.write_text("\n".join(lines))
    return Source((str(file),))
