"""The parts of the edge that log: the ids of the request in each line, and the access line."""

from roost.process.logs.access import make_access_log
from roost.process.logs.request_ids import enter
from roost.web.observation import Observation

LONGEST_PATH = 2048
"""Characters of path and query string in an access line. A longer one is cut."""


class RequestLines:
    """Attaches the ids of a request to all records that are logged for it."""

    def begin(self, request: Observation) -> None:
        enter((request.ids,))

    def end(self, request: Observation) -> None:
        enter(())


class AccessLines:
    """Logs one line for each request. ``milliseconds``: from its arrival to the end of its response.

    ``status`` is None if no response was begun: the client has left, or the process ends.
    """

    def __init__(self) -> None:
        self._log = make_access_log()

    def begin(self, request: Observation) -> None:
        pass

    def end(self, request: Observation) -> None:
        scope, identity = request.scope, request.identity
        path = scope["path"]
        if query := scope["query_string"]:
            path = f"{path}?{query.decode('latin-1')}"
        self._log(
            {
                "method": scope["method"],
                "path": path[:LONGEST_PATH],
                "status": request.status,
                "bytes": request.sent,
                "milliseconds": round(request.seconds * 1000, 3),
                "user": identity.user_id or None,
                "project": identity.project_id,
            }
        )
