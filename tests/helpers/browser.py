"""A page in a real browser."""

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
