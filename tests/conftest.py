import gc
import logging
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as many processes as cores run tests; before torch

import hypothesis
import pytest

from tests.helpers.runs import run

# Times are not asserted: machines are noisy, and the first call of torch is slow.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("NERBERT_SHARED", ROOT.parent / "shared"))


UNIT = ("nerbert/text", "ontology", "pipeline/dump", "pipeline/examples", "pipeline/wikitext")
"""Folders of unit tests: those that run no command, and need no real data."""


def pytest_collection_modifyitems(items):
    """`pytest -m unit` is for daily work: under one minute."""
    folders = tuple(str(ROOT / "tests" / name) for name in UNIT)
    for item in items:
        needs_more = {"shared", "demo"} & {*item.fixturenames} or hasattr(item.module, "run")
        is_unit = str(item.path).startswith(folders) and not needs_more
        if is_unit or item.path.name == "test_digests.py":
            item.add_marker("unit")


def pytest_runtest_setup(item):
    """A training begins with a collection of garbage, which looks at all of torch and of pytest.

    What is there after many imports stays, so it is not looked at again.
    """
    if len(sys.modules) > item.session.__dict__.get("frozen_modules", 0) + 200:
        gc.collect()
        gc.freeze()
        item.session.frozen_modules = len(sys.modules)


@pytest.fixture(autouse=True)
def no_handlers_left():
    """Commands run in this process log to a standard error that pytest closes afterwards."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler and handler not in before:
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real dumps and DBpedia files; tests that need it skip, loudly, without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no real data: {SHARED / 'data'} is missing (NERBERT_SHARED names the folder)")
    return SHARED / "data"


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    code, out, err = run(cwd=folder)
    assert code == 0, err
    return folder / "demo-corpus", out, err


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MiB; skips where none can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
