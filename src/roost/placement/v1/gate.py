"""What every request under ``/v1`` passes before its operation and after it."""

from roost.placement.errors import NotAcceptable, NotAllowed, NotFound, TooLong
from roost.placement.http.auth import Authenticator, identify
from roost.placement.http.microversions import LATEST
from roost.placement.http.policy import Policy
from roost.placement.http.request import Request, Response
from roost.placement.v1.operations import OPERATIONS

LONGEST_URL = 16 * 1024
"""Characters of path and query string."""


class Gate:
    """Middleware: who asks, whether the operation is there, and whether they may.

    There are no microversions here: parameters and candidates are those of the latest one.
    """

    def __init__(self, authenticator: Authenticator, policy: Policy) -> None:
        self._authenticator = authenticator
        self._policy = policy

    async def process_request(self, req: Request, resp: Response) -> None:
        """Before the URL is looked up."""
        req.version_asked = LATEST
        if len(req.path) + len(req.query_string) > LONGEST_URL:
            raise TooLong(f"A URL may have at most {LONGEST_URL} characters.")
        if "\x00" in req.path:
            raise NotFound
        if _is_public(req.path):
            return
        await identify(self._authenticator, req, resp)

    async def process_resource(
        self, req: Request, resp: Response, resource: object, params: dict[str, str]
    ) -> None:
        """After the URL was looked up: the operation by the table."""
        operations = OPERATIONS[req.uri_template or ""]
        operation = operations.get(req.method)
        if operation is None:
            raise NotAllowed("The method specified is not allowed for this resource.", tuple(operations))
        if operation.rule is not None:
            self._policy.authorise(req.identity, operation.rule)
        if not any(req.client_accepts(media_type) for media_type in operation.answers):
            raise NotAcceptable(f"Only {' and '.join(operation.answers)} is provided")

    async def process_response(
        self, req: Request, resp: Response, resource: object, req_succeeded: bool
    ) -> None:
        """After the answer is made, or the refusal."""
        resp.set_header("x-openstack-request-id", req.request_id)


def _is_public(path: str) -> bool:
    return any(operation.rule is None for operation in OPERATIONS.get(path, {}).values())
