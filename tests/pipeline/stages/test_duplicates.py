"""Pages that come twice: the first stays, the others are counted, and nothing else changes."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from runs import DEMO, assert_same_bytes, run

from nerbert import parts
from pipeline.stages.documents_report import DocumentsReport
from pipeline.stages.duplicates import _Seen, overlapping

TEXT = DEMO.read_text(encoding="utf-8")
HEAD, _, REST = TEXT.partition("<page>")
PAGES = ["<page>" + page for page in REST.rpartition("</mediawiki>")[0].split("<page>")]


def dump(folder, name, pages):
    (folder / name).write_text(HEAD + "".join(pages) + "</mediawiki>\n", encoding="utf-8")
    return folder / name


def extract(cwd, *dumps, flags=(), out="out"):
    code, _, err = run("--dump", *dumps, "--output", out, "--stage", "extract", *flags, cwd=cwd)
    assert code == 0, err
    return cwd / out / "documents"


def rows(documents):
    return [
        row
        for part in sorted(documents.glob("*.parquet"))
        for row in pq.read_table(part).to_pylist()
    ]


def counts(documents):
    return json.loads((documents / "stage.json").read_text())["counts"]


def test_the_same_file_under_two_names(tmp_path):
    one = dump(tmp_path, "a.xml", PAGES)
    other = dump(tmp_path, "b.xml", PAGES)
    once = extract(tmp_path, one, out="once")
    both = extract(tmp_path, one, other, out="both")
    assert rows(both) == rows(once)
    pages = counts(both)["pages"]
    kept = {kind: n for kind, n in counts(once)["pages"].items() if kind != "read"}
    documents = sum(n for kind, n in kept.items() if not kind.startswith("other"))
    assert pages["duplicate"] == documents
    assert pages["read"] == 2 * counts(once)["pages"]["read"]
    assert pages["read"] == sum(pages.values()) - pages["read"]
    assert counts(both)["content"] == counts(once)["content"]
    assert (both / "sentences.json").read_bytes() == (once / "sentences.json").read_bytes()


def test_some_pages_twice_between_others(tmp_path):
    """Files that overlap, and a page twice in one file: the first of each stays."""
    one = dump(tmp_path, "a.xml", PAGES[:60] + PAGES[10:12])
    other = dump(tmp_path, "b.xml", PAGES[50:])
    documents = extract(tmp_path, one, other)
    ids = [row["page_id"] for row in rows(documents)]
    assert len(ids) == len(set(ids))
    titles = [
        row["title"] for row in rows(extract(tmp_path, dump(tmp_path, "c.xml", PAGES), out="c"))
    ]
    assert [row["title"] for row in rows(documents)] == titles
    pages = counts(documents)["pages"]
    assert pages["read"] == len(PAGES) + 12
    assert pages["read"] == sum(pages.values()) - pages["read"]


def test_another_version_of_a_page(tmp_path):
    """The later file has other text under the same ids: the first file's stays."""
    newer = [
        re.sub(r"<text[^>]*>[^<]*", "<text>Newer text of the page.", page) for page in PAGES[:5]
    ]
    documents = extract(
        tmp_path, dump(tmp_path, "a.xml", PAGES[:20]), dump(tmp_path, "b.xml", newer)
    )
    assert not any("Newer text" in row["text"] for row in rows(documents))


def test_killed_between_old_and_new_part(tmp_path):
    one, other = dump(tmp_path, "a.xml", PAGES), dump(tmp_path, "b.xml", PAGES[40:])
    whole = extract(tmp_path, one, other, out="whole")
    again = extract(tmp_path, one, other, out="again")
    # As a kill leaves it: the report is empty, and the part is the old one.
    (again / "reports" / "part-00001.json").write_text("null\n")
    state = json.loads((again / "stage.json").read_text())
    state = {key: value for key, value in state.items() if key not in ("sizes", "counts")}
    (again / "stage.json").write_text(json.dumps({**state, "complete": False}))
    extract(tmp_path, one, other, out="again")
    assert_same_bytes(whole, again)


@pytest.mark.parametrize("flags", [["--workers", "2"], ["--runner", "DirectRunner"]])
def test_same_bytes_in_other_processes(tmp_path, flags):
    one, other = dump(tmp_path, "a.xml", PAGES), dump(tmp_path, "b.xml", PAGES)
    here = extract(tmp_path, one, other, flags=["--workers", "1"], out="here")
    there = extract(tmp_path, one, other, flags=flags, out="there")
    assert_same_bytes(here, there)


def report(unit, first, last):
    return DocumentsReport(unit, {}, {}, {}, {}, first, last)


def test_overlapping_is_never_too_little():
    random = np.random.default_rng(0)
    for _ in range(200):
        ranges = [sorted(random.integers(0, 40, 2).tolist()) for _ in range(8)]
        reports = [report(unit, *ends) for unit, ends in enumerate(ranges)]
        found = overlapping([*reports, report(8, None, None)])
        for unit, (first, last) in enumerate(ranges):
            others = [ends for other, ends in enumerate(ranges) if other != unit]
            assert (unit in found) == any(a <= last and first <= b for a, b in others)


def test_seen_against_a_set():
    random = np.random.default_rng(0)
    seen, known = _Seen(1 << 62), set()
    for _ in range(50):
        ids = np.unique(
            np.concatenate(
                [random.integers(0, 3000, 200), random.integers(1 << 33, (1 << 33) + 99, 9)]
            )
        )
        assert set(seen.add(ids).tolist()) == known & set(ids.tolist())
        known |= set(ids.tolist())


def test_no_report_for_an_emptied_one(tmp_path):
    path = str(tmp_path / "part-00000.parquet")
    parts.finish(path, report(0, 1, 2))
    assert parts.finished(path, DocumentsReport) == report(0, 1, 2)
    (tmp_path / "reports" / "part-00000.json").write_text("null")
    assert parts.finished(path, DocumentsReport) is None
