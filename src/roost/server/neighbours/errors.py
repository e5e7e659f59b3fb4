"""Errors of the service. ``kind``: the name of the error in the API, if it has one.

HTTPError
├── Missing     404  the resource does not exist
├── Wrong       400  the request is invalid
├── InUse       409  the state of a resource does not allow the operation
└── Changed     412  the resource has another revision than the request says
"""

from roost.web.errors import BadRequest, Conflict, HTTPError, NotFound


class Missing(NotFound):
    """The resource does not exist."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class Wrong(BadRequest):
    """The request is invalid; the text names the value."""

    kind = "HTTPBadRequest"


class InUse(Conflict):
    """The state of a resource does not allow the operation."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class Changed(HTTPError):
    """The resource has another revision number than the request says."""

    status = 412
    kind = "RevisionNumberConstraintFailed"
