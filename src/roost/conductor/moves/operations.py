"""The operations of moves, their handlers and policy rules."""

import uuid as uuids
from dataclasses import replace
from typing import Final, Protocol

import msgspec

from roost.conductor.hosts.operations import HOSTS
from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.hosts.watch import check_feature, held_back_by
from roost.conductor.instances.operations import ALL_PROJECTS, is_reachable
from roost.conductor.instances.operations import PATH as INSTANCES
from roost.conductor.instances.power import ChangesInstances
from roost.conductor.moves.departures import go_on_without_host
from roost.conductor.moves.requests import find_move, request_move, settle_move, stop_move
from roost.conductor.moves.types import (
    DescribedMove,
    EvacuatedHost,
    MovePage,
    MovesQuery,
    ShownMove,
    WantedEvacuation,
    WantedHostEvacuation,
    WantedLiveMigration,
    WantedMigration,
    WantedResize,
    described_move,
    shown_move,
)
from roost.conductor.moves.views import MoveViews
from roost.conductor.neighbours import Neighbours
from roost.conductor.requester import owner_of, requester_of
from roost.model.move import (
    ARRIVING,
    BY_OPERATOR,
    LIVE,
    DeathProof,
    Move,
    MoveKind,
    MoveRefused,
    needed_feature,
)
from roost.model.request import RequestGroup
from roost.model.service_version import ATTACHED_MOVES, IN_PLACE_RESIZES, MOVES
from roost.model.spec import Flavor
from roost.state.api_database.host_mappings import NoSuchHost
from roost.state.cell_database.instance_search import search_instances
from roost.state.cell_database.moves import read_steps
from roost.web.errors import BadRequest, Conflict, NotFound
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.query import Query
from roost.web.request import Request, Response


