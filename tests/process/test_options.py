"""Options that are declared as fields: what oslo.config gets of them, and what is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source
from roost.process.options import OptionStruct, option, options_by_group, options_of_group


def seconds(minutes: int) -> int:
    return minutes * 60


def numbers(texts: Sequence[str]) -> tuple[int, ...]:
    return tuple(map(int, texts))


class FanOptions(OptionStruct, frozen=True, group="fans"):
    speed: float = option(0.5, min=0.0, max=1.0, deprecated_name="rate", help="Their speed.")
    aim: Literal["quiet", "cold"] = option("quiet", help="Their aim.")
    number: int | None = option(None, min=1, help="Their number.")
    pause: int = option(2, name="pause_minutes", parse=seconds, help="The pause of each.")
    slots: tuple[int, ...] = option((), parse=numbers, help="The slots that have one.")


class CaseOptions(OptionStruct, frozen=True, kw_only=True, group="case"):
    owner: str
    fans: FanOptions = FanOptions()
    colour: str = option("grey", choices={"grey": "as it was", "red": "with paint"}, help="Its colour.")
    key: str | None = option(None, secret=True, deprecated_group="DEFAULT", help="Its key.")
    doors: frozenset[str] = option(frozenset({"front"}), help="Its doors.")
    screws: list[str] = option([], multi=True, help="Its screws.")
    labels: dict[str, str] = option({}, help="Its labels.")
    loads: dict[str, float] = option({}, help="What its shelves bear.")
    open: bool = option(False, group="DEFAULT", help="Whether it is open.")
    note: str = "not an option"


class RackOptions(CaseOptions, frozen=True, kw_only=True, group="rack"):
    units: int = option(42, help="Its height.")
    key: str | None = option("1234", name="padlock", help="The padlock of its door.")
    doors: frozenset[str] = frozenset()


def read(struct: Any, *settings: str, **given: Any) -> Any:
    return Source(settings=tuple(map(Setting.parse, settings))).read(struct, **given)


def test_an_option_has_the_type_of_its_field_and_all_that_is_declared() -> None:
    groups = options_by_group(CaseOptions)
    assert [(group, option.dest) for group, options in groups.items() for option in options] == [
        *(("fans", name) for name in ("speed", "aim", "number", "pause_minutes", "slots")),
        *(("case", name) for name in ("colour", "key", "doors", "screws", "labels", "loads")),
        ("DEFAULT", "open"),
    ]
    of = {option.dest: option for options in groups.values() for option in options}
    assert of["speed"] == cfg.FloatOpt(
        "speed", default=0.5, min=0.0, max=1.0, deprecated_name="rate", help="Their speed."
    )
    assert of["aim"] == cfg.StrOpt("aim", default="quiet", choices=("quiet", "cold"), help="Their aim.")
    assert of["number"] == cfg.IntOpt("number", min=1, help="Their number.")
    assert of["pause_minutes"] == cfg.IntOpt("pause_minutes", default=2, help="The pause of each.")
    assert of["key"] == cfg.StrOpt("key", secret=True, deprecated_group="DEFAULT", help="Its key.")
    assert of["screws"] == cfg.MultiStrOpt("screws", default=[], help="Its screws.")
    assert of["doors"] == cfg.ListOpt("doors", default=["front"], help="Its doors.")
    assert of["labels"] == cfg.DictOpt("labels", default={}, help="Its labels.")
    assert of["colour"].type.choices == {"grey": "as it was", "red": "with paint"}


def test_without_a_configuration_the_defaults_are_read() -> None:
    assert read(FanOptions) == FanOptions() == FanOptions(0.5, "quiet", None, 120, ())
    assert read(CaseOptions, owner="me") == CaseOptions(owner="me")


def test_files_environment_and_command_line_fill_the_struct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "some.conf"
    file.write_text(
        "[DEFAULT]\nopen = true\nkey = K\n[fans]\nrate = 1\nslots = 3,4\n[case]\nscrews = a,b\nscrews = c\n"
        "doors = left, right\nlabels = a:b\nloads = top=1.5\n"
    )
    monkeypatch.setenv("OS_FANS__AIM", "cold")
    source = Source((str(file),), (Setting("fans", "pause_minutes", "1"),))
    assert source.read(CaseOptions, owner="me") == CaseOptions(
        owner="me",
        fans=FanOptions(1.0, "cold", None, 60, (3, 4)),
        key="K",
        doors=frozenset({"left", "right"}),
        screws=["a,b", "c"],
        labels={"a": "b"},
        loads={"top": 1.5},
        open=True,
    )


def test_what_is_given_is_not_read() -> None:
    fans = FanOptions(speed=0.1)
    assert read(CaseOptions, "fans.speed=1", owner="me", fans=fans).fans is fans


@pytest.mark.parametrize("setting", ["fans.speed=2", "fans.aim=warm", "fans.slots=first", "fans.number=0"])
def test_a_value_that_is_refused_is_an_error_of_the_operator(setting: str) -> None:
    with pytest.raises(OperatorError, match="configuration: "):
        read(FanOptions, setting)


def test_a_struct_has_the_options_of_its_base_but_what_it_declares_anew() -> None:
    assert options_of_group(RackOptions) == {
        "rack": [
            cfg.StrOpt("padlock", default="1234", help="The padlock of its door."),
            cfg.IntOpt("units", default=42, help="Its height."),
        ]
    }
    of_case = [option.dest for option in options_by_group(RackOptions)["case"]]
    assert of_case == ["colour", "screws", "labels", "loads"]
    assert read(RackOptions, "rack.padlock=9", "case.colour=red", owner="me") == RackOptions(
        owner="me", key="9", colour="red"
    )


def test_options_can_be_those_of_another_group() -> None:
    assert options_of_group(FanOptions, "fans2") == {"fans2": options_by_group(FanOptions)["fans"]}


def test_no_secret_is_shown() -> None:
    text = repr(CaseOptions(owner="me", key="swordfish"))
    assert "swordfish" not in text and "owner='me'" in text


def test_a_struct_is_one_of_msgspec() -> None:
    options = FanOptions(number=3)
    assert msgspec.json.decode(msgspec.json.encode(options), type=FanOptions) == options
    assert msgspec.structs.replace(options, number=None) == FanOptions()
    with pytest.raises(AttributeError):
        options.number = 4  # type: ignore[misc]
