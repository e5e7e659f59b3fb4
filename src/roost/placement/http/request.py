"""A request to the Placement API, with what the gate has found out about it."""

import random
import re

import falcon.asgi

from roost.auth import NOBODY, Identity

_REQUEST_ID = re.compile(r"req-[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}")


class Request(falcon.asgi.Request):
    """``version_asked`` is None until it is known; ``identity`` is nobody until a token is seen."""

    __slots__ = ("identity", "request_id", "version_asked")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.identity: Identity = NOBODY
        self.request_id = _new_id()
        self.version_asked: int | None = None

    @property
    def version(self) -> int:
        """The microversion; the oldest if it was refused before it was known."""
        return self.version_asked or 0

    @property
    def log_id(self) -> str:
        """What the log calls it: its id, and that of the request which the client sends it for."""
        cause = self.get_header("x-openstack-request-id") or ""
        return f"{self.request_id} for {cause}" if _REQUEST_ID.fullmatch(cause) else self.request_id


def _new_id() -> str:
    """A random UUID, of version 4, after ``req-``. It is no secret, so that the fastest source will do."""
    digits = f"{random.getrandbits(128):032x}"
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


Response = falcon.asgi.Response

RETRY_SECONDS = 1
"""When to ask again while the database or Keystone is away: soon, as that costs little, but not at once."""
