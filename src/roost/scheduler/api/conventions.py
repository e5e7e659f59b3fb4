"""The form of errors of the scheduler's operations: as under ``/v1``, with the id of the run that failed."""

import falcon
import msgspec

from roost.model.reasons import Reasons
from roost.model.record import Step
from roost.model.spec import UnreadKey
from roost.scheduler.api.refusals import MovedByOthers, NoAlternateLeft, NoHost
from roost.scheduler.api.wire.answers import TriedAlternate
from roost.web.conventions import Conventions, Error
from roost.web.errors import HTTPError
from roost.web.request import Request, Response


class RunError(Error, forbid_unknown_fields=True, omit_defaults=True):
    """One error of a response.

    If a run of the scheduler found no host, `run` is its id, `steps` have the number of hosts that each step
    left, and `reasons` explain the refusal, if they were found in time. A user who may not read the records
    of all projects gets no steps, and the reasons without details of hosts. If no alternate can be used,
    `tried` lists the alternates that were passed over. If others have moved the claim, `generation` is the
    present one of the consumer. `warnings` are the keys of the request that had no effect.
    """

    run: str | None = None
    steps: tuple[Step, ...] = ()
    reasons: Reasons | None = None
    tried: tuple[TriedAlternate, ...] = ()
    generation: int | None = None
    warnings: tuple[UnreadKey, ...] = ()


class RunErrors(msgspec.Struct, forbid_unknown_fields=True):
    """The body of every response that reports an error."""

    errors: list[RunError]


class SchedulingConventions(Conventions):
    """The conventions of the scheduler's operations."""

    errors = RunErrors

    def refuse(self, req: Request, resp: Response, error: HTTPError) -> None:
        """Fill in the response for an error."""
        title = falcon.code_to_http_status(error.status).partition(" ")[2]
        described = RunError(error.status, title, str(error) or title, self.code_of(error), req.request_id)
        if isinstance(error, NoHost):
            described = msgspec.structs.replace(
                described,
                run=error.run,
                steps=error.steps,
                reasons=error.reasons,
                warnings=error.warnings,
            )
        elif isinstance(error, NoAlternateLeft):
            described = msgspec.structs.replace(described, tried=error.tried)
        elif isinstance(error, MovedByOthers):
            described = msgspec.structs.replace(described, generation=error.generation)
        resp.content_type = falcon.MEDIA_JSON
        resp.data = msgspec.json.encode(RunErrors([described]))
