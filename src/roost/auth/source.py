"""Where options come from: files, over them the environment, over it the command line.

The environment names an option as ``OS_<GROUP>__<OPTION>``, such as ``OS_API__AUTH_STRATEGY``; oslo.config
reads it.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from oslo_config import cfg

from roost.model.errors import OperatorError

PROJECT = "placement"
"""Whose files: policies are looked for in /etc/placement, if not beside the configuration."""


class Setting(NamedTuple):
    """An option given on the command line."""

    group: str
    option: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """From ``group.option=value``. Raises `OperatorError`."""
        name, equals, value = text.partition("=")
        group, dot, option = name.strip().partition(".")
        if not (equals and dot and group and option):
            raise OperatorError(f"{name.strip()!r} is no setting: write GROUP.OPTION=VALUE")
        return cls(group, option.replace("-", "_"), value.strip())


class Source(msgspec.Struct, frozen=True):
    """What to read options from. ``files``: of several that set an option the last counts.

    A process that starts others passes this on and each reads for itself: an open configuration cannot be
    sent to another process.
    """

    files: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()

    def open(self) -> cfg.ConfigOpts:
        """A configuration in which options can be registered. Raises `OperatorError`."""
        conf = cfg.ConfigOpts()
        try:
            conf(args=[], project=PROJECT, default_config_files=list(self.files))
        except cfg.Error as error:
            raise OperatorError(f"configuration: {error}") from error
        return conf

    def register(self, conf: cfg.ConfigOpts, group: str, options: Iterable[cfg.Opt]) -> None:
        """Register a group's options and put the command line's settings of them in.

        Raises `OperatorError` for a wrong value.
        """
        place = None if group == "DEFAULT" else group
        for option in options:
            conf.register_opt(option, group=place)
            for setting in self.settings:
                if (setting.group, setting.option) == (group, option.dest):
                    value = [setting.value] if option.multi else setting.value
                    try:
                        conf.set_override(option.dest, value, place)
                    except ValueError as error:
                        raise OperatorError(f"configuration: {group}.{option.dest}: {error}") from error