class MoveService(ChangesInstances, Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def moves(self) -> MoveViews: ...

    @property
    def hosts(self) -> HostRegistry: ...

    @property
    def neighbours(self) -> Neighbours: ...


async def migrate_instance(service: MoveService, req: Request, resp: Response, uuid: str) -> ShownMove:
    """Have an instance move to another host of its cell, or of any. It is durable when it is answered.

    The guest is stopped on its host and started on the other one. Without one, or if no host can take the
    instance, it stays where it is and runs on.

    The move is in the cell's database and the client's key in the API database, so no transaction has both.
    Therefore the uuid of the move is made of the key and the request: a request that is sent again finds the
    move that the first one began, even if the answer was never stored.
    """
    wanted: WantedMigration = req.body
    across = wanted.any_cell
    return await _begin(service, req, uuid, "migrate", wanted, confirms=wanted.confirm, across=across)


async def live_migrate_instance(service: MoveService, req: Request, resp: Response, uuid: str) -> ShownMove:
    """Have an instance move to another host of its cell while its guest runs on.

    Until the guest has gone over the move can be aborted, and the guest runs on where it is. It takes a host
    whose guests can go, and another one to which they can come: drivers tell. If the guest is lost on its
    way, it starts again where it was.
    """
    wanted: WantedLiveMigration = req.body
    return await _begin(service, req, uuid, LIVE, wanted, confirms=True)


async def resize_instance(service: MoveService, req: Request, resp: Response, uuid: str) -> ShownMove:
    """Have an instance move to another host of its cell, or of any, where it has another flavor.

    With `in_place` its own host may be the target: the guest of before is kept there until it is confirmed.
    It goes as a migration does. If it is reverted the instance has its flavor of before.
    """
    wanted: WantedResize = req.body
    flavor = Flavor(**msgspec.structs.asdict(wanted.flavor))
    groups = await service.neighbours.groups_of(flavor)
    if wanted.in_place:
        check_feature(service.watch, IN_PLACE_RESIZES)
    return await _begin(
        service,
        req,
        uuid,
        "resize",
        wanted,
        confirms=wanted.confirm,
        flavor=flavor,
        groups=groups,
        across=wanted.any_cell,
    )


async def evacuate_instance(service: MoveService, req: Request, resp: Response, uuid: str) -> ShownMove:
    """Have an instance run on another host of its cell, as its own is dead.

    The agent of the host must have been silent until its session was free. If it is back before the new guest
    starts, the evacuation ends. What the instance held there is freed when the host is back and has destroyed
    what it had, or when it is removed. The driver of the new host makes the guest anew.
    """
    wanted: WantedEvacuation = req.body
    proof = _word(req, wanted.evidence, service.conductor.context.clock())
    return await _begin(service, req, uuid, "evacuate", wanted, confirms=True, proof=proof)


async def evacuate_host(service: MoveService, req: Request, resp: Response, host: str) -> EvacuatedHost:
    """Have all instances of a host that is dead run on other hosts of its cell.

    Each is an evacuation of its own, and `refused` says of the others why they are none: they are being
    deleted, or move already. Asked again later, those that have become possible follow. Those that are being
    built there are built on other hosts, and moves to the host take other targets.
    """
    wanted: WantedHostEvacuation = req.body
    context, key = service.conductor.context, req.idempotency_key
    check_feature(service.watch, MOVES)
    try:
        cell = (await service.hosts.lookup.find(host)).cell
    except NoSuchHost:
        raise NotFound(f"no host {host}") from None
    proof = _word(req, wanted.evidence, context.clock())
    elsewhere = await go_on_without_host(context, cell, host, proof)
    found: list[ShownMove] = []
    refused: dict[str, str] = {}
    for uuid in await context.read(f"cell/{cell}", search_instances(most=MOST_OF_HOST, host=host)):
        if uuid in elsewhere:
            continue
        name = str(uuids.uuid4()) if key is None else key.uuid(f"move/{key.request}/{uuid}")
        asked = await request_move(
            context,
            uuid=name,
            instance=uuid,
            kind="evacuate",
            by=requester_of(req),
            proof=proof,
            attached=not held_back_by(service.watch, ATTACHED_MOVES),
        )
        if isinstance(asked, Move):
            found.append(shown_move(cell, asked))
        else:
            refused[uuid] = "the instance is gone" if asked is None else asked.reason
    return EvacuatedHost(found, refused)


def _word(req: Request, evidence: str, at: float) -> DeathProof:
    return DeathProof(BY_OPERATOR, evidence.strip(), at, by=owner_of(req)[1])


async def _begin(
    service: MoveService,
    req: Request,
    uuid: str,
    kind: MoveKind,
    wanted: WantedMigration | WantedLiveMigration | WantedResize | WantedEvacuation,
    *,
    confirms: bool,
    flavor: Flavor | None = None,
    groups: tuple[RequestGroup, ...] | None = None,
    proof: DeathProof | None = None,
    across: bool = False,
) -> ShownMove:
    """Begin a move. ``across``: the target may be in another cell."""
    mapping = await service.requests.mapping(uuid)
    if mapping is None or mapping.cell is None or not await is_reachable(service, req, mapping):
        raise NotFound(f"no instance {uuid} in a cell")
    context, key = service.conductor.context, req.idempotency_key
    name = str(uuids.uuid4()) if key is None else key.uuid(f"move/{key.request}")
    begun = None if key is None else await find_move(context, (mapping.cell,), name)
    if begun is None:
        check_feature(service.watch, needed_feature(kind, across=across, confirms=confirms))
        if wanted.host is not None:
            await _check_target(service, wanted.host, mapping.cell, across)
    asked = await request_move(
        context,
        uuid=name,
        instance=uuid,
        kind=kind,
        by=requester_of(req),
        to_host=wanted.host,
        forced=wanted.force,
        confirms=confirms,
        flavor=flavor,
        proof=proof,
        groups=groups,
        attached=not held_back_by(service.watch, ATTACHED_MOVES),
        across=across,
        in_place=isinstance(wanted, WantedResize) and wanted.in_place,
    )
    if asked is None:
        raise NotFound(f"no instance {uuid}")
    return _answered(mapping.cell, asked)


async def _check_target(service: MoveService, host: str, cell: str, across: bool) -> None:
    """Check a host that is asked for. One whose cell cannot be asked is not judged: nothing begins there.

    ``across``: it may be in another cell than the instance's. Raises `BadRequest`: it may not and is, there
    is no such host, or an operator has disabled it. That is no filter's judgement, so forcing does not lift
    it.
    """
    try:
        located = await service.hosts.lookup.find(host, None if across else cell)
    except NoSuchHost:
        where = "in no cell" if across else f"not in cell {cell}, which has the instance"
        raise BadRequest(f"host {host!r} is {where}") from None
    if located.described is not None and not located.described.enabled:
        why = "" if located.described.reason is None else f": {located.described.reason}"
        raise BadRequest(f"host {host!r} is disabled{why}")


async def list_moves(service: MoveService, req: Request, resp: Response) -> MovePage:
    """List moves by page, the newest first, also those that have ended."""
    query: MovesQuery = req.query
    return await service.moves.page(query, None if req.projects.all else req.projects.project_id)


async def show_move(service: MoveService, req: Request, resp: Response, uuid: str) -> DescribedMove:
    """Show a move with its steps: the states that it entered, with times and reasons."""
    cell, move = await _find(service, req, uuid)
    return described_move(cell, move, await service.conductor.context.read(f"cell/{cell}", read_steps(uuid)))


async def confirm_move(service: MoveService, req: Request, resp: Response, uuid: str) -> ShownMove:
    """Confirm a move whose instance runs on the target: the source destroys the guest that it keeps."""
    cell, move = await _find(service, req, uuid)
    return _answered(cell, await settle_move(service.conductor.context, cell, move, confirm=True))


async def revert_move(service: MoveService, req: Request, resp: Response, uuid: str) -> ShownMove:
    """Revert a move whose instance runs on the target and that is not confirmed: it goes back."""
    cell, move = await _find(service, req, uuid)
    return _answered(cell, await settle_move(service.conductor.context, cell, move, confirm=False))


async def abort_move(service: MoveService, req: Request, resp: Response, uuid: str) -> ShownMove:
    """Abort a move whose target was not told to start the guest: the instance stays on its host."""
    cell, _ = await _find(service, req, uuid)
    return _answered(cell, await stop_move(service.conductor.context, cell, uuid, owner_of(req)[1]))


async def _find(service: MoveService, req: Request, uuid: str) -> tuple[str, Move]:
    """Return the cell of a move, and the move. Raises `NotFound` for those that a request may not reach."""
    # Cells that were silent are asked last: they keep one waiting.
    silent = service.watch.silent()
    cells = sorted(service.conductor.cells, key=lambda name: name in silent)
    found = await find_move(service.conductor.context, cells, uuid)
    if found is None or not req.projects.include(found[1].spec.project_id):
        raise NotFound(f"no move {uuid}")
    return found


def _answered(cell: str, done: Move | MoveRefused | None) -> ShownMove:
    """Return a move as it is shown. Raises `Conflict` for one that was refused, `NotFound` for none."""
    if done is None:
        raise NotFound("the move is gone")
    if isinstance(done, MoveRefused):
        raise Conflict(done.reason)
    # The cell of an instance that has moved to another one by the same request has the other half.
    return shown_move(done.other_cell or cell if done.side == ARRIVING else cell, done)


MOST_OF_HOST: Final = 10_000
"""Instances of a host that one request evacuates at most."""

PATH: Final = "/v1/moves"
_ONE: Final = f"{PATH}/{{uuid}}"

MOVE_RULES: Final = {
    f"conductor:moves:{verb}": ADMIN
    for verb in (
        *("create", "live_migrate", "evacuate", "forced_host", "any_cell"),
        *("list", "show", "confirm", "revert", "abort"),
    )
}
"""The policy rules as they are without a policy file. Source: Nova's, of migrations."""


def _rules_of(wanted: WantedMigration | WantedLiveMigration | WantedResize | WantedEvacuation) -> list[str]:
    """Return the further rules that must allow a move."""
    rules = ["conductor:moves:forced_host"] if wanted.force else []
    if isinstance(wanted, WantedMigration | WantedResize) and wanted.any_cell:
        rules.append("conductor:moves:any_cell")
    return rules


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:moves:{verb}", all_projects=ALL_PROJECTS)


MOVE_OPERATIONS: Final = (
    *(
        Operation(
            "POST",
            f"{INSTANCES}/{{uuid}}/{verb}",
            replace(_rule(rule), of_body=_rules_of),
            handler,
            body=body,
            takes=(),  # curl -d says that its data is a form
            answer=ShownMove,
            status=202,
            raises=(Conflict,),
            creates=Creation(atomic=False),
        )
        for verb, rule, handler, body in (
            ("migrate", "create", migrate_instance, WantedMigration),
            ("live-migrate", "live_migrate", live_migrate_instance, WantedLiveMigration),
            ("resize", "create", resize_instance, WantedResize),
            ("evacuate", "evacuate", evacuate_instance, WantedEvacuation),
        )
    ),
    Operation(
        "POST",
        f"{HOSTS}/{{host}}/evacuate",
        _rule("evacuate"),
        evacuate_host,
        body=WantedHostEvacuation,
        takes=(),
        answer=EvacuatedHost,
        status=202,
        creates=Creation(atomic=False),
    ),
    Operation("GET", PATH, _rule("list"), list_moves, query=Query(MovesQuery), answer=MovePage),
    Operation("GET", _ONE, _rule("show"), show_move, answer=DescribedMove),
    *(
        Operation(
            "POST",
            f"{_ONE}/{verb}",
            _rule(verb),
            handler,
            answer=ShownMove,
            status=202,
            raises=(Conflict,),
        )
        for verb, handler in (("confirm", confirm_move), ("revert", revert_move), ("abort", abort_move))
    ),
)
