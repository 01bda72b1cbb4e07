"""The web page that tags text: it shows coloured entities with types and scores."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from jinja2 import Environment
from markupsafe import Markup
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from finetune.options import DemoOptions
from finetune.serving import html
from finetune.tagger import Tagger
from nerbert.errors import UserError
from pretrain.logs import quiet_libraries

_LOGGER = logging.getLogger("nerbert")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SECONDS = 10.0
"""Time in which a form must have come."""
_CONNECTIONS = 200
"""Connections at a time; others are answered with status 503."""
_BYTES_PER_CHARACTER = 12  # four bytes of UTF-8, each as %XX
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class _RefusedError(Exception):
    """A request that is refused; the page shows the message. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Page:
    """Renders the page."""

    def __init__(self, taggers: Mapping[str, Tagger], longest: int) -> None:
        """Takes taggers by name, at least one, and the largest length of a text in characters."""
        source = (files("finetune.serving") / "templates" / "demo.html").read_text(encoding="utf-8")
        self._template = Environment(autoescape=True).from_string(source)
        self._taggers = taggers
        self._longest = longest
        self._lock = Lock()

    @property
    def most_bytes(self) -> int:
        """Largest size of the body of a request, in bytes."""
        return _BYTES_PER_CHARACTER * self._longest + 4096

    def render(self, fields: Mapping[str, str] | None = None, error: str = "") -> str:
        """Renders the page, with a result if there is a text.

        Args:
            fields: fields of the form: `text` and `model`.
            error: message that is shown instead of a result.

        Raises:
            _RefusedError: the text is empty or too long, or there is no such model.
        """
        fields = fields or {}
        model = fields.get("model") or next(iter(self._taggers))
        values: dict[str, Any] = {"text": fields.get("text", ""), "marked": None, "entities": []}
        if fields and not error:
            entities, values["milliseconds"] = self._tagged(values["text"], model)
            marked = Markup(html.marked(values["text"], entities))  # html.marked escapes the text
            values |= {"entities": entities, "marked": marked}
        return self._template.render(
            style=html.STYLE,
            models=list(self._taggers),
            model=model,
            longest=self._longest,
            error=error,
            **values,
        )

    def _tagged(self, text: str, model: str) -> tuple[list[Any], float]:
        if model not in self._taggers:
            raise _RefusedError(400, "There is no such model.")
        if not text.strip():
            raise _RefusedError(400, "There is no text.")
        if len(text) > self._longest:
            raise _RefusedError(
                413, f"{len(text):,} characters; at most {self._longest:,} are accepted."
            )
        start = time.perf_counter()
        with self._lock:
            (entities,) = self._taggers[model].predict([text])
        return entities, 1000 * (time.perf_counter() - start)


def application(page: Page, hosts: Sequence[str]) -> FastAPI:
    """The web application.

    Args:
        page: the page.
        hosts: host names that it answers to, as a protection against DNS rebinding.
    """

    async def form(request: Request) -> Response:
        return Response(page.render(), media_type="text/html", headers=_HEADERS)

    async def tag(request: Request) -> Response:
        try:
            fields = await _fields(request, page.most_bytes)
            text, status = await run_in_threadpool(page.render, fields), 200
        except _RefusedError as refused:
            text, status = page.render(error=str(refused)), refused.status
        # Of a request that was not read to its end, the rest must not be read either.
        headers = _HEADERS if status == 200 else {**_HEADERS, "Connection": "close"}
        return Response(text, status, headers, "text/html")

    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        routes=[Route("/", form), Route("/", tag, methods=["POST"])],
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    return app


async def _fields(request: Request, most_bytes: int) -> dict[str, str]:
    """Reads the fields of a form, at most `most_bytes`, and within `_SECONDS`."""
    body = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most_bytes:
                    raise _RefusedError(413, "This text is too long.")
    except TimeoutError:
        raise _RefusedError(408, "This text came too slowly.") from None
    except ClientDisconnect:
        raise _RefusedError(400, "The reader has left.") from None  # nobody sees it
    try:
        found = parse_qs(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=8, errors="strict"
        )
    except ValueError as error:
        raise _RefusedError(400, "This is not a form in UTF-8.") from error
    return {"text": "", **{name: values[0].replace("\r\n", "\n") for name, values in found.items()}}


def serve(options: DemoOptions) -> None:
    """Serves the page until Ctrl-C.

    Raises:
        UserError: a model is not a tagger, or the address or port cannot be used.
    """
    with _listener(options.host, options.port) as listener:
        page = Page(_loaded(options), options.max_characters)
        hosts = [*_LOOPBACK, "[::1]"] if options.host in _LOOPBACK else ["*"]
        name = f"[{options.host}]" if ":" in options.host else options.host
        config = uvicorn.Config(
            application(page, hosts),
            log_level="warning",
            access_log=False,
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
