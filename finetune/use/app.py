"""Serves the web page that tags text, and its API; limits time and number of connections."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from finetune.tagger.tagger import Tagger
from finetune.use.api import PredictResponse, Refusal, schema
from finetune.use.api import predict as predicted
from finetune.use.options import DemoOptions
from finetune.use.page import Page, RefusedError
from nerbert.commands.process import quiet_libraries
from nerbert.errors import UserError

_LOGGER = logging.getLogger("nerbert")
_LOCAL = "localhost"
_SECONDS = 10.0
"""Time in which a form must have come."""
_CONNECTIONS = 200
"""Connections at a time; others are answered with status 503."""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src '{}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def application(page: Page, hosts: Sequence[str]) -> FastAPI:
    """The web application.

    Args:
        page: the page.
        hosts: host names that it answers to, besides addresses in numbers.
    """
    headers = {**_HEADERS, "Content-Security-Policy": _POLICY.format(page.script_hash)}

    async def form(request: Request) -> Response:
        return Response(page.render(), media_type="text/html", headers=headers)

    async def tag(request: Request) -> Response:
        try:
            fields = _fields(await _body(request, page.most_bytes))
            text, status = await run_in_threadpool(page.render, fields), 200
        except RefusedError as refused:
            text, status = page.render(error=str(refused)), refused.status
        return Response(text, status, _closing(headers, status), "text/html")

    async def api(request: Request) -> Response:
        text = page.render_api(str(request.base_url).rstrip("/"))
        return Response(text, media_type="text/html", headers=headers)

    async def predict(request: Request) -> Response:
        try:
            body = await _body(request, page.most_bytes)
            response = await run_in_threadpool(predicted, page, body)
            text, status = response.model_dump_json(), 200
        except RefusedError as refused:
            text, status = Refusal(error=str(refused)).model_dump_json(), refused.status
        return Response(text, status, _closing(_HEADERS, status), "application/json")

    app = FastAPI(
        title="nerbert demo",
        docs_url=None,
        redoc_url=None,
        routes=[Route("/", form), Route("/", tag, methods=["POST"]), Route("/api", api)],
    )
    app.post(
        "/api/predict",
        summary="Finds the entities in texts",
        response_model=PredictResponse,
        responses={status: {"model": Refusal} for status in (400, 408, 413, 422)},
        openapi_extra=schema(),
    )(predict)
    app.add_middleware(KnownHosts, names=hosts)
    return app


def _closing(headers: Mapping[str, str], status: int) -> dict[str, str]:
    """Headers of an answer. Of a request that was not read to its end, the rest must not be."""
    return dict(headers) if status == 200 else {**headers, "Connection": "close"}


async def _body(request: Request, most_bytes: int) -> bytes:
    """Reads the body of a request, at most `most_bytes`, and within `_SECONDS`."""
    body = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most_bytes:
                    raise RefusedError(413, "This text is too long.")
    except TimeoutError:
        raise RefusedError(408, "This text came too slowly.") from None
    except ClientDisconnect:
        raise RefusedError(400, "The reader has left.") from None  # nobody sees it
    return bytes(body)


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form."""
    try:
        values_of = parse_qs(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=8, errors="strict"
        )
    except ValueError as error:
        raise RefusedError(400, "This is not a form in UTF-8.") from error
    return {
        "text": "",
        **{name: values[0].replace("\r\n", "\n") for name, values in values_of.items()},
    }


def serve(options: DemoOptions) -> None:
    """Serves the page until Ctrl-C.

    Raises:
        UserError: a model is not a tagger, or the address or port cannot be used.
    """
    with _listener(options.host, options.port) as listener:
        page = Page(_loaded(options), options.max_characters)
        hosts = [_LOCAL, options.host, *options.allow_host]
        name = f"[{options.host}]" if ":" in options.host else options.host
        config = uvicorn.Config(
            application(page, hosts),
            log_level="warning",
            access_log=False,
            http=TimedProtocol,
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=5,
        )
        server = _Server(config, f"http://{name}:{listener.getsockname()[1]}")
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that logs its address as soon as it answers, and can be stopped."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to listen. uvicorn has installed its handler of Ctrl-C before."""
        await super().startup(sockets)
        _LOGGER.info(self._address)


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise UserError(f"--host {host} --port {port}: {error}; give another --port") from error


def _loaded(options: DemoOptions) -> dict[str, Tagger]:
    quiet_libraries()
    return {
        name: Tagger.load(model, device=options.device, half=options.half, backend=options.backend)
        for name, model in shown_names(options.models).items()
    }


def shown_names(models: Sequence[str]) -> dict[str, str]:
    """Name on the page -> model. Folders are shown by the last part of their path, if unique."""
    names = [Path(model).name if Path(model).is_dir() else model for model in models]
    unique = len(set(names)) == len(set(models))
    return dict(zip(names if unique else models, models, strict=True))


_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+))(?::\d+)?")
HEAD_S = 10.0
"""Time in which the head of a request must have come, seconds."""


class KnownHosts:
    """Refuses requests to names that are not known, as a protection against DNS rebinding.

    Such an attack needs a name: the page of a foreign site sends its own. So addresses in numbers
    are accepted.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        """Takes the application, and the names that it answers to."""
        self._app, self._names = app, {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] == "http":
            host = _without_port(Headers(scope=scope).get("host", "")).lower()
            if host not in self._names and not _is_address(host):
                answer = PlainTextResponse("Unknown host; see --allow-host.\n", 400)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _without_port(host: str) -> str:
    """The name or address in the header Host; empty if it is neither."""
    match = _HOST.fullmatch(host)
    return match[1] or match[2] if match else ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes connections that do not send the head of a request in time.

    uvicorn waits for it forever, and the connections that it accepts at a time are limited.
    """

    _timer: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_busy():
            self._stop_timer()
        elif self._timer is None:  # a part of the next head
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _is_busy(self) -> bool:
        """Whether a request has come whose answer is not finished."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(HEAD_S, self._close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if not self._is_busy():
            self.transport.close()
