"""Options of configuration files: each is declared once, as a field of a struct.

A struct that derives from `OptionStruct` is what a program reads its options into. `option` gives a field
what files and operators need to know of it, and the type of the option is that of the field. oslo.config gets
the same options from `options_by_group`, and `read_struct` fills the struct from a configuration.

Example::

    class FanOptions(OptionStruct, frozen=True, group="fans"):
        speed: float = option(0.5, min=0.0, max=1.0, help="The share of their full speed that fans run at.")
        aim: Literal["quiet", "cold"] = option("quiet", help="The aim of their control.")

    options = source.read(FanOptions)  # [fans] speed and aim
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec

from roost.model.secrets import HIDDEN

# Small commands have such structs too, and oslo.config takes as long to import as all of one.
if TYPE_CHECKING:
    from oslo_config import cfg

DEFAULT_GROUP: Final = "DEFAULT"
"""The group whose options oslo.config keeps outside of all groups."""

_WRITTEN: Final = (bool, int, float, str, Literal, tuple, list, frozenset, dict)
"""The types of fields that files can fill."""

T = TypeVar("T")
Written = TypeVar("Written")
S = TypeVar("S", bound="OptionStruct")


class OptionTraits(TypedDict, total=False):
    """The traits of an option beside its default, type and help text.

    - ``name``: in files; else that of the field. ``group``: else that of the class.
    - ``min`` and ``max``: the least and the greatest number.
    - ``choices``: the allowed texts, or the meaning of each. A Literal needs none.
    - ``multi``: a list is written with one line for each of its texts.
    - ``secret``: the value is hidden wherever options are shown.
    - ``deprecated_name``: an older name. ``deprecated_group``: a group in which the option is read too.
    """

    name: str
    group: str
    min: float
    max: float
    choices: Sequence[str] | Mapping[str, str]
    multi: bool
    secret: bool
    deprecated_name: str
    deprecated_group: str


class OptionDeclaration(NamedTuple):
    """The declaration of one option, as `option` makes it."""

    default: Any
    help: str
    parse: Callable[[Any], Any] | None
    traits: OptionTraits


class OptionField(NamedTuple):
    """An option of a struct: its field, its group and name in files, and the conversion of its value."""

    field: str
    group: str
    opt: "cfg.Opt"
    convert: Callable[[Any], Any]


@overload
def option(default: T, *, help: str, **traits: Unpack[OptionTraits]) -> T: ...
@overload
def option(
    default: Written, *, help: str, parse: Callable[[Written], T], **traits: Unpack[OptionTraits]
) -> T: ...
def option(
    default: Any, *, help: str, parse: Callable[[Any], Any] | None = None, **traits: Unpack[OptionTraits]
) -> Any:
    """Declare a field of an `OptionStruct` as an option.

    The field is a bool, int, float, str, Literal, tuple, list or frozenset of texts, or a dict of texts or
    numbers; also or None.

    Args:
        default: The value without a configuration.
        help: The sentences for operators.
        parse: Returns the field's value from that of the file, whose type is that of ``default``, or text if
            that is None. It raises ValueError for a value that is refused.
        traits: See `OptionTraits`.
    """
    return OptionDeclaration(default, help, parse, traits)


class OptionStructType(msgspec.StructMeta):
    """The type of option structs: it keeps the declarations, and leaves the fields their defaults."""

    group: str
    declared: Mapping[str, OptionDeclaration]

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, group: str = "", **config: Any
    ) -> "OptionStructType":
        own = {key: each for key, each in namespace.items() if isinstance(each, OptionDeclaration)}
        for key, each in own.items():
            namespace[key] = each.default if each.parse is None else each.parse(each.default)
            own[key] = each._replace(traits={"name": key, "group": group, **each.traits})
        made = super().__new__(mcls, name, bases, namespace, **config)
        inherited: dict[str, OptionDeclaration] = {}
        for base in reversed(bases):
            inherited |= getattr(base, "declared", {})
        kept = {key: each for key, each in inherited.items() if key not in made.__annotations__}
        made.group, made.declared = group, kept | own
        return made


class OptionStruct(msgspec.Struct, frozen=True, metaclass=OptionStructType):
    """Base of structs with options. Class argument ``group``: the group of the options that name none.

    A field whose default is an option struct has the options of that struct. Other fields without `option`
    are no options.
    """

    def __repr__(self) -> str:
        declared = type(self).declared
        shown = (
            f"{field}={HIDDEN if field in declared and declared[field].traits.get('secret') else value!r}"
            for field, value in msgspec.structs.asdict(self).items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def options_by_group(*structs: type[OptionStruct]) -> dict[str, list["cfg.Opt"]]:
    """Return the options of structs for oslo.config, in the order of the fields, by group."""
    found: dict[str, dict[str, cfg.Opt]] = {}
    for struct in structs:
        for each in _all_fields(struct):
            found.setdefault(each.group, {})[each.opt.dest] = each.opt
    return {group: [*options.values()] for group, options in found.items()}


def options_of_group(struct: type[OptionStruct], group: str = "") -> dict[str, list["cfg.Opt"]]:
    """Return the options of the struct's own group. ``group``: the group that has them instead."""
    return {group or struct.group: options_by_group(struct)[struct.group]}


