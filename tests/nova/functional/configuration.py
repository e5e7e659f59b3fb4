"""A nova.conf with the options of a running test, as an operator of its cloud would have it.

Tests set options in the middle of a run. The scheduler reads a file.
"""

from collections.abc import Iterator
from typing import Any

from nova.db.api import api as api_database
from oslo_config import cfg

from nova import conf as nova_conf

SECTIONS = (
    nova_conf.availability_zone,
    nova_conf.compute,
    nova_conf.pci,
    nova_conf.scheduler,
    nova_conf.servicegroup,
    nova_conf.workarounds,
)
"""Modules of Nova that declare the options that a scheduler reads."""


def written_options(main_database: str) -> str:
    """Return the text of the file: options that differ from their defaults, and the URLs of the databases.

    ``main_database``: the database of the cell that has the services of the cloud itself.
    """
    sections: dict[str, list[str]] = {
        "api_database": [f"connection = {api_database.get_engine().url}"],
        "database": [f"connection = {main_database}"],
    }
    for module in SECTIONS:
        for group, options in module.list_opts().items():
            name = group if isinstance(group, str) else group.name
            section = nova_conf.CONF if name == "DEFAULT" else nova_conf.CONF[name]
            for option in options:
                value = section[option.dest]
                if value != option.default and value is not None:
                    sections.setdefault(name, []).extend(_lines(option, value))
    return "".join(f"[{name}]\n" + "".join(f"{line}\n" for line in each) for name, each in sections.items())


def _lines(option: cfg.Opt, value: Any) -> Iterator[str]:
    for each in value if option.multi else [value]:
        yield f"{option.dest} = {_text(each)}"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        return ",".join(f"{key}:{_text(each)}" for key, each in value.items())
    return str(value).replace("$", "$$")
