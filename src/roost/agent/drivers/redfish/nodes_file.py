"""The operator's file of nodes: BMCs, their machines, and the machines' resource classes and traits."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

import msgspec

from roost.agent.toml_file import read_toml
from roost.model.errors import OperatorError
from roost.model.names import provider_uuid
from roost.model.vocabulary import MAX_NAME

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLASS = re.compile("CUSTOM_[A-Z0-9_]+")
_TRAIT = re.compile("[A-Z][A-Z0-9_]*")
_WORDS = {"image": "", "instance": "", "node": ""}


class Boot(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The source of one boot of a machine.

    ``url``: of the image, for ``virtual-media`` and ``http`` (there the DHCP server may name it instead).
    ``{image}``, ``{instance}`` and ``{node}`` in it stand for the id of the requested image and the uuids of
    instance and node. ``mode``: None leaves it as it is.
    """

    source: Literal["pxe", "http", "virtual-media", "disk"] = msgspec.field(default="pxe", name="from")
    mode: Literal["uefi", "legacy"] | None = None
    url: str | None = None

    def url_for(self, node: str, instance: str = "", image: str = "") -> str | None:
        """Return the url for one boot."""
        if self.url is None:
            return None
        # The user chooses the image id: it must not change the path.
        return self.url.format(node=node, instance=quote(instance, safe=""), image=quote(image, safe=""))


class Cleaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cleaning of a machine: it boots an image, which switches the machine off when it is done.

    ``seconds``: the time within which it must be off. ``boot``: None: no cleaning.
    """

    boot: Boot | None = None
    seconds: float = 3600.0


class NodeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A node of the file. ``system``: its id at the BMC, or the path of its resource there.

    ``maintenance``: why it is reserved. The amounts are for people, if the BMC does not report them.
    """

    name: str
    system: str
    resource_class: str
    uuid: str | None = None
    traits: tuple[str, ...] = ()
    maintenance: str | None = None
    boot: Boot | None = None
    cleaning: Cleaning | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    disk_gb: int | None = None


class BmcEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A BMC and its nodes. ``verify``: whether its certificate is verified, or the file of authorities.

    The password is the first line of a file, or the value of an environment variable.
    """

    endpoint: str
    nodes: tuple[NodeEntry, ...]
    username: str | None = None
    password_file: str | None = None
    password_variable: str | None = None
    verify: bool | str = True


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    bmcs: tuple[BmcEntry, ...]
    boot: Boot = Boot()
    cleaning: Cleaning = Cleaning()


class Password:
    """A password that logs and tracebacks do not show."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Password(…)"


class RedfishNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with all its settings in the file. ``uuid``: also that of its root provider."""

    uuid: str
    entry: NodeEntry
    boot: Boot
    cleaning: Cleaning

    @property
    def system(self) -> str:
        """The path of its resource at the BMC."""
        system = self.entry.system
        return system if system.startswith("/") else f"/redfish/v1/Systems/{system}"


class BmcNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A BMC, its login, and its nodes."""

    endpoint: str
    username: str | None
    password: Password | None
    verify: bool | str
    nodes: tuple[RedfishNode, ...]


def read_nodes_file(path: Path, host: str, environment: Mapping[str, str] = os.environ) -> list[BmcNodes]:
    """Read the BMCs and nodes of a file. A node without a uuid gets one made of the host's name and its own.

    Raises `OperatorError`, with the file and the place in it.
    """
    try:
        said = read_toml(path, _File)
    except (OSError, ValueError) as error:
        raise OperatorError(f"the file of nodes {path} cannot be used: {error}") from error
    _check(path, "$.boot", said.boot)
    _check(path, "$.cleaning.boot", said.cleaning.boot)
    found = [
        _bmc(f"{path}: $.bmcs[{number}]", entry, said, host, environment)
        for number, entry in enumerate(said.bmcs)
    ]
    _check_once(path, "node name", (node.entry.name for bmc in found for node in bmc.nodes))
    _check_once(path, "node uuid", (node.uuid for bmc in found for node in bmc.nodes))
    _check_once(path, "endpoint", (bmc.endpoint for bmc in found))
    _check_once(path, "system", (f"{bmc.endpoint}{node.system}" for bmc in found for node in bmc.nodes))
    return found


