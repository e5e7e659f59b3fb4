"""The image and the network service of a Nova cloud without networks: any image, no ports, no extensions."""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
"""The uuid of an image."""

_IMAGE = {
    "id": IMAGE,
    "name": "image",
    "status": "active",
    "visibility": "public",
    "owner": "admin",
    "disk_format": "raw",
    "container_format": "bare",
    "size": 1,
    "min_disk": 0,
    "min_ram": 0,
    "protected": False,
    "tags": [],
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}
IMAGES = "/v2/images/"
_ANSWERS = {
    "/v2/schemas/image": {"name": "image", "properties": {name: {} for name in _IMAGE}},
    "/v2.0/ports": {"ports": []},
    "/v2.0/networks": {"networks": []},
    "/v2.0/extensions": {"extensions": []},
    "/v2.0/security-groups": {"security_groups": []},
}


class StubServices:
    """The server of both, in threads of this process. ``unknown``: requests that it had no answer for."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        unknown = self.unknown

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0].rstrip("/")
                if path.startswith(IMAGES):
                    self._answer(200, {**_IMAGE, "id": path.removeprefix(IMAGES)})
                elif path in _ANSWERS:
                    self._answer(200, _ANSWERS[path])
                else:
                    unknown.append(self.path)
                    self._answer(404, {})

            def do_POST(self) -> None:
                given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(201, {**_IMAGE, "id": str(uuid.uuid4()), **given})

            def do_DELETE(self) -> None:
                self._answer(204, None)

            def _answer(self, status: int, answer: object) -> None:
                body = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write no log."""

        return Handler
