"""The two services under comparison, OpenStack's Placement and Roost, both in this process.

Each is a WSGI application with a SQLite database of its own.
"""

import asyncio
import logging
import shutil
import warnings
from functools import cache
from pathlib import Path
from wsgiref.types import WSGIApplication

import sqlalchemy as sa

from roost.ledger import Ledger
from roost.placement.http.app import create_app
from roost.placement.options import PlacementOptions
from roost.storage import Database
from support.wsgi import Answer, AsWsgi, call

with warnings.catch_warnings():
    # Its libraries use deprecated parts of Python.
    warnings.simplefilter("ignore")
    from oslo_config import cfg
    from oslo_policy import opts as policy_opts
    from placement.db.sqlalchemy import migration

    from placement import conf as upstream_conf
    from placement import db_api, deploy

_TABLES = (
    "allocations",
    "consumers",
    "consumer_types",
    "projects",
    "users",
    "inventories",
    "resource_provider_traits",
    "resource_provider_aggregates",
    "placement_aggregates",
)
_CUSTOM_NAMES = ("resource_classes", "traits")


@cache
def _start_upstream() -> WSGIApplication:
    """Start upstream's application, which has one database for the whole process."""
    for name in ("placement", "oslo_policy", "oslo_db", "alembic"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    options = cfg.ConfigOpts()
    upstream_conf.register_opts(options)
    policy_opts.set_defaults(options)
    options.set_override("connection", "sqlite://", group="placement_database")
    options.set_override("auth_strategy", "noauth2", group="api")
    options.set_override("enforce_new_defaults", False, group="oslo_policy")
    options([], default_config_files=[], default_config_dirs=[])
    db_api.configure(options)
    migration.create_schema(db_api.get_placement_engine())
    application: WSGIApplication = deploy.loadapp(options)
    return application


class Upstream:
    """The installed openstack-placement."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._app = _start_upstream()
        self.reset()

    def ask(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(self._app, method, url, body, headers)

    def reset(self) -> None:
        """Delete all data."""
        with db_api.get_placement_engine().begin() as connection:
            for table in _TABLES:
                connection.execute(sa.text(f"DELETE FROM {table}"))
            connection.execute(
                sa.text("UPDATE resource_providers SET parent_provider_id = NULL, root_provider_id = NULL")
            )
            connection.execute(sa.text("DELETE FROM resource_providers"))
            for table in _CUSTOM_NAMES:
                connection.execute(sa.text(f"DELETE FROM {table} WHERE name LIKE 'CUSTOM\\_%' ESCAPE '\\'"))

    def forget_empty_consumers(self) -> int:
        """Delete the consumers that refused writes leave behind, a defect of upstream; return how many."""
        with db_api.get_placement_engine().begin() as connection:
            empty = "DELETE FROM consumers WHERE uuid NOT IN (SELECT consumer_id FROM allocations)"
            return connection.execute(sa.text(empty)).rowcount

    def close(self) -> None:
        self.reset()


class Roost:
    """Roost on a SQLite file in ``folder``. ``empty`` is the file of an empty service."""

    def __init__(self, folder: Path, empty: Path) -> None:
        self._runner = asyncio.Runner()
        self._path = folder / "roost.db"
        self._empty = empty
        self._open()

    def ask(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        return call(self._app, method, url, body, headers)

    def reset(self) -> None:
        """Delete all data."""
        self._shut()
        self._open()

    def close(self) -> None:
        self._shut()
        self._runner.close()

    def _open(self) -> None:
        shutil.copy(self._empty, self._path)
        self._database = Database(f"sqlite:///{self._path}")
        self._ledger = self._runner.run(Ledger.open(self._database))
        options = PlacementOptions(auth_strategy="noauth2", enforce_new_defaults=False)
        self._app = AsWsgi(create_app(self._ledger, options), self._runner.run)

    def _shut(self) -> None:
        self._runner.run(self._ledger.close())
        self._runner.run(self._database.close())
        for path in self._path.parent.glob(f"{self._path.name}*"):
            path.unlink()
