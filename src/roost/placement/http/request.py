"""A request to the Placement API."""

from roost.web import request

Response = request.Response


class Request(request.Request):
    """``version_asked`` is the microversion of the request, None until it is known."""

    __slots__ = ("version_asked",)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.version_asked: int | None = None

    @property
    def version(self) -> int:
        """The microversion; the oldest if the request was refused before it was known."""
        return self.version_asked or 0
