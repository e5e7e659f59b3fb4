"""Serve Keystone's application on port $TEST_PORT, run by the interpreter that has Keystone.

Each request is a line in the file $TEST_LOG. The header X-Test-Expiration sets for how many seconds the
tokens of a request are good.
"""

import os
import socketserver
import threading
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import keystone.conf
from keystone.server import wsgi

LOG = Path(os.environ["TEST_LOG"]).open("a", buffering=1)  # noqa: SIM115
LOCK = threading.Lock()
APPLICATION = wsgi.initialize_public_application()


class Handler(WSGIRequestHandler):
    def log_request(self, *_):
        LOG.write(f"{self.requestline}\n")

    def address_string(self):
        return self.client_address[0]


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


def application(environ, start_response):
    with LOCK:
        seconds = environ.get("HTTP_X_TEST_EXPIRATION")
        if seconds:
            keystone.conf.CONF.set_override("expiration", int(seconds), "token")
        try:
            return list(APPLICATION(environ, start_response))
        finally:
            if seconds:
                keystone.conf.CONF.clear_override("expiration", "token")


make_server("127.0.0.1", int(os.environ["TEST_PORT"]), application, Server, Handler).serve_forever()
