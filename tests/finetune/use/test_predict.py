"""`nerbert predict`: a line for each text, formats, pipes, scores that are large enough."""

import csv
import io
import json
import sys

import numpy as np
import pyarrow as pa
import pytest

from finetune.use.linking import Link, Linker
from finetune.use.predict import print_predictions
from ontology.dictionary import LEAST, Dictionary
from ontology.entity_table import EntityTable
from ontology.titles import title_keys
from tests.helpers.runs import parsed, run

TEXTS = "Ada Byron lived in Bern\n\n<Emmy> Noether & co lived in Ulm\n"


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    fitted.save(folder / "tagger")
    (folder / "texts.txt").write_text(TEXTS, encoding="utf-8")
    return folder


def predict(folder, *flags):
    code, out, err = run("--model", "tagger", *flags, cwd=folder, name="predict")
    assert code == 0, err
    return out


def test_a_line_for_each_line(saved, monkeypatch):
    out = predict(saved, "--input", "texts.txt")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert [row["text"] for row in rows] == TEXTS.splitlines()
    assert [[e["type"] for e in row["entities"]] for row in rows[:2]] == [["person", "city"], []]
    assert rows[2]["entities"]
    for row in rows:
        assert all(row["text"][e["start"] : e["end"]] == e["text"] for e in row["entities"])
    assert predict(saved, "--input", "texts.txt", "--batch-size", 1) == out
    monkeypatch.setattr("sys.stdin", io.StringIO(TEXTS))
    assert predict(saved) == out
    monkeypatch.setattr("sys.stdin", io.StringIO(TEXTS))
    assert predict(saved, "--input", "-") == out


def test_a_file(saved):
    said = predict(saved, "--input", "texts.txt", "--output", "out.jsonl")
    assert said == ""
    assert (saved / "out.jsonl").read_text() == predict(saved, "--input", "texts.txt")
    code, _, err = run("--model", "tagger", "x", "--output", "out.jsonl", cwd=saved, name="predict")
    assert (code, err) == (2, "--output out.jsonl: is there already; choose another name\n")
    assert (
        predict(saved, "--input", "texts.txt", "--output", "-") == (saved / "out.jsonl").read_text()
    )
    assert not (saved / "-").exists()


@pytest.mark.parametrize(("name", "separator"), [("csv", ","), ("tsv", "\t")])
def test_tables(saved, name, separator):
    out = predict(saved, "--format", name, "--", 'Ada "x", lived in Bern', "", "Ulm\tis old")
    rows = list(csv.DictReader(io.StringIO(out), delimiter=separator))
    jsonl = predict(saved, "--", 'Ada "x", lived in Bern', "", "Ulm\tis old").splitlines()
    entities = [{"id": row["id"], **e} for row in map(json.loads, jsonl) for e in row["entities"]]
    assert rows == [{key: str(value) for key, value in one.items()} for one in entities]
    assert {row["id"] for row in rows} == {"1", "3"}


def test_columns_and_pages(saved):
    assert predict(saved, "--format", "conll", "Ada Byron lived") == (
        "Ada\tB-person\nByron\tI-person\nlived\tO\n\n"
    )
    page = predict(saved, "--format", "html", "<Ada> Byron & co")
    assert page.startswith("<!doctype html>")
    assert "&lt;" in page
    assert "&amp;" in page


def test_text_on_a_terminal(saved, monkeypatch):
    text = "Ada Byron lived in Bern, not in Ulm."
    plain = predict(saved, "--format", "text", text)
    assert plain == "[Ada Byron person] lived in [Bern city], not in [Ulm city].\n"
    monkeypatch.delenv("NO_COLOR", raising=False)
    colored = on_terminal(saved, text, monkeypatch)
    assert "\x1b[30;41m Ada Byron \x1b[1mperson \x1b[0m" in colored
    assert colored.count("\x1b[30;42m") == 2
    monkeypatch.setenv("NO_COLOR", "1")
    assert on_terminal(saved, text, monkeypatch) == plain


def on_terminal(folder, text, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Terminal())
        print_predictions(*parsed("predict", "--model", folder / "tagger", text))
        return sys.stdout.getvalue()


