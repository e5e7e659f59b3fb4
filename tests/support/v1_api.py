"""Placement's API and ``/v1`` together, without a socket."""

from pathlib import Path
from typing import Any

import httpx

from roost.placement.http.app import document_at
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.v1.app import V1
from roost.web.dispatch import dispatch
from support.placement_api import ADMIN, Api


class V1Api(Api):
    """An `Api` that serves ``/v1`` as well; `fetch` sends requests to both."""

    def __init__(self, folder: Path, empty: Path | None = None, **options: Any) -> None:
        super().__init__(folder, empty, **options)
        chosen = PlacementOptions(**{"auth_strategy": "noauth2", **options})
        queries = QueryBudget(self.ledger, chosen.limits)
        self.v1 = V1(self.ledger, chosen, queries, document_at)
        transport = httpx.ASGITransport(app=dispatch({"/v1": self.v1}, self.app))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://placement")

    def close(self) -> None:
        self.v1.close()
        self.run(self.client.aclose())
        super().close()

    def fetch(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        """Return the answer to a request. Names of headers have _ for -; an empty header is not sent."""
        sent = {**ADMIN, **{name.replace("_", "-"): value for name, value in headers.items()}}
        sent = {name: value for name, value in sent.items() if value}
        return self.run(self.client.request(method, path, headers=sent))

    def read(self, path: str, **headers: str) -> Any:
        """Return the JSON of an answer that must be a success."""
        answer = self.fetch(path, **headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def pages(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return all pages of candidates."""
        found = [self.read(f"/v1/allocation_candidates?{query}&limit={limit}")]
        while found[-1]["next"] is not None:
            cursor = found[-1]["next"]
            found.append(self.read(f"/v1/allocation_candidates?{query}&limit={limit}&cursor={cursor}"))
        return found


def fault_of(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the text of a refusal, which has Placement's form."""
    (error,) = answer.json()["errors"]
    assert error["status"] == answer.status_code
    assert error["code"].startswith(("placement.", "roost."))
    assert error["request_id"] == answer.headers["x-openstack-request-id"]
    return answer.status_code, error["detail"]
