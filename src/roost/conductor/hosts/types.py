"""Hosts, their nodes and services as bodies and queries of HTTP requests and responses."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.move import ProofKind
from roost.model.names import IDENTIFIER_RULE, is_identifier
from roost.model.vocabulary import MAX_NAME
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE

MOST_AT_ONCE = 1000
"""Hosts that one request may add. A longer list is refused."""

MAX_EVIDENCE = 1000
"""Characters of a reason or of evidence at most."""

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Evidence = Annotated[str, Meta(min_length=1, max_length=MAX_EVIDENCE)]


class WantedHosts(msgspec.Struct, forbid_unknown_fields=True):
    """The body that adds hosts to a cell, all or none."""

    cell: _Name
    hosts: Annotated[tuple[_Name, ...], Meta(min_length=1, max_length=MOST_AT_ONCE)]

    def __post_init__(self) -> None:
        for host in self.hosts:
            if not is_identifier(host):
                raise ValueError(f"{host!a} is no name of a host: {IDENTIFIER_RULE}")
        if len(set(self.hosts)) < len(self.hosts):
            raise ValueError("a host is named twice")


class AddedHost(msgspec.Struct, forbid_unknown_fields=True):
    """A host and the token of its agent, which no other response shows again."""

    host: str
    cell: str
    token: str


class AddedHosts(msgspec.Struct, forbid_unknown_fields=True):
    """The hosts that were added."""

    hosts: list[AddedHost]


class Enabling(msgspec.Struct, forbid_unknown_fields=True):
    """The body that enables or disables a host, a node or a cell. A disabled one gets no new instances.

    With `move` the instances on a disabled host or node are moved to other hosts of the cell. Without it, a
    drain with moves is paused: moves that are under way go on. With `live` those that can are moved while
    they run; the others, and those whose live migration has failed, are stopped on the way.
    """

    enabled: bool
    reason: Annotated[str, Meta(max_length=MAX_EVIDENCE)] | None = None
    move: bool = False
    live: bool = False

    def __post_init__(self) -> None:
        if self.enabled and self.move:
            raise ValueError("instances are moved away from what is disabled: move needs enabled false")
        if self.live and not self.move:
            raise ValueError("live says how instances are moved: it needs move true")


class ShownStaying(msgspec.Struct, forbid_unknown_fields=True):
    """An instance that does not move now.

    `reason`: why, null while it is built or deleted. `tries`: its moves from there that have failed; it is
    tried again, after pauses that grow.
    """

    instance: str
    state: str
    reason: str | None
    tries: int


class ShownDrain(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The progress of a drain of a host or node, or of a whole cell. `host` is null of a cell.

    `enabled`: it has new instances, and is not drained. `move`: its instances are moved away, else they stay.
    `live`: while they run, if they can.
    `left`: instances that are there; moves that have not ended count. `moving`: moves that are under way.
    `moved`: moves from there that are done since it was disabled. `stuck`: instances that cannot move.
    `waiting`: the others. `staying`: the instances that cannot move, and those that are built or deleted,
    100 at most. `held_back_by`: processes and agents of a version that does not know moves: with any, no move
    begins.
    """

    host: str | None
    cell: str
    node: str | None
    enabled: bool
    move: bool
    live: bool
    left: int
    moving: int
    moved: int
    stuck: int
    waiting: int
    staying: list[ShownStaying]
    held_back_by: int


class WantedMove(msgspec.Struct, forbid_unknown_fields=True):
    """The body that moves an empty host to another cell."""

    cell: _Name


class HostQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of an operation on one host."""

    cell: Annotated[str | None, Meta(description="The cell, if several have a host of this name.")] = None


class RemovalQuery(HostQuery, forbid_unknown_fields=True):
    """The query of the removal of a host."""

    force: Annotated[bool, Meta(description="End its instances, and forget what it was to destroy.")] = False
    evidence: Annotated[
        str | None, Meta(description="With `force`: how it is known that no guest runs there any more.")
    ] = None


class TokenQuery(HostQuery, forbid_unknown_fields=True):
    """The query of a new token of a host."""

    revoke: Annotated[
        bool, Meta(description="End the old ones now, not when the new one is used: others may know one.")
    ] = False


_STATE = "(up|down|unknown)"


class HostsQuery(HostQuery, forbid_unknown_fields=True):
    """The query of a list of hosts."""

    cell: Annotated[str | None, Meta(description="Only those of one cell.")] = None
    state: Annotated[
        Annotated[
            str,
            Meta(
                pattern=f"^{_STATE}(,{_STATE})*$", description="up, down, unknown, with commas between them"
            ),
        ]
        | None,
        Meta(description="Only those in some states, separated by commas: `up`, `down`, `unknown`."),
    ] = None
    enabled: Annotated[
        bool | None,
        Meta(description="Only those that an operator lets have new instances, or only the others."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Hosts on a page.")] = DEFAULT_PAGE
    marker: Annotated[
        str | None, Meta(description="`next` of the page before: the page begins after this host.")
    ] = None


class ShownFence(msgspec.Struct, forbid_unknown_fields=True):
    """The fence of a host: without an answer of its cell for `seconds` its agent stops all guests, within
    `stop_seconds`. `guarded`: a watchdog resets the machine if it does not."""

    seconds: float
    stop_seconds: float
    guarded: bool


class ShownSilence(msgspec.Struct, forbid_unknown_fields=True):
    """A silent host, where hosts are evacuated by themselves.

    `state`: `dead`: no guest runs there, and its instances are evacuated; `fencing`: its machine is being
    powered off; `unproved`: it is not evacuated. `reason`: the evidence, or why not. `proof`: the `fence` of
    its agent, or the fence `command`; null without one. `by`: the conductor that has said so, and
    `judged_at` when, in seconds since the epoch.
    """

    state: str
    reason: str
    proof: ProofKind | None
    by: str
    judged_at: float


class ShownHost(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A host.

    `state`: `up`, `down`, or `unknown` while its cell cannot be asked; then the rest is not known either,
    except the word of an operator. `enabled` and `reason`: whether an operator lets it have new instances.
    `held`: why its agent carries out no orders, null if it does. `refused`: why the cell or placement does
    not take all its reports, for example a name that another host has, or a reshape that does not add up;
    null if they do. `instances`: their numbers by state. `orders`: guests whose destruction it has not
    acknowledged yet. `since`: when its agent opened the session, in seconds since the epoch. `fence`: null if
    its agent has none. `silence`: null unless it is silent and its evacuation was judged.
    """

    host: str
    cell: str
    state: str
    enabled: bool | None = None
    reason: str | None = None
    held: str | None = None
    refused: str | None = None
    service_version: int | None = None
    since: float | None = None
    nodes: int | None = None
    instances: dict[str, int] | None = None
    orders: int | None = None
    added_at: float | None = None
    fence: ShownFence | None = None
    silence: ShownSilence | None = None


