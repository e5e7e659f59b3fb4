"""Dedicated, mixed and shared processors.

Source: ``ResourceRequest._translate_pinning_policies`` of ``nova/scheduler/utils.py`` and the constraints
that it reads from ``nova/virt/hardware.py``.
"""

import re
from typing import NamedTuple

from roost.model.spec import Flavor
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.image_properties import is_true

_POLICIES = ("dedicated", "shared", "mixed")
_THREADS = ("prefer", "isolate", "require")
EMULATOR = ("share", "isolate")
"""The policies of emulator threads."""


class Processors(NamedTuple):
    """The processors that a request asks for.

    ``vcpus`` and ``pcpus`` are amounts of VCPU and PCPU, None if not specified. ``hyperthreading``: True if
    the trait is required, False if it is forbidden. ``dedicated``: all processors are dedicated, so that a
    host that offers them as VCPU may serve as well.
    """

    vcpus: int | None = None
    pcpus: int | None = None
    hyperthreading: bool | None = None
    dedicated: bool = False


def processors(asked: FlavorImage) -> Processors:
    """Return the processors that flavor and image ask for by policies. Raises `BadRequestSpec`."""
    policy = cpu_policy(asked)
    threads = thread_policy(asked)
    isolated = asked.of_flavor("emulator_threads_policy", EMULATOR) == "isolate"
    hyperthreading = {"isolate": False, "require": True}.get(threads or "")
    if policy == "dedicated":
        return Processors(None, asked.flavor.vcpus + isolated, hyperthreading, dedicated=True)
    if policy == "mixed":
        pinned = len(dedicated_mask(asked) or realtime_mask(asked) or ())
        if not pinned:
            raise asked.bad_flavor(
                "hw:cpu_policy", "needs hw:cpu_dedicated_mask, or hw:cpu_realtime and hw:cpu_realtime_mask"
            )
        return Processors(asked.flavor.vcpus - pinned, pinned + isolated, hyperthreading)
    return Processors(hyperthreading=hyperthreading)


def cpu_policy(asked: FlavorImage) -> str | None:
    """Return the CPU policy: dedicated, shared or mixed; None if there is none. Raises `BadRequestSpec`.

    The flavor may demand more than the image, but not less.
    """
    flavor, image = asked.of_flavor("cpu_policy", _POLICIES), asked.of_image("cpu_policy", _POLICIES)
    if (flavor, image) in (("mixed", "dedicated"), ("shared", "mixed"), ("shared", "dedicated")):
        raise asked.conflict("cpu_policy")
    return flavor or image


def thread_policy(asked: FlavorImage) -> str | None:
    """Return the thread policy of dedicated processors; None if there is none. Raises `BadRequestSpec`."""
    flavor = asked.of_flavor("cpu_thread_policy", _THREADS)
    image = asked.of_image("cpu_thread_policy", _THREADS)
    if flavor in (None, "prefer"):
        return flavor or image
    if image and image != flavor:
        raise asked.conflict("cpu_thread_policy")
    return flavor


def dedicated_mask(asked: FlavorImage) -> frozenset[int] | None:
    """Return the numbers of dedicated processors of a mixed guest, None if not given. Raises
    `BadRequestSpec`."""
    key = "hw:cpu_dedicated_mask"
    mask = asked.of_flavor("cpu_dedicated_mask")
    if mask is None:
        return None
    named = _masked(mask, asked, key)
    if not named < _all(asked.flavor):
        raise asked.bad_flavor(key, f"must leave out some of the {asked.flavor.vcpus} processors")
    return named


def realtime_mask(asked: FlavorImage) -> frozenset[int] | None:
    """Return the numbers of the realtime processors, None without any. Raises `BadRequestSpec`."""
    if not is_true(asked.of_flavor("cpu_realtime") or ""):
        return None
    key = "hw:cpu_realtime_mask"
    mask = asked.of_image("cpu_realtime_mask") or asked.of_flavor("cpu_realtime_mask")
    everything = _all(asked.flavor)
    named = everything if mask is None else _masked(mask, asked, key)
    if not named or not named <= everything:
        raise asked.bad_flavor(key, f"must name some of the {asked.flavor.vcpus} processors, not {mask!r}")
    if named == everything and asked.of_flavor("emulator_threads_policy", EMULATOR) is None:
        raise asked.bad_flavor(key, "must leave out a processor, unless hw:emulator_threads_policy is set")
    return named


def _masked(mask: str, asked: FlavorImage, key: str) -> frozenset[int]:
    """Return the processors of a mask; a mask that begins with ``^`` excludes some of all processors."""
    everything = f"0-{asked.flavor.vcpus - 1}," if mask.strip().startswith("^") else ""
    try:
        named = cpu_set(everything + mask)
    except ValueError as error:
        raise asked.bad_flavor(key, f"names no processors: {error}") from error
    if not named:
        raise asked.bad_flavor(key, "names no processors")
    return named


def _all(flavor: Flavor) -> frozenset[int]:
    return frozenset(range(flavor.vcpus))


_PART = re.compile(r"\s*(\^)?\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
MOST_PROCESSORS = 10_000
"""Most processors in one range; a longer range is refused, because it is costly to read."""


def cpu_set(text: str) -> frozenset[int]:
    """Return the processors that a text names: ``0-7,^3`` is all from 0 to 7 but 3.

    Raises:
        ValueError: the text is no set of processors.
    """
    named: set[int] = set()
    left_out: set[int] = set()
    for part in text.split(","):
        if not part.strip():
            continue
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(f"{part.strip()!r} is no number or range of processors")
        first = int(found[2])
        last = first if found[3] is None else int(found[3])
        if not first <= last < first + MOST_PROCESSORS:
            raise ValueError(f"{part.strip()!r} is no range of up to {MOST_PROCESSORS} processors")
        (left_out if found[1] else named).update(range(first, last + 1))
    return frozenset(named - left_out)