def read_struct(conf: "cfg.ConfigOpts", struct: type[S], **given: Any) -> S:
    """Read a struct from a configuration in which its options are registered.

    ``given``: the values of fields that are not to be read.

    Raises:
        ValueError: a value is refused.
        cfg.Error: a value of a file has not the type of its option.
    """
    values = dict(given)
    for each in _own_fields(struct):
        if each.field not in given:
            section = conf if each.group == DEFAULT_GROUP else conf[each.group]
            values[each.field] = each.convert(section[each.opt.dest])
    for field, part in _parts(struct):
        if field not in given:
            values[field] = read_struct(conf, part)
    return struct(**values)


def _all_fields(struct: type[OptionStruct]) -> Iterator[OptionField]:
    own, parts = {each.field: each for each in _own_fields(struct)}, dict(_parts(struct))
    for field in struct.__struct_fields__:
        if field in own:
            yield own[field]
        elif field in parts:
            yield from _all_fields(parts[field])


@cache
def _parts(struct: type[OptionStruct]) -> Sequence[tuple[str, type[OptionStruct]]]:
    """Return the fields of a struct that have the options of another one."""
    fields = msgspec.structs.fields(struct)
    return [(each.name, type(each.default)) for each in fields if isinstance(each.default, OptionStruct)]


@cache
def _own_fields(struct: type[OptionStruct]) -> Sequence[OptionField]:
    types = get_type_hints(struct)
    return [_field(field, types[field], each) for field, each in struct.declared.items()]


def _field(field: str, annotation: Any, declared: OptionDeclaration) -> OptionField:
    from oslo_config import cfg, types

    default, traits = declared.default, declared.traits
    convert = declared.parse or (lambda value: value)
    others = ("name", "group", "multi")
    about: dict[str, Any] = {key: each for key, each in traits.items() if key not in others}
    if isinstance(choices := about.get("choices"), Mapping):
        about["choices"] = [*choices.items()]
    if declared.parse is not None:
        annotation = str if default is None else type(default)
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kind = next(each for each in members if (get_origin(each) or each) in _WRITTEN)
    container = get_origin(kind) or kind
    make: Callable[..., cfg.Opt] = cfg.Opt
    if container is Literal:
        make = cfg.StrOpt
        about.setdefault("choices", get_args(kind))
    elif container in (tuple, list, frozenset):
        make = cfg.MultiStrOpt if traits.get("multi") else cfg.ListOpt
        default, convert = [*default], declared.parse or container
    elif kind == dict[str, float]:
        about["type"] = types.Dict(types.Float(), key_value_separator="=")
    else:
        scalars = {
            bool: cfg.BoolOpt,
            int: cfg.IntOpt,
            float: cfg.FloatOpt,
            str: cfg.StrOpt,
            dict: cfg.DictOpt,
        }
        make = scalars[container]
    opt = make(traits["name"], default=default, help=declared.help, **about)
    return OptionField(field, traits["group"], opt, convert)
