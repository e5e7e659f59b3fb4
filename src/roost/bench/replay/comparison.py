"""Settings that are compared over one workload: their names and options, the figures of each, and the table.

--compare NAME                         the options of the command line and its file alone
--compare NAME:FILE                    the options of another file too
--compare NAME:GROUP.OPTION=VALUE      an option; the same name may come several times
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from roost.bench.errors import ReplayError
from roost.bench.replay.state import UsageSamples
from roost.bench.replay.summary import Summary
from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source

MOST_SETTINGS: Final = 7
"""Settings of a comparison at most: so many colours and lines can be told apart."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTION = re.compile(r"[\w-]+\.[\w-]+\s*=.*", re.DOTALL)


class ReplaySetting(msgspec.Struct, frozen=True):
    """A setting by its name: further files of options, and single options."""

    name: str
    files: tuple[str, ...] = ()
    options: tuple[Setting, ...] = ()

    def source(self, base: Source) -> Source:
        """Return the source of the options of the setting, which replace those of ``base``."""
        return msgspec.structs.replace(
            base, files=(*base.files, *self.files), settings=(*base.settings, *self.options)
        )


def parse_settings(texts: Iterable[str]) -> tuple[ReplaySetting, ...]:
    """Return the settings of the values of ``--compare``, in the order of their first mention.

    Raises:
        OperatorError: a value has a wrong form, or there are fewer than two settings, or too many.
    """
    found: dict[str, ReplaySetting] = {}
    for text in texts:
        name, _, rest = text.partition(":")
        if not _NAME.fullmatch(name):
            raise OperatorError(
                f"--compare {text}: {name!r} is no name of letters, digits, dots and dashes: write NAME, "
                "NAME:FILE or NAME:GROUP.OPTION=VALUE"
            )
        setting = found.get(name, ReplaySetting(name))
        if _OPTION.fullmatch(rest):
            options = (*setting.options, Setting.parse(rest))
            setting = msgspec.structs.replace(setting, options=options)
        elif rest:
            setting = msgspec.structs.replace(setting, files=(*setting.files, rest))
        found[name] = setting
    if not 2 <= len(found) <= MOST_SETTINGS:
        raise OperatorError(f"--compare: {len(found)} settings; from 2 to {MOST_SETTINGS} can be compared")
    return tuple(found.values())


class SettingOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a workload with one setting.

    ``hosts_needed``: the most hosts that were in use at once. ``hosts_at_least``: the most hosts at once that
    the amounts in use demanded, however they are distributed. ``empty_mean``, ``empty_least``: hosts without
    an instance, over time and at the fullest moment.
    """

    name: str
    options: dict[str, str]
    files: tuple[str, ...]
    summary: Summary
    samples: UsageSamples
    hosts_needed: int
    hosts_at_least: int
    empty_mean: float
    empty_least: int

    @classmethod
    def of(cls, setting: ReplaySetting, summary: Summary, samples: UsageSamples) -> "SettingOutcome":
        """Return the outcome of a finished replay. Raises: `ReplayError` if the workload has no request."""
        if not samples.seconds:
            raise ReplayError(f"nothing to compare: workload {summary.workload} has no requests")
        in_use = np.asarray(samples.in_use)
        empty = summary.hosts - in_use
        return cls(
            name=setting.name,
            options={f"{each.group}.{each.option}": each.value for each in setting.options},
            files=setting.files,
            summary=summary,
            samples=samples,
            hosts_needed=int(in_use.max()),
            hosts_at_least=max(samples.fewest),
            empty_mean=float(np.average(empty, weights=_durations(samples))),
            empty_least=int(empty.min()),
        )

    def to_dict(self) -> dict[str, object]:
        """Return all figures as plain data; ``over_time`` has a number for each bin in each list."""
        samples = self.samples
        return {
            "name": self.name,
            "options": self.options,
            "files": list(self.files),
            "hosts_needed": self.hosts_needed,
            "hosts_at_least": self.hosts_at_least,
            "empty_hosts": {"mean": self.empty_mean, "least": self.empty_least},
            "summary": self.summary.to_dict(),
            "over_time": {
                "seconds": samples.seconds,
                "hosts_in_use": samples.in_use,
                "hosts_at_least": samples.fewest,
                "placed": samples.placed,
                "refused": samples.refused,
                "failed": samples.failed,
            },
        }


def _durations(samples: UsageSamples) -> Sequence[int]:
    """Return the seconds until the next sample of each; the last one lasts as long as the shortest."""
    between = np.diff(samples.seconds)
    last = int(between.min()) if len(between) else 1
    return [*between.tolist(), last]


def render_comparison(outcomes: Sequence[SettingOutcome]) -> RenderableType:
    """Return the figures of all settings side by side, each with its difference from the first one."""
    first = outcomes[0].summary
    table = Table(
        title=Text(f"{first.workload}: {first.hosts:,} hosts, {len(outcomes)} settings"),
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("")
    for each in outcomes:
        table.add_column(Text(each.name, "bold"), justify="right")
    for row in _rows(outcomes):
        if row is None:
            table.add_section()
        else:
            name, figures = row
            table.add_row(Text(name), *figures)
    return table


_ComparedRow = tuple[str, list[Text]]


def _rows(outcomes: Sequence[SettingOutcome]) -> list[_ComparedRow | None]:
    summaries = [each.summary for each in outcomes]
    classes = sorted({name for each in summaries for name in each.peak_use})
    reasons = sorted({reason for each in summaries for reason in each.refusals})
    return [
        ("hosts needed, the most in use at once", _counts([each.hosts_needed for each in outcomes])),
        ("  at least, by the amounts in use", _counts([each.hosts_at_least for each in outcomes])),
        ("empty hosts, mean over time", _counts([each.empty_mean for each in outcomes])),
        ("  fewest at once", _counts([each.empty_least for each in outcomes])),
        ("instances refused", _counts([each.refused for each in summaries])),
        *(
            (f"  {reason}", _counts([each.refusals.get(reason, 0) for each in summaries]))
            for reason in reasons
        ),
        ("instances placed", _counts([each.placed for each in summaries])),
        ("instances failed", _counts([each.failed for each in summaries])),
        None,
        *(
            (f"peak use of {name}", [Text(f"{each.peak_use.get(name, 0.0):.1%}") for each in summaries])
            for name in classes
        ),
        ("decision latency, p50 / p99", [Text(_latency(each)) for each in summaries]),
    ]


def _counts(numbers: Sequence[float]) -> list[Text]:
    texts = [Text(_number(numbers[0]))]
    for each in numbers[1:]:
        more = round(each - numbers[0], 1)
        text = Text(_number(each))
        if more:
            sign = "+" if more > 0 else "-"
            text.append(f" ({sign}{_number(abs(more))})", "dim")
        texts.append(text)
    return texts


def _number(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def _latency(summary: Summary) -> str:
    found = summary.decision
    return "–" if found is None else f"{found.p50_ms:.2f} / {found.p99_ms:.2f} ms"
