"""A small Neutron on loopback: ports, and subnets of which some are on segments."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Neutron:
    """The service. ``asked``: the path of each request; ``page``: the most subnets of an answer."""

    def __init__(self) -> None:
        self.ports: dict[str, dict[str, Any]] = {}
        self.subnets: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.page = 100
        self.broken: bytes | None = None
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, answer = service.answer(self.path)
                body = service.broken if service.broken is not None else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def subnet(self, network: str, segment: str | None, uuid: str = "") -> str:
        """Add a subnet; returns its id."""
        made = {"id": uuid or f"subnet-{len(self.subnets)}", "network_id": network}
        self.subnets.append(made if segment is None else {**made, "segment_id": segment})
        return made["id"]

    def port(self, uuid: str, network: str, *subnets: str) -> None:
        """Add a port with an address in each of these subnets."""
        addresses = [{"subnet_id": each, "ip_address": "10.0.0.1"} for each in subnets]
        self.ports[uuid] = {"id": uuid, "network_id": network, "fixed_ips": addresses}

    def answer(self, target: str) -> tuple[int, object]:
        """Return the status and the body of an answer."""
        url = urlsplit(target)
        self.asked.append(url.path)
        match url.path.split("/")[2:]:
            case ["ports", uuid] if uuid in self.ports:
                return 200, {"port": self.ports[uuid]}
            case ["subnets", uuid] if found := [each for each in self.subnets if each["id"] == uuid]:
                return 200, {"subnet": found[0]}
            case ["subnets"]:
                return 200, self._page({name: values[0] for name, values in parse_qs(url.query).items()})
            case [kind, *_]:
                text = f"{kind.capitalize()} could not be found."
                return 404, {"NeutronError": {"type": "NotFound", "message": text, "detail": ""}}
        return 404, {}

    def _page(self, query: dict[str, str]) -> dict[str, object]:
        found = [each for each in self.subnets if each["network_id"] == query["network_id"]]
        if (marker := query.get("marker")) is not None:
            found = found[[each["id"] for each in found].index(marker) + 1 :]
        links = [{"rel": "next", "href": "http://elsewhere"}] if len(found) > self.page else []
        return {"subnets": found[: self.page], **({"subnets_links": links} if links else {})}
