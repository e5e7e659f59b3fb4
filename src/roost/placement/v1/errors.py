"""From a refusal to an answer of ``/v1``: Placement's error document, always JSON, without its sentences."""

import falcon
import msgspec

from roost.placement.http.request import Request, Response


def answer_error(req: Request, resp: Response, status: int, text: str, code: str) -> None:
    """Fill in the answer to a request that was refused, or that failed."""
    title = falcon.code_to_http_status(status).partition(" ")[2]
    document = {
        "status": status,
        "title": title,
        "detail": text or title,
        "code": code,
        "request_id": req.request_id,
    }
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = msgspec.json.encode({"errors": [document]})
