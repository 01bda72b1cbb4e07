r"""A web page: text in, coloured entities with types and scores out.

    python -m finetune.demo --model MODEL
    python -m finetune.demo --models MODEL OTHER --port 8080

Bound to this machine unless --host says otherwise. Texts are neither written nor logged.
"""

from __future__ import annotations

import argparse
import logging
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from finetune import html
from pipeline.errors import UserError
from pretrain import commandline

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

    from finetune.tagger import Tagger

_LOGGER = logging.getLogger("nerbert")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BYTES_PER_CHARACTER = 12  # four bytes of UTF-8, each as %XX
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                               "frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}  # fmt: skip

FLAGS: dict[str, dict[str, Any]] = {
    "--models": {"nargs": "+", "required": True, "metavar": "DIR", "also": "--model",
                 "help": "fine-tuned or pre-trained taggers to choose from"},
    "--host": {"default": "127.0.0.1", "metavar": "ADDRESS", "help": "default: 127.0.0.1"},
    "--port": {"type": int, "default": 8000, "metavar": "N", "help": "default: 8000"},
    "--max-characters": {"type": int, "default": 10_000, "metavar": "N",
                         "help": "longest text that is taken (default: 10000)"},
}  # fmt: skip


class _RefusedError(Exception):
    """What the page says instead of a result, with its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Page:
    """Makes the page."""

    def __init__(self, taggers: Mapping[str, Tagger], longest: int) -> None:
        """Takes taggers by name, at least one, and the longest text in characters."""
        from jinja2 import Environment

        source = (files("finetune") / "templates" / "demo.html").read_text(encoding="utf-8")
        self._template = Environment(autoescape=True).from_string(source)
        self._taggers = taggers
        self._longest = longest
        self._lock = Lock()

    @property
    def most_bytes(self) -> int:
        """Of a request's body."""
        return _BYTES_PER_CHARACTER * self._longest + 4096

    def render(self, fields: Mapping[str, str] | None = None, error: str = "") -> str:
        """The page, with a result where there is a text.

        Args:
            fields: of the form: `text` and `model`.
            error: that is shown instead of a result.

        Raises:
            _RefusedError: the text is empty or too long, or there is no such model.
        """
        from markupsafe import Markup

        fields = fields or {}
        model = fields.get("model") or next(iter(self._taggers))
        values: dict[str, Any] = {"text": fields.get("text", ""), "marked": None, "entities": []}
        if fields and not error:
            entities, values["milliseconds"] = self._tagged(values["text"], model)
            marked = Markup(html.marked(values["text"], entities))  # html.marked escapes the text
            values |= {"entities": entities, "marked": marked}
        return self._template.render(style=html.STYLE, models=list(self._taggers), model=model,
                                     longest=self._longest, error=error, **values)  # fmt: skip

    def _tagged(self, text: str, model: str) -> tuple[list[Any], float]:
        if model not in self._taggers:
            raise _RefusedError(400, "There is no such model.")
        if not text.strip():
            raise _RefusedError(400, "There is no text.")
        if len(text) > self._longest:
            raise _RefusedError(
                413, f"{len(text):,} characters; {self._longest:,} or fewer are taken."
            )
        start = time.perf_counter()
        with self._lock:
            (entities,) = self._taggers[model].predict([text])
        return entities, 1000 * (time.perf_counter() - start)


def application(page: Page, hosts: Sequence[str]) -> FastAPI:
    """The web application.

    Args:
        page: that it serves.
        hosts: names under which it answers, against pages elsewhere that rebind a name of theirs.
    """
    from fastapi import FastAPI, Response
    from fastapi.concurrency import run_in_threadpool
    from fastapi.middleware.trustedhost import TrustedHostMiddleware
    from starlette.routing import Route

    async def form(request: Request) -> Response:
        return Response(page.render(), media_type="text/html", headers=_HEADERS)

    async def tag(request: Request) -> Response:
        try:
            fields = await _fields(request, page.most_bytes)
            text, status = await run_in_threadpool(page.render, fields), 200
        except _RefusedError as refused:
            text, status = page.render(error=str(refused)), refused.status
        return Response(text, status, _HEADERS, "text/html")

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None,
                  routes=[Route("/", form), Route("/", tag, methods=["POST"])])  # fmt: skip
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    return app


async def _fields(request: Request, most_bytes: int) -> dict[str, str]:
    """Fields of a form; no more than `most_bytes` are read."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise _RefusedError(413, "This text is too long.")
    try:
        found = parse_qs(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=8, errors="strict"
        )
    except ValueError as error:
        raise _RefusedError(400, "This is no form in UTF-8.") from error
    return {"text": "", **{name: values[0].replace("\r\n", "\n") for name, values in found.items()}}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.demo", __doc__, FLAGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    return commandline.run(lambda: _serve(options))


def _serve(options: argparse.Namespace) -> None:
    try:
        import uvicorn
    except ImportError as error:
        raise UserError("the demo needs more: pip install 'nerbert[demo]'") from error
    with _listener(options.host, options.port) as listener:
        page = Page(_loaded(options.models), options.max_characters)
        hosts = [*_LOOPBACK, "[::1]"] if options.host in _LOOPBACK else ["*"]
        server = uvicorn.Server(uvicorn.Config(
            application(page, hosts), log_level="warning", access_log=False
        ))  # fmt: skip
        name = f"[{options.host}]" if ":" in options.host else options.host
        _LOGGER.info("http://%s:%d", name, listener.getsockname()[1])
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise UserError(f"--host {host} --port {port}: {error}; give another --port") from error


def _loaded(models: Sequence[str]) -> dict[str, Tagger]:
    from finetune.tagger import Tagger
    from pretrain.data import quiet_libraries

    quiet_libraries()
    return {name: Tagger.load(model) for name, model in shown_names(models).items()}


def shown_names(models: Sequence[str]) -> dict[str, str]:
    """Name on the page -> model: the last part of a folder's path, where no two are the same."""
    names = [Path(model).name if Path(model).is_dir() else model for model in models]
    unique = len(set(names)) == len(set(models))
    return dict(zip(names if unique else models, models, strict=True))


if __name__ == "__main__":
    sys.exit(main())
