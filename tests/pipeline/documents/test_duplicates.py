"""Pages that come twice: the newest revision stays, the others are counted, and nothing else changes."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nerbert.storage import parts
from nerbert.storage.places import Place
from pipeline.documents.duplicates import overlapping, superseded
from pipeline.documents.report import DocumentsReport
from tests.helpers.runs import DEMO, assert_same_bytes, run

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


def revised(pages, text, number):
    """The same pages with another text, and a revision id of so many more."""
    pages = [re.sub(r"<text[^>]*>[^<]*", f"<text>{text}", page) for page in pages]
    return [
        re.sub(r"(<revision>\s*<id>)(\d+)", lambda m: f"{m[1]}{int(m[2]) + number}", page)
        for page in pages
    ]


@pytest.mark.parametrize("newer", ["a.xml", "b.xml"])
@pytest.mark.parametrize("flags", [["--workers", "1"], ["--workers", "2"]])
def test_the_newest_revision_stays_whatever_the_order_of_files(tmp_path, newer, flags):
    """Bad records between good ones: only some pages are given twice."""
    older = "b.xml" if newer == "a.xml" else "a.xml"
    dump(tmp_path, older, PAGES[:20])
    dump(tmp_path, newer, PAGES[20:] + revised(PAGES[:5], "Newer text.", 7))
    documents = extract(tmp_path, tmp_path / "a.xml", tmp_path / "b.xml", flags=flags)
    known = {row["page_id"]: row for row in rows(documents)}
    once = {row["page_id"]: row for row in rows(extract(tmp_path, DEMO, out="once"))}
    assert known.keys() == once.keys()
    assert len(rows(documents)) == len(known)
    again = {n for n, row in known.items() if row["revision_id"] != once[n]["revision_id"]}
    assert len(again) == 5
    assert all("Newer" in known[n]["text"] for n in again if once[n]["text"])
    assert counts(documents)["duplicate_files"] == {older: 5}
    others = {n: row["text"] for n, row in known.items() if n not in again}
    assert others == {n: once[n]["text"] for n in others}


@pytest.mark.parametrize("order", [(0, 7, 3), (7, 3, 0), (3, 0, 7)])
def test_several_revisions_in_one_file(tmp_path, order):
    pages = [page for number in order for page in revised(PAGES[3:6], f"Text of {number}.", number)]
    documents = extract(tmp_path, dump(tmp_path, "a.xml", PAGES[:3] + pages + PAGES[6:]))
    assert [row["text"] for row in rows(documents) if "Text of" in row["text"]] == (
        ["Text of 7."] * sum("Text of" in row["text"] for row in rows(documents))
    )
    assert len(rows(documents)) == len(rows(extract(tmp_path, DEMO, out="once")))
    pages = counts(documents)["pages"]
    assert pages["duplicate"] == 6
    assert pages["read"] == sum(pages.values()) - pages["read"]


@pytest.mark.slow
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


def report(unit, first, last, superseded=0):
    return DocumentsReport(unit, {}, {}, {}, {}, first, last, superseded)


def test_overlapping_is_never_too_little():
    random = np.random.default_rng(0)
    for _ in range(200):
        ranges = [sorted(random.integers(0, 40, 2).tolist()) for _ in range(8)]
        reports = [report(unit, *ends) for unit, ends in enumerate(ranges)]
        found = overlapping([*reports, report(8, None, None), report(9, 99, 99, 1)])
        assert 9 in found
        for unit, (first, last) in enumerate(ranges):
            others = [ends for other, ends in enumerate(ranges) if other != unit]
            assert (unit in found) == any(a <= last and first <= b for a, b in others)


def test_superseded_against_all_pairs(tmp_path):
    """Brute force: of each page the newest revision stays, of equal ones that of the first unit."""
    random = np.random.default_rng(0)
    for case in range(60):
        paths, reports, every = {}, [], []
        for unit in range(5):
            low, high = sorted(random.integers(1, 60, 2).tolist())
            pairs = {tuple(random.integers((low, 0), (high + 1, 3)).tolist()) for _ in range(12)}
            paths[unit] = Place(tmp_path / f"{case}-{unit}.parquet")
            columns = zip(*sorted(pairs, key=lambda pair: random.random()), strict=True)
            names = ("page_id", "revision_id")
            pq.write_table(pa.table(dict(zip(names, columns, strict=True))), paths[unit])
            pages = [page for page, _ in pairs]
            reports.append(report(unit, min(pages), max(pages), 1))
            every += [(page, -revision, unit) for page, revision in pairs]
        best = {page: min(row for row in every if row[0] == page) for page, _, _ in every}
        expected = {}
        for page, revision, unit in every:
            if best[page] != (page, revision, unit):
                expected.setdefault(unit, set()).add((page, -revision))
        assert superseded(paths, reports) == expected


def test_no_report_for_an_emptied_one(tmp_path):
    path = Place(tmp_path / "part-00000.parquet")
    parts.finish(path, report(0, 1, 2))
    assert parts.finished(path, DocumentsReport) == report(0, 1, 2)
    (tmp_path / "reports" / "part-00000.json").write_text("null")
    assert parts.finished(path, DocumentsReport) is None
