"""Dump files by the names that Wikimedia gives them."""

import pytest

from nerbert.errors import UserError
from nerbert.storage.places import Place
from pipeline.dump.streams import find_dumps

PARTS = [
    "enwiki-20250201-pages-articles-multistream1.xml-p1p41242.bz2",
    "enwiki-20250201-pages-articles-multistream2.xml-p41243p151573.bz2",
    "enwiki-20250201-pages-articles-multistream11.xml-p5399367p6899366.bz2",
    "enwiki-20250201-pages-articles-multistream11.xml-p6899367p7054859.bz2",
]
INDEXES = [
    "enwiki-20250201-pages-articles-multistream-index1.txt-p1p41242.bz2",
    "enwiki-20250201-pages-articles-multistream-index.txt.bz2",
]
WHOLE = "enwiki-20250201-pages-articles-multistream.xml.bz2"
OLD_PARTS = [
    "dewiki-20160501-pages-articles1.xml-p000000001p000425449.bz2",
    "dewiki-20160501-pages-articles2.xml-p000425451p001877043.bz2",
]
OTHERS = [
    "enwiki-20250201-page_props.sql.gz",
    "enwiki-20250201-langlinks.sql.gz",
    "enwiki-20250201-sha1sums.txt",
    "dumpstatus.json",
    "enwiki-20250201-pages-articles-multistream1.xml-p1p41242.bz2.part",
]


def made(folder, names):
    for name in names:
        (folder / name).write_text("")
    return names


def names_of(*patterns):
    return [path.name for path in find_dumps(list(map(Place, patterns)))]


@pytest.mark.parametrize(
    "names",
    [
        PARTS,
        OLD_PARTS,
        [WHOLE],
        ["enwiki-20250201-pages-meta-current.xml.bz2"],
        [f"enwiki-20250201-pages-meta-current{n}.xml-p{n}1p{n}9.bz2" for n in (1, 2)],
        ["ltgwiki-latest-pages-articles.xml", "ukwiki-latest-pages-articles.xml.gz"],
        ["ar.xml.bz2", "export.xml"],
        ["frwiki-202301-22pages.xml.bz2"],
        ["viwiki-20230501-truncated-100k.xml.xz"],
    ],
)
def test_a_folder(tmp_path, names, caplog):
    caplog.set_level("INFO")
    made(tmp_path, [*names, *INDEXES, *OTHERS[:4]])
    assert names_of(tmp_path) == names
    assert "4 files that are no XML are left out, such as dumpstatus.json" in caplog.text


def test_once_and_in_the_order_of_their_numbers(tmp_path):
    made(tmp_path, ["wiki10.xml", "wiki2.xml", "wiki1-index.txt.bz2", "wiki1.xml"])
    found = names_of(tmp_path, tmp_path / "wiki*.xml", tmp_path / "wiki1.xml")
    assert found == ["wiki1.xml", "wiki2.xml", "wiki10.xml"]


def test_a_file_by_its_name_may_have_any(tmp_path):
    made(tmp_path, ["mydump.bz2", *INDEXES])
    assert names_of(tmp_path / "mydump.bz2") == ["mydump.bz2"]
    with pytest.raises(UserError, match="no such file"):
        names_of(tmp_path / INDEXES[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (WHOLE, PARTS[0]),
        ("enwiki-20250201-pages-articles.xml.bz2", PARTS[2]),
        ("enwiki-20250201-pages-articles.xml.bz2", WHOLE),
        ("enwiki-20250201-pages-meta-current.xml.bz2", WHOLE),
        ("enwiki-20250201-pages-articles.xml", "enwiki-20250201-pages-articles.xml.bz2"),
        (PARTS[0], PARTS[0].replace(".bz2", "")),
    ],
)
def test_the_same_pages_under_two_names_are_refused(tmp_path, one, other):
    made(tmp_path, [one, other, "dewiki-20250201-pages-articles.xml.bz2"])
    with pytest.raises(UserError, match=r"has the pages of .*, too; give one of the two") as told:
        find_dumps([Place(tmp_path / "*wiki*")])
    assert one in str(told.value)
    assert other in str(told.value)


def test_two_dates_are_two_dumps(tmp_path):
    names = made(tmp_path, [WHOLE.replace("0201", "0101"), WHOLE])
    assert names_of(tmp_path) == names


@pytest.mark.parametrize("pattern", ["none.xml", "none*", "empty"])
def test_nothing(tmp_path, pattern):
    (tmp_path / "empty").mkdir()
    made(tmp_path / "empty", OTHERS[:2])
    with pytest.raises(UserError, match=r"no such file; give a path, a glob or a directory"):
        find_dumps([Place(tmp_path / pattern)])
