"""Errors of the service. ``kind`` is the name that the API has for each, where it has one.

HTTPError
├── Missing     404  there is no such resource
├── Wrong       400  the request cannot be carried out as it is
├── InUse       409  the state of a resource does not allow the operation
└── Changed     412  the resource is not as the request says
"""

from roost.web.errors import BadRequest, Conflict, HTTPError, NotFound


class Missing(NotFound):
    """There is no such resource."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class Wrong(BadRequest):
    """The request cannot be carried out as it is; the text names the value."""

    kind = "HTTPBadRequest"


class InUse(Conflict):
    """The state of a resource does not allow the operation."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class Changed(HTTPError):
    """The resource has been changed as often as the request says it has not."""

    status = 412
    kind = "RevisionNumberConstraintFailed"
