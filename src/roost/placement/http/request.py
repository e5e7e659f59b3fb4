"""A request to the Placement API, with what the gate has found out about it."""

import uuid

import falcon.asgi

from roost.auth import NOBODY, Identity


class Request(falcon.asgi.Request):
    """``version_asked`` is None until it is known; ``identity`` is nobody until a token is seen."""

    __slots__ = ("identity", "request_id", "version_asked")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.identity: Identity = NOBODY
        self.request_id = f"req-{uuid.uuid4()}"
        self.version_asked: int | None = None

    @property
    def version(self) -> int:
        """The microversion; the oldest if it was refused before it was known."""
        return self.version_asked or 0


Response = falcon.asgi.Response
