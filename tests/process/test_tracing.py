"""Traces: one from a request through scheduler, commit and conductor; nothing is imported while it is off."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from roost.conductor.http import create_app
from roost.model.errors import OperatorError
from roost.placement.client.transport import Transport
from roost.placement.commands.names import AddResourceClass
from roost.process import tracing
from roost.process.tracing import TracingOptions
from roost.state.api_database.build_requests import AcceptRequest
from roost.web.auth import NoAuth
from roost.web.auth.credentials import Caller, FixedCredentials
from roost.web.edge import Edge
from roost.web.watches import RequestSpans
from support.conducting import conducting, request
from support.ledgers import opened
from support.serving import Serving

sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="install roost[tracing]")

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SAMPLED = 1
TRACE = PARENT.split("-")[1]
BODY = {"flavor": {"vcpus": 1, "memory_mb": 0}}


class Spans:
    """The spans that have ended."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def all(self) -> Sequence[Any]:
        return self._memory.get_finished_spans()

    def one(self, name: str) -> Any:
        [span] = [span for span in self.all() if span.name == name]
        return span

    def chain(self, name: str) -> list[str]:
        """The names of a span, its parent and so on. Spans of other processes are left out."""
        by_id = {span.context.span_id: span for span in self.all()}
        names, span = [], self.one(name)
        while span is not None:
            names.append(span.name)
            span = by_id.get(span.parent.span_id) if span.parent else None
        return names


@pytest.fixture
def spans() -> Iterator[Spans]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from roost.process.tracing.opentelemetry import OpenTelemetryTracer

    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracing.use(OpenTelemetryTracer(provider))
    yield Spans(memory)
    tracing.use(None)


def test_one_trace_from_request_through_conductor_and_scheduler_to_the_commit(
    tmp_path: Path, spans: Spans
) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            app = create_app(now.super, now.requests, now.aggregates, now.groups, now.placement, NoAuth())
            transport = httpx.ASGITransport(Edge(app, watches=[RequestSpans()]))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                headers = {"x-auth-token": "admin", "traceparent": PARENT}
                answer = await client.post("/v1/instances", json=BODY, headers=headers)
            assert answer.status_code == 202
            await now.super.idle()

    asyncio.run(run())
    of_request = spans.one("POST /v1/instances")
    assert (format(of_request.context.trace_id, "032x"), format(of_request.parent.span_id, "016x")) == (
        TRACE,
        PARENT.split("-")[2],
    )
    assert of_request.attributes["http.response.status_code"] == 202
    assert of_request.attributes["http.route"] == "POST /v1/instances"
    run_of_scheduler = spans.one("scheduler.run")
    of_trace = [span for span in spans.all() if span.context.trace_id == of_request.context.trace_id]
    appends = {span.name: span for span in of_trace}
    assert set(appends) == {
        "POST /v1/instances", "conductor.carry", "scheduler.run", "ledger.commit", "ledger.append",
    }  # fmt: skip
    assert run_of_scheduler.parent.span_id == spans.one("conductor.carry").context.span_id
    assert appends["ledger.commit"].parent.span_id == run_of_scheduler.context.span_id
    assert appends["ledger.append"].parent.span_id == appends["ledger.commit"].context.span_id
    assert spans.chain("scheduler.run") == ["scheduler.run", "conductor.carry", "POST /v1/instances"]


def test_a_request_that_is_carried_on_after_a_restart_stays_in_its_trace(
    tmp_path: Path, spans: Spans
) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            with tracing.span("before the restart"):
                accepted = msgspec.structs.replace(request(1), trace=tracing.headers())
                await now.ledger.database.write(AcceptRequest(accepted, 1.0))
            await now.super.resume()
            await now.super.idle()

    asyncio.run(run())
    assert spans.chain("scheduler.run") == ["scheduler.run", "conductor.carry", "before the restart"]


def test_a_shared_commit_belongs_to_the_first_request_and_links_the_others(
    tmp_path: Path, spans: Spans
) -> None:
    async def run() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:

            async def add(name: str) -> None:
                with tracing.span(name):
                    await ledger.execute(AddResourceClass(name))

            await asyncio.gather(*(add(f"CUSTOM_{name}") for name in "ABC"))

    asyncio.run(run())
    first, *others = (spans.one(f"CUSTOM_{name}").context for name in "ABC")
    [commit] = [span for span in spans.all() if span.name == "ledger.commit" and span.links]
    assert commit.parent.span_id == first.span_id
    assert [link.context.span_id for link in commit.links] == [each.span_id for each in others]


