"""An operator's word on a cell, a host or a node: its subject, and the request that says it."""

from typing import Annotated, Literal, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Meta

from roost.conductor.hosts.operations import CELLS, HOSTS
from roost.dashboard.page import PageQuery
from roost.state.api_database.event_types import EventKind
from roost.web.errors import BadRequest

WordVerb = Literal["enable", "disable", "drain"]
"""``drain`` says the same as ``disable``; the page after it follows the instances that are left."""

VERBS: tuple[WordVerb, ...] = ("enable", "disable", "drain")

Name = Annotated[str, Meta(min_length=1, max_length=255)]


class SubjectQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The subject of a word: a cell, a host, or a node of a host (the uuid of its root provider).

    ``cell``: of a host, if several cells have one of its name.
    """

    cell: Name | None = None
    host: Name | None = None
    node: Name | None = None


class WordForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The form that says a word. ``move``: a drain has the instances moved to other hosts."""

    cell: Annotated[str, Meta(max_length=255)] = ""
    host: Annotated[str, Meta(max_length=255)] = ""
    node: Annotated[str, Meta(max_length=255)] = ""
    reason: Annotated[str, Meta(max_length=1000)] = ""
    move: Literal["", "on"] = ""


class WordSubject(NamedTuple):
    """The subject of a word. ``host``: None: the whole cell. ``node``: None: the whole host."""

    cell: str | None
    host: str | None = None
    node: str | None = None

    @classmethod
    def of(cls, query: SubjectQuery | WordForm) -> "WordSubject":
        """Return the subject that a query or form names. Raises `BadRequest`."""
        subject = cls(query.cell or None, query.host or None, query.node or None)
        if subject.node is not None and subject.host is None:
            raise BadRequest("A node is one of a host: name the host too.")
        if subject.host is None and subject.cell is None:
            raise BadRequest("Name a cell, or a host.")
        for name in subject:
            if name in (".", ".."):
                raise BadRequest(f"{name!r} is no name.")
        return subject

    @property
    def kind(self) -> Literal["cell", "host", "node"]:
        """The kind of the subject."""
        if self.node is not None:
            return "node"
        return "cell" if self.host is None else "host"

    @property
    def path(self) -> str:
        """The path of the subject in the conductor's API."""
        if self.host is None:
            return f"{CELLS}/{quote(self.cell or '', safe='')}"
        path = f"{HOSTS}/{quote(self.host, safe='')}"
        return path if self.node is None else f"{path}/nodes/{quote(self.node, safe='')}"

    @property
    def query(self) -> dict[str, str]:
        """The query of the request: the cell of a host."""
        return {} if self.host is None or self.cell is None else {"cell": self.cell}


def event_kind(subject: WordSubject, verb: WordVerb) -> EventKind:
    """Return the kind of the event that a word writes."""
    kinds: dict[tuple[str, bool], EventKind] = {
        ("cell", True): "cell_enabled",
        ("cell", False): "cell_disabled",
        ("host", True): "host_enabled",
        ("host", False): "host_disabled",
        ("node", True): "node_enabled",
        ("node", False): "node_disabled",
    }
    return kinds[subject.kind, verb == "enable"]


def body_of(verb: WordVerb, reason: str, *, moves: bool = False) -> dict[str, object]:
    """Return the body of the request that says a word. ``moves``: of a drain, the instances move away."""
    if verb == "enable":
        return {"enabled": True}
    said = reason.strip() or ("it is drained" if verb == "drain" else None)
    body: dict[str, object] = {"enabled": False, **({"reason": said} if said else {})}
    return {**body, "move": True} if moves and verb == "drain" else body
