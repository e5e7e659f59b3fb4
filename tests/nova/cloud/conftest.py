"""A small real Nova cloud for the tests of this folder, with ROOST_NOVA_HOSTS computes in each cell."""

import os
from collections.abc import Iterator

import pytest

from support.databases import Servers
from support.nova import NOT_INSTALLED, nova_python
from support.nova_cloud.cloud import NovaCloud
from support.rabbitmq import NOT_INSTALLED as NO_BROKER
from support.rabbitmq import PROGRAM
from support.servers import made

HOSTS = int(os.environ.get("ROOST_NOVA_HOSTS", "2"))


@pytest.fixture(scope="session")
def cloud(servers: Servers) -> Iterator[NovaCloud]:
    python = nova_python()
    if python is None:
        pytest.skip(NOT_INSTALLED)
    if PROGRAM is None:
        pytest.skip(NO_BROKER)
    servers.needs("mariadb")
    with NovaCloud(servers, python, made(servers.folder, "cloud"), hosts=HOSTS) as running:
        yield running