def test_requests_to_placement_continue_the_trace(spans: Spans) -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        context, _, flags = request.headers["traceparent"].rpartition("-")
        assert int(flags, 16) & SAMPLED
        seen.append(context)
        return httpx.Response(204)

    async def run() -> None:
        client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        transport = Transport(Caller(FixedCredentials("http://placement", None), client))
        with tracing.span("outer"):
            await transport.call("GET", "/traits/CUSTOM_X")
        await transport.close()

    asyncio.run(run())
    sent = spans.one("GET traits")
    assert seen == [f"00-{sent.context.trace_id:032x}-{sent.context.span_id:016x}"]
    assert spans.chain("GET traits") == ["GET traits", "outer"]


def test_a_span_names_the_type_of_an_error_and_not_its_text(spans: Spans) -> None:
    with pytest.raises(ValueError, match="SECRET"), tracing.span("outer"):
        raise ValueError("SECRET")
    failed = spans.one("outer")
    assert failed.attributes["error.type"] == "ValueError" and not failed.status.is_ok
    assert "SECRET" not in failed.to_json()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    tracing.check(TracingOptions(enabled=True, endpoint="http://127.0.0.1:1/v1/traces"))
    monkeypatch.delitem(sys.modules, "roost.process.tracing.opentelemetry")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    tracing.check(TracingOptions())
    with pytest.raises(OperatorError, match=r"install roost\[tracing\]"):
        tracing.check(TracingOptions(enabled=True))


def test_spans_reach_a_collector_by_otlp(tmp_path: Path) -> None:
    """A collector of the test gets what a process sends, by the options or by OpenTelemetry's variables."""
    code = (
        "import http.server, threading, sys, os\n"
        "from roost.process import tracing\n"
        "got = []\n"
        "class Collector(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        got.append((self.path, self.rfile.read(int(self.headers['content-length']))))\n"
        "        self.send_response(200); self.send_header('content-length', '0'); self.end_headers()\n"
        "    def log_message(self, *_): pass\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Collector)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "url = f'http://127.0.0.1:{server.server_port}'\n"
        "endpoint = f'{url}/v1/traces' if sys.argv[1] == 'option' else None\n"
        "if endpoint is None: os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] = url\n"
        "os.environ['OTEL_EXPORTER_OTLP_COMPRESSION'] = 'none'\n"
        "tracing.start(tracing.TracingOptions(True, endpoint, 1.0, 'my-roost'))\n"
        "with tracing.span('some work'): pass\n"
        "tracing.stop()\n"
        "[(path, body)] = got\n"
        "assert path == '/v1/traces' and b'some work' in body and b'my-roost' in body\n"
    )
    for how in ("option", "variable"):
        done = subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A collector of spans: its URL, and the bodies that it has got."""
    received: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", received
        server.shutdown()


def test_workers_of_a_service_send_their_spans(tmp_path: Path) -> None:
    with collector() as (url, received):
        settings = (
            "tracing.enabled=true",
            f"tracing.endpoint={url}",
            "tracing.service_name=placement-of-test",
        )
        serving = Serving(f"sqlite:///{tmp_path}/roost.db", tmp_path / "log", settings=settings)
        try:
            assert serving.ask("PUT", "/resource_classes/CUSTOM_TRACED").status_code == 201
        finally:
            serving.terminate()
            serving.wait()
    sent = b"".join(received)
    for expected in (
        b"placement-of-test",
        b"PUT /resource_classes/{name}",
        b"ledger.commit",
        b"ledger.append",
    ):
        assert expected in sent


def test_a_ratio_of_zero_records_nothing_of_its_own_and_follows_the_client() -> None:
    from roost.process.tracing.opentelemetry import open_tracer

    # Without a collector the thread that sends would tell of it in the middle of some later test.
    with collector() as (url, received):
        tracer = open_tracer(TracingOptions(True, url, 0.0))
        with tracer.span("own", "server", None, {}):
            assert not int(tracer.headers()["traceparent"].rpartition("-")[2], 16) & SAMPLED
        with tracer.span("of client", "server", {"traceparent": PARENT}, {}):
            context, _, flags = tracer.headers()["traceparent"].rpartition("-")
            assert context.startswith(f"00-{TRACE}-") and int(flags, 16) & SAMPLED
        tracing.use(tracer)
        tracing.stop()
        assert not tracing.is_on()
    assert len(received) == 1


def test_while_tracing_is_off_nothing_of_it_is_imported() -> None:
    code = (
        "import sys\n"
        "import roost.cli.programs, roost.cli.up, roost.server.parts.placement\n"
        "from roost.process import tracing\n"
        "tracing.start(tracing.TracingOptions())\n"
        "with tracing.span('work'), tracing.shared_span('commit', [tracing.here()]): tracing.note({})\n"
        "assert not tracing.headers() and not tracing.is_on()\n"
        "sys.exit(' '.join(name for name in sys.modules if name.startswith('opentelemetry')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") or done.stderr == "\n", done.stderr
