"""A request to the Placement API."""

from roost.web import request
from roost.web.dispatch import Message

Response = request.Response


class PlacementRequest(request.Request):
    """A request with its microversion: ``version_asked``, None until the header is read or if it is wrong."""

    __slots__ = ("version_asked",)

    def __init__(self, scope: Message, *args: object, **kwargs: object) -> None:
        super().__init__(scope, *args, **kwargs)
        self.version_asked: int | None = None

    @property
    def version(self) -> int:
        """The microversion; the oldest if ``version_asked`` is None."""
        return self.version_asked or 0
