import io
import logging
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nerbert import progress
from nerbert.commands.parser import exit_code
from nerbert.errors import RunError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_lines_without_a_terminal(clock, caplog):
    caplog.set_level(logging.INFO, "nerbert")
    with progress.progress_bar("extract", 4) as add:
        for pages in (10, 20, 0):
            clock[0] += 10
            add(pages)
    assert caplog.messages == [
        "extract: 2 of 4 parts in 20 s, 2 pages/s, 20 s left",
        "extract: 3 of 4 parts in 30 s, 1 pages/s",
    ]


def test_work_that_goes_on_counts_its_time_from_there(clock, caplog):
    caplog.set_level(logging.INFO, "nerbert")
    with progress.Progress("train", 1000, "step", done=600) as steps:
        clock[0] += 20
        steps.add(100, "loss 1.5")
        steps.log("above")
        clock[0] += 2
        steps.add()
    assert caplog.messages == [
        "train: 700 of 1,000 steps in 20 s, loss 1.5, 60 s left",
        "above",
        "train: 701 of 1,000 steps in 22 s, loss 1.5",
    ]


def test_a_bar_on_a_terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.progress_bar("extract", 2) as add:
        add(30)
        add(0)
    shown = screen.getvalue()
    assert "extract" in shown
    assert "2/2" in shown
    assert "pages/s" in shown


def test_an_error_ends_the_bars(monkeypatch):
    """Its line stands by itself, below the bar."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)

    def stops():
        with_bar = progress.tqdm(total=3, desc="train")
        with_bar.update()
        raise RunError("the loss is NaN")

    assert exit_code(stops) == 1
    assert screen.getvalue().splitlines()[-1] == "the loss is NaN"


def test_bars_are_for_notebooks_and_not_where_their_library_is_only_loaded(monkeypatch):
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    for found, shown in ((shell, True), (SimpleNamespace(config={}), False), (None, False)):
        ipython = SimpleNamespace(get_ipython=lambda found=found: found)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "ipykernel", ipython)
        assert progress.has_bars() == shown


def test_polled_counts_until_the_end(caplog):
    caplog.set_level(logging.INFO, "nerbert")
    found = [0]
    with progress.polled("corpus", 3, lambda: found[0], 0.01):
        for number in (1, 3):
            found[0] = number
            time.sleep(0.05)
    assert caplog.messages == ["corpus: 3 of 3 parts in 0 s"]


NOTEBOOK = """
from nerbert import build_corpus, load_corpus
report = build_corpus(output={output!r}, workers=2)
print(report)
corpus = load_corpus({output!r})
print(corpus.table("train").num_rows, len(corpus.labels.tags))
"""


@pytest.mark.slow
def test_in_a_notebook(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(NOTEBOOK.format(output=str(tmp_path / "corpus")))]
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(cwd=str(tmp_path))
    texts = "".join(entry.get("text", "") for entry in notebook.cells[0].outputs)
    assert "categories           14 and ENTITY" in texts
    assert "348 31" in texts
    assert Path(tmp_path, "corpus", "corpus", "labels.json").is_file()
    # The bars of tqdm.auto: widgets if ipywidgets is installed, text otherwise.
    shown = str(notebook.cells[0].outputs)
    assert "extract" in shown
    assert "1/1" in shown or "widget" in shown
