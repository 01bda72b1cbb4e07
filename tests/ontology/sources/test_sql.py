"""MediaWiki's tables against a plain parser of SQL values, in blocks of any size."""

import gzip
import random
import re
from collections import Counter

import numpy as np
import pytest

from nerbert.storage.places import Place
from ontology.sources import sql
from ontology.sources.sql import check_table, read_langlinks, read_page_props
from ontology.titles import normal_title
from tests.helpers.tables import write_table

NASTY = [
    'O\'Brien, "Conan"',
    "a),(305,'wikibase_item','Q9')",
    "back\\",
    "\\'",
    "(1,",
    "foo(1,",
    "'),(7,'en','X",
    "двічі",
    "",
    ",'en','",
    "),",
    "x'),\n(5",
]


def parsed(path):
    """The rows of a dump, character by character."""
    text = path.read_text(encoding="utf-8")
    value = re.compile(r"NULL|-?[\d.]+|'((?:[^'\\]|\\.)*)'", re.DOTALL)
    for statement in re.finditer(r"^INSERT INTO `\w+` VALUES ", text, re.MULTILINE):
        place = statement.end()
        while text[place] == "(":
            row, place = [], place + 1
            while True:
                match = value.match(text, place)
                row.append(match[0] if match[1] is None else re.sub(r"\\(.)", r"\1", match[1]))
                place = match.end() + 1
                if text[match.end()] == ")":
                    break
            yield row
            if text[place] == ";":
                break
            place = re.compile(r",\s*").match(text, place).end()


def page_props(path):
    return [
        pair
        for ids, qids in read_page_props(Place(path))
        for pair in zip(ids.tolist(), qids.tolist(), strict=True)
    ]


def langlinks(path, language="en"):
    return [
        pair
        for ids, titles in read_langlinks(Place(path), language=language)
        for pair in zip(ids.tolist(), titles, strict=True)
    ]


@pytest.fixture(params=[97, 1000, 1 << 22])
def blocks(request, monkeypatch):
    monkeypatch.setattr(sql, "_BLOCK", request.param)
    monkeypatch.setattr(sql, "_LONGEST_ROW", 4096)


@pytest.mark.parametrize(("in_a_line", "between"), [(1, ","), (7, ","), (1000, ",\n")])
def test_page_props(tmp_path, blocks, in_a_line, between):
    draw = random.Random(0)
    rows = []
    for page in range(1, 400):
        for name in ("defaultsort", "displaytitle", "wikibase-shortdesc"):
            if draw.random() < 0.5:
                rows.append((page, name, draw.choice(NASTY), None))
        if draw.random() < 0.7:
            rows.append((page, "wikibase_item", f"Q{draw.randrange(1, 130_000_000)}", None))
    path = write_table(tmp_path / "page_props.sql", "page_props", rows, in_a_line, between)
    expected = [(int(row[0]), int(row[2][1:])) for row in parsed(path) if row[1] == "wikibase_item"]
    assert expected == [(row[0], int(row[2][1:])) for row in rows if row[1] == "wikibase_item"]
    assert page_props(path) == expected


@pytest.mark.parametrize(("in_a_line", "between"), [(1, ","), (7, ","), (1000, ",\n")])
def test_langlinks(tmp_path, blocks, in_a_line, between):
    draw = random.Random(0)
    titles = [text for text in NASTY if "#" not in text and text.strip()]
    rows = []
    for page in range(1, 400):
        for language in ("de", "en", "eng", "zh-min-nan"):
            if draw.random() < 0.6:
                rows.append((page, language, f"{draw.choice(titles)} {page}"))
    path = write_table(tmp_path / "langlinks.sql", "langlinks", rows, in_a_line, between)
    expected = [(int(row[0]), normal_title(row[2])) for row in parsed(path) if row[1] == "en"]
    assert len(expected) > 200
    assert langlinks(path) == expected
    assert langlinks(path, "zh-min-nan")[:1] != expected[:1]


