"""A page in a real browser."""

import asyncio
import base64
import contextlib
import shutil
import subprocess

import pytest

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run --window-size=900,900 "
    "--virtual-time-budget=5000"
).split()


def _run(page, folder, *flags):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium; Debian's package has it")
    command = [browser, *_FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def dom(page, folder):
    """The page's HTML after its scripts have run."""
    return _run(page, folder, "--dump-dom").stdout


def screenshot(page, folder):
    """Path of a picture of the page, 900 x 900."""
    picture = folder / "page.png"
    _run(page, folder, f"--screenshot={picture}")
    return picture


@contextlib.asynccontextmanager
async def session(address, folder, size=(1000, 1100)):
    """A tab of the browser, driven by the DevTools protocol: `await tab("Page.reload")`."""
    aiohttp = pytest.importorskip("aiohttp")
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium; Debian's package has it")
    flags = [flag for flag in _FLAGS if "virtual-time" not in flag and "window-size" not in flag]
    command = [browser, *flags, f"--window-size={size[0]},{size[1]}", "--remote-debugging-port=0"]
    command += [f"--user-data-dir={folder / 'session'}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (line := process.stderr.readline()).startswith("DevTools listening"):
                assert process.poll() is None
            host = line.split("ws://")[1].split("/")[0]
            async with aiohttp.ClientSession() as http:
                async with http.get(f"http://{host}/json") as answer:
                    tabs = await answer.json()
                place = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"]
                async with http.ws_connect(place, max_msg_size=0) as socket:
                    tab = Tab(socket)
                    await tab("Page.enable")
                    await tab.go(address)
                    yield tab
        finally:
            process.kill()


class Tab:
    """A tab; calling it sends a command of the DevTools protocol."""

    def __init__(self, socket):
        self._socket, self._number = socket, 0

    async def __call__(self, method, **parameters):
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = await self._socket.receive_json(timeout=30)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    async def js(self, code):
        """Value of an expression."""
        found = await self("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, code):
        """Waits until an expression is true."""
        for _ in range(200):
            if await self.js(f"document.readyState === 'complete' && !!({code})"):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(code)

    async def go(self, address):
        await self("Page.navigate", url=address)
        await self.until(f"location.href.startsWith({address!r})")

    async def key(self, name, code, **more):
        """Presses a key."""
        for kind in ("rawKeyDown", "keyUp"):
            await self(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                windowsVirtualKeyCode=code,
                **more,
            )

    async def picture(self, path):
        found = await self("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(found["data"]))
