"""Accelerators of instances: accelerator requests (ARQs) of Cyborg's API.

One ARQ is made for each device of a device profile, and bound to the provider that the claim's mappings name
for its group. Each host has its own ARQs of an instance, so attempts on two hosts never touch each other's.

Source: Cyborg's API v2, and ``nova/accelerator/cyborg.py``.
"""

import asyncio
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from roost.agent.drivers import Attached, AttachedDevice
from roost.agent.errors import BuildFailed
from roost.agent.protocol.types import PortsReleased
from roost.model.device_profiles import PROFILE, SUFFIX
from roost.model.instance import Instance
from roost.web.auth.json_service import JsonService, ServiceAway, ServiceRefused

_PATH: Final = "/v2/accelerator_requests"

NO_PROFILE = "NoSuchDeviceProfile"
"""The code of builds whose device profile does not exist. No other host can help."""
NOT_BOUND = "AcceleratorNotBound"
"""The code of builds whose accelerators could not be bound to the host."""

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
"""Seconds between two checks of whether accelerators are bound: at first, and at most."""


class _Arq(msgspec.Struct, frozen=True):
    uuid: str
    state: str
    device_profile_name: str = ""
    device_profile_group_id: int = 0
    hostname: str | None = None
    instance_uuid: str | None = None
    device_rp_uuid: str | None = None
    attach_handle_type: str | None = None
    attach_handle_info: dict[str, Any] | None = None


class _Arqs(msgspec.Struct, frozen=True):
    arqs: list[_Arq]


class _Wanted(msgspec.Struct, frozen=True):
    """The devices of a profile: of the flavor, or of the port ``owner``."""

    profile: str
    owner: str = ""


class Accelerators:
    """The accelerators of one host."""

    traits: tuple[str, ...] = ("COMPUTE_ACCELERATORS",)
    follows = False

    def __init__(self, api: JsonService, host: str) -> None:
        self._api = api
        self._host = host

    def serves(self, instance: Instance) -> bool:
        return bool(_wanted_by(instance))

    async def attach(self, instance: Instance, over: int | None = None) -> Attached:
        wanted = _wanted_by(instance)
        if not wanted:
            return Attached()
        mappings = {} if instance.selection is None else instance.selection.mappings
        try:
            # Left by an interrupted build: no guest uses them, as none was started.
            await self._delete(await self._of(instance.uuid))
            bound = await self._bind(instance.uuid, wanted, mappings)
        except ServiceRefused as error:
            raise BuildFailed(str(error), NOT_BOUND) from error
        return Attached(devices=tuple(_attached(arq) for arq in bound))

    async def detach(self, instance: str, ports: PortsReleased = "host") -> None:
        await self._delete(await self._of(instance))

    async def _bind(
        self, instance: str, wanted: list[_Wanted], mappings: Mapping[str, list[str]]
    ) -> list[_Arq]:
        bindings: dict[str, list[dict[str, str]]] = {}
        for each in wanted:
            made = await self._make(each.profile)
            for arq in made:
                suffix = f"{SUFFIX}{arq.device_profile_group_id}{each.owner}"
                providers = mappings.get(suffix)
                if not providers:
                    raise BuildFailed(f"the claim has no provider for {suffix} of {each.profile}", NOT_BOUND)
                bindings[arq.uuid] = _patch(self._host, providers[0], instance)
        await self._api.ask("PATCH", _PATH, bindings)
        bound = {arq.uuid: arq for arq in await self._bound(instance, bindings.keys())}
        return [bound[uuid] for uuid in bindings]

    async def _make(self, profile: str) -> list[_Arq]:
        try:
            answer = await self._api.ask("POST", _PATH, {"device_profile_name": profile})
        except ServiceRefused as error:
            # Cyborg has no code of its own for it.
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
                raise BuildFailed(str(error), NO_PROFILE, retryable=False) from error
            raise
        return _arqs_in(answer)

    async def _bound(self, instance: str, arqs: Collection[str]) -> list[_Arq]:
        """Wait until all are bound, and return them; the build's deadline limits it. Raises `BuildFailed`."""
        pause = FIRST_PAUSE
        while True:
            mine = [arq for arq in await self._of(instance) if arq.uuid in arqs]
            failed = [arq.uuid for arq in mine if arq.state in ("BindFailed", "Error")]
            if failed or len(mine) < len(arqs):
                lost = failed or sorted(set(arqs) - {arq.uuid for arq in mine})
                raise BuildFailed(f"accelerator request {lost[0]} is not bound on {self._host}", NOT_BOUND)
            if all(arq.state == "Bound" for arq in mine):
                return mine
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _of(self, instance: str) -> list[_Arq]:
        """Return the accelerator requests of an instance on this host."""
        answer = await self._api.ask("GET", _PATH, query={"instance": instance})
        return [
            arq for arq in _arqs_in(answer) if arq.hostname == self._host and arq.instance_uuid == instance
        ]

    async def _delete(self, arqs: Collection[_Arq]) -> None:
        if not arqs:
            return
        try:
            await self._api.ask("DELETE", _PATH, query={"arqs": ",".join(arq.uuid for arq in arqs)})
        except ServiceRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise


def _wanted_by(instance: Instance) -> list[_Wanted]:
    if instance.spec is None:
        return []
    named = instance.spec.flavor.extra_specs.get(PROFILE)
    ports = instance.spec.requested_networks
    return [
        *([_Wanted(named)] if named else []),
        *(_Wanted(each.device_profile, each.port_id or "") for each in ports if each.device_profile),
    ]


def _patch(host: str, provider: str, instance: str) -> list[dict[str, str]]:
    values = {"/hostname": host, "/device_rp_uuid": provider, "/instance_uuid": instance}
    return [{"path": path, "op": "add", "value": value} for path, value in values.items()]


def _attached(arq: _Arq) -> AttachedDevice:
    handle = {key: str(value) for key, value in (arq.attach_handle_info or {}).items()}
    return AttachedDevice(arq.uuid, arq.attach_handle_type or "", handle)


def _arqs_in(answer: object) -> list[_Arq]:
    try:
        return msgspec.convert(answer, _Arqs).arqs
    except msgspec.ValidationError as error:
        raise ServiceAway(f"accelerators: the answer cannot be read: {error}") from error
