"""Nova's own client of its scheduler."""

from collections.abc import Iterator

import pytest

from support.nova import NOT_INSTALLED, Nova, nova_python


@pytest.fixture(scope="session")
def nova(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nova]:
    python = nova_python()
    if python is None:
        pytest.skip(NOT_INSTALLED)
    asked = Nova(python, tmp_path_factory.mktemp("nova") / "nova.log")
    # Here, because the process ends with the thread that starts it.
    asked.ask("installed", "nova_version")
    yield asked
    asked.close()
