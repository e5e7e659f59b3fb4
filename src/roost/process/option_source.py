"""The sources of options: files, environment variables and the command line.

An environment variable replaces the value of the files, and the command line replaces both. The variable of
an option is ``OS_<GROUP>__<OPTION>``, such as ``OS_API__AUTH_STRATEGY``; oslo.config reads it.
"""

import copy
import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
from oslo_config import cfg, iniparser, types

from roost.model.errors import OperatorError
from roost.model.secrets import HIDDEN, safe_message
from roost.process.options import DEFAULT_GROUP, OptionStruct, options_by_group, read_struct

S = TypeVar("S", bound=OptionStruct)

_NAME = re.compile(r"[\w.-]+")
_REFUSED = re.compile(r"Value for option (\S+) from LocationInfo\(.*detail='(.*)'\) is not valid: (.*)")

MAIN_DATABASE = "placement_database"
"""The group whose database `roost db` uses by default."""

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
        if not (equals and dot and group and option and _NAME.fullmatch(option)):
            # The message does not quote the text: it may be a secret.
            shown = name.strip() if _NAME.fullmatch(name.strip()) else f"{HIDDEN!r}"
            raise OperatorError(f"--set: {shown} is no setting: write GROUP.OPTION=VALUE")
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
        for file in self.files:
            _check_file(file)
        conf = cfg.ConfigOpts()
        try:
            conf(args=[], project=PROJECT, default_config_files=list(self.files))
        except cfg.Error as error:
            raise refused_value(error) from error
        return conf

    def given_by(self, group: str, option: str) -> str | None:
        """Return the options by which `roost db` uses the database of a group, as this source names it.

        None if the command line has the URL itself.
        """
        if any((each.group, each.option) == (group, option) for each in (*self.settings, *self.defaults)):
            return None
        files = [f"--config-file {shlex.quote(file)}" for file in self.files]
        return " ".join([*files, *([] if group == MAIN_DATABASE else [f"--section {group}"])])

    def read(self, struct: type[S], **given: Any) -> S:
        """Read a struct of options. ``given``: the values of fields that are not to be read.

        Raises:
            OperatorError: A file cannot be read, or a value is refused.
        """
        conf = self.open()
        self.register(conf, options_by_group(struct))
        try:
            return read_struct(conf, struct, **given)
        except (cfg.Error, ValueError) as error:
            raise refused_value(error) from error

    def register(self, conf: cfg.ConfigOpts, groups: Mapping[str, Iterable[cfg.Opt]]) -> None:
        """Register the options of groups, and apply the settings of the command line to them.

        Raises:
            OperatorError: A setting has a wrong value.
        """
        for group, options in groups.items():
            self._register(conf, group, options)

    def _register(self, conf: cfg.ConfigOpts, group: str, options: Iterable[cfg.Opt]) -> None:
        place = None if group == DEFAULT_GROUP else group
        for option in options:
            conf.register_opt(_finite(option), group=place)
            for default in self.defaults:
                if (default.group, default.option) == (group, option.dest):
                    conf.set_default(option.dest, default.value, place)
            for setting in (*_elsewhere(group, option), *self.settings):
                if (setting.group, setting.option) in option_names(group, option):
                    value = [setting.value] if option.multi else setting.value
                    try:
                        conf.set_override(option.dest, value, place)
                    except ValueError as error:
                        shown = HIDDEN if option.secret else safe_message(setting.value)
                        raise OperatorError(
                            f"configuration: {setting.group}.{setting.option}: {shown!r} is refused: {error}"
                        ) from error


def option_names(group: str, option: cfg.Opt) -> list[tuple[str, str]]:
    """Return the groups and names of an option: its own first, then upstream's and earlier ones."""
    older = [
        (each.group or group, (each.name or option.dest).replace("-", "_")) for each in option.deprecated_opts
    ]
    return [(group, option.dest), *older]


def variable(group: str, option: str) -> str:
    """Return the environment variable of an option."""
    return f"OS_{group.upper()}__{option.upper()}"


def _elsewhere(group: str, option: cfg.Opt) -> list[Setting]:
    """Return the value of an option under another of its names: oslo.config looks for its own name alone."""
    own, *others = option_names(group, option)
    if variable(*own) in os.environ:
        return []
    return [Setting(*each, os.environ[name]) for each in others if (name := variable(*each)) in os.environ]


def refused_value(error: Exception) -> OperatorError:
    """Return the error for a value that oslo.config refuses; it names the file or variable with the value."""
    text = " ".join(str(error).split())
    if found := _REFUSED.fullmatch(text):
        return OperatorError(f"configuration: {found[2]}: {found[1]}: {found[3]}")
    return OperatorError(f"configuration: {text}")


def _check_file(file: str) -> None:
    """Check that a file is a configuration file. Raises `OperatorError`.

    oslo.config would raise other errors, some of which quote a line of the file, secrets included.
    """
    try:
        cfg.ConfigParser(file, {}).parse()
    except OSError as error:
        raise OperatorError(f"configuration: file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OperatorError(
            f"configuration: file {file} is no text in UTF-8: byte {error.start} cannot be read"
        ) from error
    except iniparser.ParseError as error:
        raise OperatorError(f"configuration: file {file}, line {error.lineno}: {error.msg}") from None


def _finite(option: cfg.Opt) -> cfg.Opt:
    """Return the option with a type that refuses nan and infinity, which Python takes for numbers."""
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
        # Libraries register their options again, which oslo.config allows only for equal ones.
        return isinstance(other, types.Float) and (self.min, self.max) == (other.min, other.max)

    __hash__ = types.Float.__hash__
