"""A browser for the tests of a file, and windows of it that are watched."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browser import Windows, chromium
from support.page_server import PageServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium. Not of the session: while Playwright runs, no other test of its process can run asyncio."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def page_server() -> Iterator[PageServer]:
    """A server of assets and of the answers that a test gives."""
    with PageServer() as server:
        yield server


@pytest.fixture
def windows(browser: Browser, page_server: PageServer) -> Iterator[Windows]:
    """Windows on the page server."""
    with Windows(browser, page_server.origin) as windows:
        yield windows
