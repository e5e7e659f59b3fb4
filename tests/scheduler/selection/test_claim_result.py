"""Every error of placement and of the way to it has one verdict, for all who claim."""

import httpx
import msgspec
import pytest

from roost.ledger import LedgerBusy
from roost.ledger.errors import Damaged
from roost.placement import errors as placement
from roost.placement.client.transport import OlderService
from roost.placement.errors import error_for
from roost.scheduler import NoValidHost
from roost.scheduler import errors as scheduler
from roost.scheduler.selection.claim_result import ClaimVerdict, result_of
from roost.storage import DatabaseUnavailable
from roost.storage.errors import OutcomeUnknown, SchemaTooNew, SchemaTooOld

REFUSED, RETRY, FATAL = ClaimVerdict.REFUSED, ClaimVerdict.RETRY, ClaimVerdict.FATAL

UPDATE = placement.ConcurrentUpdate.code
UNDEFINED = placement.PlacementError.code
VERDICTS = [
    # This host cannot: it is full, in use otherwise, or gone.
    (placement.CannotAllocate("no room"), REFUSED),
    (error_for(409, UNDEFINED, "Unable to allocate inventory: no room"), REFUSED),
    (placement.InventoryInUse("in use"), REFUSED),
    (placement.GroupRefused("another member is there"), REFUSED),
    (placement.AssignmentRefused("a CPU is another's"), REFUSED),
    # In the process this is a host that cannot; over HTTP the gateway fits the host again.
    (placement.AssignmentChanged("others were assigned"), REFUSED),
    (placement.ProviderInUse("in use"), REFUSED),
    (placement.HasChildren("children"), REFUSED),
    (placement.DuplicateName("taken"), REFUSED),
    (placement.NameInUse("in use"), REFUSED),
    (placement.BadRequest("Allocation for resource provider 'x' that does not exist."), REFUSED),
    (
        error_for(400, UNDEFINED, "Bad.\n\n Allocation for resource provider 'x' that does not exist. "),
        REFUSED,
    ),
    # Others were faster, or placement does not answer: nothing is said of the host.
    (error_for(409, UPDATE, "resource provider generation conflict"), RETRY),
    (error_for(409, UPDATE, "consumer generation conflict - expected 3 but got null"), RETRY),
    (error_for(429, None, "slow down"), RETRY),
    (error_for(500, None, "oops"), RETRY),
    (error_for(502, None, "<html>"), RETRY),
    (error_for(503, None, "busy"), RETRY),
    (httpx.ConnectError("Connection refused"), RETRY),
    (httpx.ReadTimeout(""), RETRY),
    (httpx.RemoteProtocolError("cut off"), RETRY),
    (ConnectionResetError("reset"), RETRY),
    (TimeoutError(), RETRY),
    (DatabaseUnavailable("gone"), RETRY),
    (OutcomeUnknown("gone"), RETRY),
    (LedgerBusy("others"), RETRY),
    (scheduler.PlacementUnavailable("gone"), RETRY),
    (scheduler.SchedulerFault("a plugin failed"), RETRY),
    (RuntimeError("a defect"), RETRY),
    # The request itself, the token, or the installation.
    (placement.BadRequest("JSON does not validate"), FATAL),
    (OlderService("the query needs 1.39, and the service knows 1.36"), FATAL),
    (placement.BadRequest("Unable to allocate inventory: No such resource class X."), FATAL),
    (error_for(401, None, "who are you"), FATAL),
    (placement.Forbidden("not for you"), FATAL),
    (placement.NotFound("no such page"), FATAL),
    (error_for(405, None, "no such method"), FATAL),
    (error_for(406, None, "no such version"), FATAL),
    (error_for(410, None, "too old"), FATAL),
    (error_for(413, None, "too large"), FATAL),
    (error_for(414, None, "too long"), FATAL),
    (error_for(415, None, "no JSON"), FATAL),
    (msgspec.DecodeError("no JSON"), FATAL),
    (httpx.InvalidURL("no URL"), FATAL),
    (SchemaTooNew("new"), FATAL),
    (SchemaTooOld("old"), FATAL),
    (Damaged("damaged"), FATAL),
    (scheduler.PlacementRefused("no"), FATAL),
    (scheduler.BadRequestSpec("no"), FATAL),
    (scheduler.CannotWeigh("no"), FATAL),
    (NoValidHost("run", "no host", (), ()), FATAL),
]


@pytest.mark.parametrize(("error", "verdict"), VERDICTS, ids=lambda each: getattr(each, "name", None))
def test_verdict(error: Exception, verdict: ClaimVerdict) -> None:
    result = result_of(error)
    assert result.verdict is verdict
    assert result.reason
    assert "\n" not in result.reason
    assert str(error).split()[-1:] == [] or str(error).split()[-1] in result.reason


def test_no_error_of_placement_is_without_a_verdict_here() -> None:
    listed = {type(error) for error, _ in VERDICTS}
    kinds = {placement.PlacementError, *placement.PlacementError.__subclasses__()}
    kinds |= {below for kind in kinds for below in kind.__subclasses__()}
    # Errors of reading and of reshapes: requests without a claim.
    elsewhere = {
        placement.UnknownProvider,
        placement.DuplicateKey,
        placement.BadValue,
        placement.MissingValue,
    }
    assert kinds - listed <= elsewhere | {placement.PlacementError, placement.Conflict}
