"""`nerbert fetch dump` against a local server laid out as dumps.wikimedia.org."""

import json

import pytest

from nerbert.commands.table import main

MULTI = "{wiki}-{date}-pages-articles-multistream"
WHOLE = "articlesmultistreamdump"
RECOMBINED = "articlesmultistreamdumprecombine"


def names(wiki, date, parts):
    start = MULTI.format(wiki=wiki, date=date)
    return [f"{start}{number}.xml-{pages}.bz2" for number, pages in parts]


PARTS = [
    (1, "p1p41242"),
    (2, "p41243p151573"),
    (3, "p151574p311329"),
    (10, "p4p5"),
    (4, "p9p10"),
    (4, "p7p8"),
]


@pytest.fixture
def wikis(mirror):
    """A small wiki with one file, and a large one with parts; the newest date is not finished."""
    for date, done in (("20250101", True), ("20250201", True), ("20250301", False)):
        small = MULTI.format(wiki="ukwiki", date=date)
        jobs = {
            WHOLE: {f"{small}.xml.bz2": date.encode() * 9, f"{small}-index.txt.bz2": b"index"},
            "articlesdump": {f"ukwiki-{date}-pages-articles.xml.bz2": b"not this"},
            "pagepropstable": {f"ukwiki-{date}-page_props.sql.gz": b"props"},
            "langlinkstable": {f"ukwiki-{date}-langlinks.sql.gz": b"links"},
        }
        mirror.add_dump("ukwiki", date, jobs, done=done)
    parts = {name: name.encode() for name in names("enwiki", "20250201", PARTS)}
    index = {name.replace("stream", "stream-index").replace(".xml", ".txt"): b"i" for name in parts}
    large = MULTI.format(wiki="enwiki", date="20250201")
    mirror.add_dump(
        "enwiki", "20250201", {WHOLE: {**parts, **index}, RECOMBINED: {f"{large}.xml.bz2": b"all"}}
    )
    return mirror


def fetch(mirror, capsys, folder, *flags):
    code = main(["fetch", "dump", "--mirror", mirror.url, "--output", str(folder), *flags])
    return code, *capsys.readouterr()


def test_latest_is_the_newest_finished(wikis, capsys, tmp_path):
    code, out, err = fetch(wikis, capsys, tmp_path, "--wiki", "ukwiki")
    name = MULTI.format(wiki="ukwiki", date="20250201") + ".xml.bz2"
    assert code == 0, err
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == [name]
    assert (tmp_path / name).read_bytes() == b"20250201" * 9
    assert "1 file, 72 bytes downloaded" in out
    assert f"{name}: 72 bytes, sha1 (1 of 1 files)" in err


def test_several_wikis_by_their_languages(wikis, capsys, tmp_path):
    flags = ("--wiki", "uk", "en", "ukwiki", "--dry-run")
    code, out, err = fetch(wikis, capsys, tmp_path, *flags)
    assert code == 0, err
    one, other = (fetch(wikis, capsys, tmp_path, "--wiki", w, "--dry-run")[1] for w in ("uk", "en"))
    files = [line for line in (one + other).splitlines() if "multistream" in line]
    assert [line for line in out.splitlines() if "multistream" in line] == files
    assert len(files) > 3


def test_tables(wikis, capsys, tmp_path):
    code, _, err = fetch(
        wikis, capsys, tmp_path, "--wiki", "ukwiki", "--date", "20250101", "--tables"
    )
    assert code == 0, err
    assert {path.name.partition("20250101-")[2] for path in tmp_path.glob("[!.]*")} == {
        "pages-articles-multistream.xml.bz2",
        "page_props.sql.gz",
        "langlinks.sql.gz",
    }


def test_parts_in_their_order_and_never_the_whole_file(wikis, capsys, tmp_path):
    code, out, _ = fetch(wikis, capsys, tmp_path, "--wiki", "enwiki", "--dry-run")
    urls = [line.split()[-1].rpartition("/")[2] for line in out.splitlines()[:-1]]
    assert code == 0
    assert urls == names(
        "enwiki", "20250201", [*PARTS[:3], (4, "p7p8"), (4, "p9p10"), (10, "p4p5")]
    )


@pytest.mark.parametrize(("asked", "numbers"), [("2", [2]), ("1-3", [1, 2, 3]), ("4", [4, 4])])
def test_some_parts(wikis, capsys, tmp_path, asked, numbers):
    code, out, _ = fetch(wikis, capsys, tmp_path, "--wiki", "enwiki", "--parts", asked)
    assert code == 0
    assert len(list(tmp_path.glob("[!.]*"))) == len(numbers)
    assert [
        f"multistream{n}.xml" in line for n, line in zip(numbers, out.splitlines(), strict=False)
    ]


def test_dry_run_says_sizes_and_downloads_nothing(wikis, capsys, tmp_path):
    _, out, _ = fetch(wikis, capsys, tmp_path / "new", "--wiki", "ukwiki", "--tables", "--dry-run")
    assert out.splitlines()[0].split()[0] == "72"
    assert "82 bytes in 3 files; nothing was downloaded" in out
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("digests", [("md5",), ()])
def test_other_checksums(mirror, capsys, tmp_path, digests):
    """Without digests in the status, the file of SHA-1 sums is read."""
    name = MULTI.format(wiki="xwiki", date="20250101") + ".xml.bz2"
    mirror.add_dump("xwiki", "20250101", {WHOLE: {name: b"abc"}}, digests)
    sums = "/xwiki/20250101/xwiki-20250101-sha1sums.txt"
    if not digests:
        mirror.files[sums] = f"a9993e364706816aba3e25717850c26c9cd0d89d  {name}\n".encode()
    code, _, err = fetch(mirror, capsys, tmp_path, "--wiki", "xwiki")
    assert code == 0, err
    assert f"3 bytes, {digests[0] if digests else 'sha1'} " in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--wiki", "xxwiki"], "/xxwiki/: no such file on the server; check name and date"),
        (["--wiki", "ukwiki", "--date", "20240101"], "dumpstatus.json: no such file on the server"),
        (["--wiki", "ukwiki", "--date", "20250301"], "the articles are not finished"),
        (["--wiki", "ukwiki", "--parts", "1"], "--parts 1: ukwiki has no parts"),
        (["--wiki", "enwiki", "--parts", "11-12"], "no such parts; there are 1 to 10"),
        (["--wiki", "enwiki", "--tables"], "no finished dump there"),
        (
            ["--wiki", "ukwiki", "--date", "yesterday"],
            "--date yesterday: write YYYYMMDD, or latest",
        ),
        (["--wiki", "../etc"], "--wiki ../etc: write a language, or a database such as ukwiki"),
        (["--wiki", "enwiki", "--parts", "a"], "--parts a: write a number"),
        ([], "--wiki"),
    ],
)
def test_errors_are_one_line(wikis, capsys, tmp_path, flags, message):
    code, out, err = fetch(wikis, capsys, tmp_path, *flags)
    assert code in (1, 2)
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"jobs": 3}', json.dumps({}).encode()])
def test_a_status_that_is_none(wikis, capsys, tmp_path, content):
    wikis.files["/ukwiki/20250201/dumpstatus.json"] = content
    code, _, err = fetch(wikis, capsys, tmp_path, "--wiki", "ukwiki", "--date", "20250201")
    assert code == 1
    assert "dumpstatus.json: not the status of a dump; try another --mirror" in err
