"""Who may connect to the demo: hosts that are known, and clients that send what they began."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

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