def test_rows_that_say_nothing_between_others(tmp_path):
    props = [
        (1, "wikibase_item", "Q1", None),
        (2, "wikibase_item", "L5", None),
        (3, "wikibase_item", "", None),
        (4, "wikibase_item", "Q99999999999", None),
        (5, "wikibase_item", "Q5", None),
    ]
    assert page_props(write_table(tmp_path / "a.sql.gz", "page_props", props)) == [(1, 1), (5, 5)]
    links = [(1, "en", "A"), (2, "en", "B#Section"), (3, "en", ""), (4, "en", "c_d")]
    assert langlinks(write_table(tmp_path / "b.sql.gz", "langlinks", links)) == [
        (1, "A"),
        (4, "C d"),
    ]


def test_truncated_and_other_files(tmp_path):
    rows = [(page, "wikibase_item", f"Q{page}", None) for page in range(1, 20_000)]
    path = write_table(tmp_path / "a.sql.gz", "page_props", rows)
    check_table(Place(path), "page_props")
    with pytest.raises(ValueError, match="no SQL dump of the table langlinks"):
        check_table(Place(path), "langlinks")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(EOFError):
        page_props(path)
    other = tmp_path / "b.sql"
    other.write_text("INSERT INTO `page_props` VALUES ('x','wikibase_item','Q1');")
    with pytest.raises(ValueError, match="a row does not begin with the id of a page"):
        page_props(other)


def test_ids_are_64_bits_wide(tmp_path):
    path = write_table(tmp_path / "a.sql", "page_props", [(1 << 40, "wikibase_item", "Q7", None)])
    (ids, qids), *_ = read_page_props(Place(path))
    assert (ids.dtype, ids.tolist(), qids.tolist()) == (np.int64, [1 << 40], [7])


ROWS = [(page, "wikibase_item", f"Q{page}", None) for page in range(1, 3000)]
SWAPPED = "  `pp_page` int(8) unsigned NOT NULL,\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[: text.index("(1,")], "no row with a Wikidata id; is it complete?"),
        (lambda text: text[: text.index("INSERT")], "no row with a Wikidata id"),
        (lambda text: text.replace("wikibase_item", "other"), "no row with a Wikidata id"),
        (
            lambda text: text.replace(SWAPPED, "").replace("  PRIMARY", SWAPPED + "  PRIMARY"),
            "its columns are pp_propname, pp_value, pp_sortkey, pp_page, not pp_page, pp_propname",
        ),
        (lambda text: text, "a table of ukwiki, and the dump is of enwiki"),
        (lambda text: text.replace("(1,", f"({2**63},"), "a row does not begin with the id"),
    ],
)
def test_tables_that_would_mislead(tmp_path, change, reason):
    path = write_table(tmp_path / "a.sql", "page_props", ROWS)
    check_table(Place(path), "page_props", "ukwiki")
    path.write_text(change(path.read_text()))
    with pytest.raises(ValueError, match=reason):
        check_table(Place(path), "page_props", "enwiki" if "enwiki" in reason else "ukwiki")


@pytest.mark.parametrize(("cut", "rows"), [(0, 2999), (-40, 2999), (-200, 2990)])
def test_a_table_without_its_last_line_is_truncated(tmp_path, blocks, cut, rows):
    """As members of gzip: a file cut between them can be read to its end."""
    path = write_table(tmp_path / "a.sql", "page_props", ROWS)
    content = path.read_bytes()
    middle = len(content) // 2
    if cut:
        content = content[:cut]
    packed = tmp_path / "a.sql.gz"
    packed.write_bytes(gzip.compress(content[:middle]) + gzip.compress(content[middle:]))
    counts = Counter()
    found = sum(len(ids) for ids, _ in read_page_props(Place(packed), counts))
    assert counts["rows"] == found
    assert abs(found - rows) < 9
    assert counts["truncated"] == (cut != 0)
    packed.write_bytes(gzip.compress(content[:middle]))
    assert sum(len(ids) for ids, _ in read_page_props(Place(packed), counts)) < found
    assert counts["truncated"] == (cut != 0) + 1
