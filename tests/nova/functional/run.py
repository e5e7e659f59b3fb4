"""Nova's own functional tests, one after the other in this process, with Roost in place of nova-scheduler.

Nova's interpreter runs it:

    .venv/nova/bin/python tests/nova/functional/run.py [--scheduler nova] [--results FILE] [NAME...]

A name is that of a test, a class or a module; without names, the tests of tests.txt are run. The outcome of
each test is printed, and written to the file as a line of JSON. ``--scheduler nova`` leaves Nova's own
scheduler in its place, to compare with.
"""

import argparse
import importlib
import os
import sys
import unittest
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIBRARIES = ROOT / ".venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
SECONDS = 600
"""Seconds that one test may take."""


def prepare() -> None:
    """Set what must be set before Nova's tests are imported.

    They run with threads in place of greenlets. So they also keep their databases in files, which the feed
    can read. Roost and openstack-placement are last on the path: of libraries that both environments have,
    that of Nova's is taken.
    """
    os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "1"
    os.environ.setdefault("OS_TEST_TIMEOUT", str(SECONDS))
    sys.path += [str(ROOT / "src"), str(LIBRARIES / "site-packages")]
    # The first import of Nova decides about greenlets.
    import nova.tests.functional  # noqa: F401
    from nova.conf import paths

    # The wheel has the paste file of Nova's API below the environment, and not beside the source.
    basedir = next(option for option in paths.ALL_OPTS if option.name == "pybasedir")
    basedir.default = sys.prefix
    _allow_newer_sqlalchemy()


def _allow_newer_sqlalchemy() -> None:
    """Ignore a deprecation that is younger than Nova 34.0.0, whose tests make errors of deprecations."""
    from nova.tests import fixtures
    from sqlalchemy.exc import SADeprecationWarning

    set_up = fixtures.WarningsFixture.setUp

    def then_allow(fixture: Any) -> None:
        set_up(fixture)
        warnings.filterwarnings("ignore", "The noload", SADeprecationWarning)

    fixtures.WarningsFixture.setUp = then_allow


def loaded(name: str) -> unittest.TestCase | unittest.TestSuite:
    """Return a test, or all tests of a class or module."""
    of_class, _, method = name.rpartition(".")
    module, _, case = of_class.rpartition(".")
    if case[:1].isupper():
        # unittest takes a method that something wraps for a function that returns a test.
        return getattr(importlib.import_module(module), case)(method)
    return unittest.defaultTestLoader.loadTestsFromName(name)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run Nova's functional tests.")
    parser.add_argument("--scheduler", choices=("roost", "nova"), default="roost")
    parser.add_argument("--results", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names or (HERE / "tests.txt").read_text().split()
    sys.argv[1:] = []  # Nova reads options from it.
    prepare()
    if arguments.scheduler == "roost":
        import manager
        import structlog

        # Roost's log becomes a part of that of the test.
        logged = [structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()]
        structlog.configure(logged, logger_factory=structlog.stdlib.LoggerFactory())
        manager.install()
    from outcomes import Outcomes

    outcomes = Outcomes(arguments.results)
    for name in names:
        loaded(name).run(outcomes)
    print(outcomes.summary())
    return 1 if outcomes.failed else 0


if __name__ == "__main__":
    # Threads of Nova's services may still wait for something.
    status = main()
    sys.stdout.flush()
    os._exit(status)
