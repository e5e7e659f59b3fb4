"""OpenStack Placement in this process, asked over the pipe: a request a line, an answer a line, as JSON.

Run by `exchange.upstream`, in a process of its own because of all that is global in it.
"""

import io
import json
import os
import sys
from typing import Any

from placement.wsgi import init_application


def ask(app: Any, method: str, path: str, body: Any, version: str) -> dict[str, Any]:
    raw = b"" if body is None else json.dumps(body).encode()
    path, _, query = path.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_X_AUTH_TOKEN": "admin",
        "HTTP_X_ROLES": "admin,service",
        "HTTP_ACCEPT": "application/json",
        "HTTP_OPENSTACK_API_VERSION": f"placement {version}",
        "CONTENT_LENGTH": str(len(raw)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(raw),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if raw:
        environ["CONTENT_TYPE"] = "application/json"
    status: list[int] = []
    answered = app(environ, lambda line, headers, *_: status.append(int(line.split()[0])))
    text = b"".join(answered).decode()
    return {"status": status[-1], "body": json.loads(text) if text else None}


def main() -> None:
    # The log may go to standard output; answers have it for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    app = init_application()
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(ask(app, *json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
