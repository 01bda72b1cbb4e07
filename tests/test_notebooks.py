"""The notebooks of the docs run from top to bottom."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_runs(name, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(FOLDER / name, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [bool(cell.outputs) for cell in code]
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    assert len(code) == 10
    # What the docs show is there again, and no cell prints what they do not show.
    outputs = [[one for one in cell.outputs if one.get("name") != "stderr"] for cell in code]
    assert [bool(found) for found in outputs] == shown
    score = float(code[6].outputs[-1]["data"]["text/plain"])
    assert score > 0.8
    assert "Bohr" in str(code[7].outputs)
    assert "<mark" in str(code[8].outputs)
    assert "own-tagger" in [path.name for path in tmp_path.iterdir()]