def test_smallest_score(saved):
    (row,) = map(json.loads, predict(saved, "Ada Byron lived in Bern").splitlines())
    lowest = min(row["entities"], key=lambda entity: entity["score"])
    least = str(lowest["score"] + 0.0002)
    (kept,) = map(
        json.loads, predict(saved, "--min-score", least, "Ada Byron lived in Bern").splitlines()
    )
    assert kept["entities"] == [one for one in row["entities"] if one != lowest]
    columns = predict(saved, "--min-score", "1", "--format", "conll", "Ada Byron lived")
    assert columns == "Ada\tO\nByron\tO\nlived\tO\n\n"


def test_no_text(saved, monkeypatch):
    for typed in ("", "\n\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code, _, err = run("--model", "tagger", cwd=saved, name="predict")
        assert (code, err) == (2, "no text: give texts, --input FILE, or a pipe\n")


@pytest.mark.parametrize("text", ["Ada lived.", "Ada Byron lived in Bern for some years"])
def test_a_text_beside_a_file(saved, text):
    code, _, err = run(
        "-m", "tagger", "--input", "texts.txt", "--", text, cwd=saved, name="predict"
    )
    assert (code, err) == (2, "--input texts.txt: there are texts, too; give one or the other\n")


@pytest.mark.parametrize("text", ["Ada lived.", "Ada Byron lived in Bern for some years"])
def test_a_text_that_types_would_swallow(saved, text):
    code, _, err = run("--model", "tagger", "--types", "city", text, cwd=saved, name="predict")
    assert (code, err) == (2, f"--types: {text!r} looks like a text; write -- before it\n")


def test_pages_of_names(saved, demo):
    """Names lead to pages of a run, by its links or titles; without page_props there is no id."""
    text = "Ada Byron lived in Bern"
    flags = ["--link", demo[0], "--", text]
    (row,) = map(json.loads, predict(saved, *flags).splitlines())
    (plain,) = map(json.loads, predict(saved, "--", text).splitlines())
    pages = {e["text"]: (e.pop("page"), e.pop("wikidata")) for e in row["entities"]}
    assert row == plain
    assert pages == {"Ada Byron": (None, None), "Bern": ("Bern", None)}
    table = predict(saved, "--format", "csv", *flags)
    (_, bern) = csv.DictReader(io.StringIO(table))
    assert (bern["text"], bern["page"], bern["wikidata"]) == ("Bern", "Bern", "")
    for bad, told in (
        (["--link", "nowhere"], "--link nowhere: give an output folder of nerbert corpus"),
        (["--link", demo[0], "--format", "html"], "--link: --format html has no place for it"),
    ):
        code, _, err = run("--model", "tagger", *bad, "--", text, cwd=saved, name="predict")
        assert code == 2
        assert err.startswith(told)


def test_doubtful_names_lead_nowhere():
    table = EntityTable(
        ["City"], ["Place"], [], *np.unique(title_keys(["Bern", "Ulm", "Rom"]), return_index=True),
        np.zeros(3, np.int16), np.zeros(3, np.uint8), np.zeros(3, np.uint32),
        np.array([70, 0, 220], np.uint32),
    )  # fmt: skip
    keys = title_keys(["Ulm", "capital of Italy"])
    order = np.argsort(keys)
    rows = {
        "key": keys[order],
        "entity": np.array([-1, 2], np.int32)[order],  # the links of Ulm lead elsewhere
        "links": np.array([0, 9])[order],
        "target": [["", "Rom"][place] for place in order],
    }
    linker = Linker(table, Dictionary(pa.table(rows)))
    found = linker.links(["bern", "Ulm", "capital of Italy", "Nowhere", "Rom"])
    assert found == [Link("Bern", "Q70"), None, Link("Rom", "Q220"), None, Link("Rom", "Q220")]
    assert Linker(table, None).links(["Ulm"]) == [Link("Ulm", None)]
    # A name of too few links is one on some pages only.
    rare = pa.table(rows).replace_schema_metadata({LEAST: b"10"})
    assert Linker(table, Dictionary(rare)).links(["capital of Italy", "Ulm"]) == [None, None]