def _bmc(where: str, entry: BmcEntry, said: _File, host: str, environment: Mapping[str, str]) -> BmcNodes:
    parts = urlsplit(entry.endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OperatorError(f"{where}.endpoint: {entry.endpoint} is no http or https URL")
    if parts.username is not None or parts.password is not None:
        raise OperatorError(f"{where}.endpoint: who logs in is said by username and password_file")
    if isinstance(entry.verify, str) and not os.access(entry.verify, os.R_OK):
        raise OperatorError(f"{where}.verify: {entry.verify} cannot be read")
    return BmcNodes(
        endpoint=entry.endpoint.rstrip("/"),
        username=entry.username,
        password=_password(where, entry, environment),
        verify=entry.verify,
        nodes=tuple(
            _node(f"{where}.nodes[{number}]", node, said, host) for number, node in enumerate(entry.nodes)
        ),
    )


def _node(where: str, entry: NodeEntry, said: _File, host: str) -> RedfishNode:
    if not 0 < len(entry.name) <= MAX_NAME:
        raise OperatorError(f"{where}.name: {entry.name!r} must have 1 to {MAX_NAME} characters")
    uuid = provider_uuid(f"{host}/{entry.name}") if entry.uuid is None else entry.uuid.lower()
    if not _UUID.fullmatch(uuid):
        raise OperatorError(f"{where}.uuid: {entry.uuid} is no uuid")
    if not _CLASS.fullmatch(entry.resource_class):
        raise OperatorError(f"{where}.resource_class: {entry.resource_class} is no name of a custom class")
    for trait in entry.traits:
        if not _TRAIT.fullmatch(trait):
            raise OperatorError(f"{where}.traits: {trait} is no name of a trait")
    boot = entry.boot or said.boot
    cleaning = entry.cleaning or said.cleaning
    _check(where, "boot", boot)
    _check(where, "cleaning.boot", cleaning.boot)
    return RedfishNode(uuid=uuid, entry=entry, boot=boot, cleaning=cleaning)


def _password(where: str, entry: BmcEntry, environment: Mapping[str, str]) -> Password | None:
    if entry.password_file is not None and entry.password_variable is not None:
        raise OperatorError(f"{where}: password_file and password_variable are both given")
    if entry.username is None:
        if entry.password_file is not None or entry.password_variable is not None:
            raise OperatorError(f"{where}: username is missing")
        return None
    if entry.password_variable is not None:
        value = environment.get(entry.password_variable, "")
        if not value:
            text = f"{where}.password_variable: {entry.password_variable} is not set"
            raise OperatorError(text)
        return Password(value)
    if entry.password_file is None:
        raise OperatorError(f"{where}: password_file or password_variable is missing")
    try:
        lines = Path(entry.password_file).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{where}.password_file: {entry.password_file}: {error}") from error
    if not lines or not lines[0]:
        raise OperatorError(f"{where}.password_file: {entry.password_file} is empty")
    return Password(lines[0])


def _check(where: object, place: str, boot: Boot | None) -> None:
    if boot is None:
        return
    if boot.source == "virtual-media" and boot.url is None:
        raise OperatorError(f"{where}: {place}.url is missing for virtual-media")
    if boot.source not in ("http", "virtual-media") and boot.url is not None:
        raise OperatorError(f"{where}: {place}.url has no meaning for {boot.source}")
    try:
        (boot.url or "").format(**_WORDS)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{word}}}" for word in _WORDS)
        raise OperatorError(f"{where}: {place}.url: {boot.url} may have {known} alone") from error


def _check_once(path: Path, what: str, values: Iterator[str]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise OperatorError(f"{path}: the {what} {value} is there twice")
        seen.add(value)
