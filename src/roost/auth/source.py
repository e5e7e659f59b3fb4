"""Where options come from: files, environment variables and the command line.

An environment variable replaces the value of the files, and the command line replaces both. The variable of
an option is ``OS_<GROUP>__<OPTION>``, such as ``OS_API__AUTH_STRATEGY``; oslo.config reads it.
"""

import copy
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from oslo_config import cfg, types

from roost.model.errors import OperatorError

PROJECT = "placement"
"""The project's name for oslo.config, which looks for policy files in /etc/placement too."""


class Setting(NamedTuple):
    """An option given on the command line."""

    group: str
    option: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """Parse ``group.option=value``. Raises `OperatorError`."""
        name, equals, value = text.partition("=")
        group, dot, option = name.strip().partition(".")
        if not (equals and dot and group and option):
            raise OperatorError(f"{name.strip()!r} is no setting: write GROUP.OPTION=VALUE")
        return cls(group, option.replace("-", "_"), value.strip())


class Source(msgspec.Struct, frozen=True):
    """The files and settings to read options from. If several files set an option, the last one counts.

    ``defaults``: values of the options that files, environment and settings do not set.

    A process that starts others hands them this value, and each reads the options itself, because an open
    configuration cannot be sent to another process.
    """

    files: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    defaults: tuple[Setting, ...] = ()

    def open(self) -> cfg.ConfigOpts:
        """Open a configuration in which options can be registered. Raises `OperatorError`."""
        conf = cfg.ConfigOpts()
        try:
            conf(args=[], project=PROJECT, default_config_files=list(self.files))
        except (cfg.Error, UnicodeDecodeError) as error:
            raise OperatorError(f"configuration: {error}") from error
        return conf

    def register(self, conf: cfg.ConfigOpts, group: str, options: Iterable[cfg.Opt]) -> None:
        """Register a group's options, and apply the settings of the command line to them.

        Raises:
            OperatorError: A setting has a wrong value.
        """
        place = None if group == "DEFAULT" else group
        for option in options:
            conf.register_opt(_finite(option), group=place)
            for default in self.defaults:
                if (default.group, default.option) == (group, option.dest):
                    conf.set_default(option.dest, default.value, place)
            for setting in self.settings:
                if (setting.group, setting.option) == (group, option.dest):
                    value = [setting.value] if option.multi else setting.value
                    try:
                        conf.set_override(option.dest, value, place)
                    except ValueError as error:
                        raise OperatorError(
                            f"configuration: {group}.{option.dest}: {setting.value!r} is refused: {error}"
                        ) from error


def _finite(option: cfg.Opt) -> cfg.Opt:
    """An option that refuses what is a number of Python and no amount: nan, and infinity."""
    if type(option.type) is not types.Float:
        return option
    refusing = copy.copy(option)
    refusing.type = _Finite(min=option.type.min, max=option.type.max)
    return refusing


class _Finite(types.Float):
    """A number with a fraction. Raises ValueError for one that is not finite."""

    def __call__(self, value: Any) -> int | float | None:
        number = super().__call__(value)
        if number is not None and not math.isfinite(number):
            raise ValueError("it is no finite number")
        return number

    def __eq__(self, other: object) -> bool:
        # Libraries register options of theirs again, and oslo.config has them equal.
        return isinstance(other, types.Float) and (self.min, self.max) == (other.min, other.max)

    __hash__ = types.Float.__hash__
