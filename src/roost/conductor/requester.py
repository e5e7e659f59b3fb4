"""The project and user of a request: the owner of the resources that it makes, the requester of an action."""

from roost.model.instance import Requester
from roost.model.vocabulary import MAX_NAME
from roost.web.errors import BadRequest
from roost.web.request import Request


def owner_of(req: Request) -> tuple[str, str]:
    """Return the project and the user of a request.

    Raises `BadRequest` for names that are too long to be stored.
    """
    owner = req.identity.project_id or "", req.identity.user_id
    for name in owner:
        if len(name) > MAX_NAME:
            raise BadRequest(f"user and project have {MAX_NAME} characters at most, not {len(name)}")
    return owner


def requester_of(req: Request) -> Requester:
    """Return the requester of an action, as histories name it. Raises `BadRequest` as `owner_of`."""
    project_id, user_id = owner_of(req)
    return Requester(user_id, project_id, req.request_id)