class HostPage(msgspec.Struct, forbid_unknown_fields=True):
    """Hosts in order of their names. `next` is the marker of the next page, null on the last one.

    If the query names states, a page before the last one may have fewer than `limit` hosts. `cells_down`:
    cells that cannot be asked.
    """

    hosts: list[ShownHost]
    next: str | None
    cells_down: list[str]


class ShownNode(msgspec.Struct, forbid_unknown_fields=True):
    """A node of a host. `node` is the uuid of its root provider. `enabled`: its agent says that it is, and no
    operator has disabled it. `disabled`: an operator has, for `reason`. While its cell cannot be asked,
    `instances` is null, and so is `enabled` unless an operator has disabled it."""

    node: str
    nodename: str
    enabled: bool | None
    instances: int | None
    disabled: bool = False
    reason: str | None = None


class HostNodes(msgspec.Struct, forbid_unknown_fields=True):
    """The nodes of a host, in order of their names."""

    host: str
    cell: str
    nodes: list[ShownNode]


class KeptProvider(msgspec.Struct, forbid_unknown_fields=True):
    """A provider that stays in placement: the host's agent did not make it, or another's is below it."""

    uuid: str
    name: str


class Removed(msgspec.Struct, forbid_unknown_fields=True):
    """The removed host, or the host of the removed node, and the providers that stay in placement."""

    host: str
    cell: str
    kept_providers: list[KeptProvider]


class ShownService(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A process or an agent.

    `cell` is null for processes of the API database. `state`: `up`, `down`, or `unknown` while its database
    cannot be read. `holder` and `epoch`: the name and number under which it owns work.
    """

    name: str
    kind: str
    host: str
    cell: str | None
    state: str
    service_version: int
    since: float
    holder: str
    epoch: int


class ServicesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of a list of services."""

    kind: Annotated[
        str | None,
        Meta(description="Only those of one kind: `conductor`, `cell-conductor`, `host` and so on"),
    ] = None
    cell: Annotated[str | None, Meta(description="Only those of one cell.")] = None


class ShownFeature(msgspec.Struct, forbid_unknown_fields=True):
    """A feature that all processes must know before it is used, from service version `since` on.

    `held_back_by`: how many processes and agents of an earlier version there are; with none, it is on.
    """

    name: str
    since: int
    what: str
    held_back_by: int


class ServiceList(msgspec.Struct, forbid_unknown_fields=True):
    """Services in order of cells and names, and the features that their versions allow. `cells_down`: cells
    that cannot be asked."""

    services: list[ShownService]
    features: list[ShownFeature]
    cells_down: list[str]


_CellName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$",
        description="letters, digits, . _ -, at most 64, not beginning with a dot",
    ),
]


class WantedCell(msgspec.Struct, forbid_unknown_fields=True):
    """The body that adds a cell. Its database is `connection` in `section` of the configuration of each
    process, by default `cell_NAME`."""

    name: _CellName
    section: _CellName | None = None


class ShownCell(msgspec.Struct, forbid_unknown_fields=True):
    """A cell.

    `section` is null where the API database has the URL. `state`: `down` if its database does not answer;
    `no_conductor` if none of its conductors is up, `no_host_up` if it has hosts and none is up: then nothing
    is built there; else `up`. `instances`: their numbers by state; null, like `enabled`, if it is `down`.
    `conductors`: the number that are up. `hosts`: the number with an agent's session, `hosts_up`: of those
    that are up. `enabled` and `reason`: whether an operator lets it have new instances.
    """

    name: str
    section: str | None
    state: str
    conductors: int
    instances: dict[str, int] | None
    enabled: bool | None = None
    reason: str | None = None
    hosts: int = 0
    hosts_up: int = 0


class CellList(msgspec.Struct, forbid_unknown_fields=True):
    """All cells in order of their names."""

    cells: list[ShownCell]
