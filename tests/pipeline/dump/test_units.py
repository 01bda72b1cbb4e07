import bz2
import gzip
import lzma
import random
from itertools import pairwise

import pytest

from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.sentences import SentenceModel
from pipeline.documents.report import lost_pages
from pipeline.documents.unit_documents import write_documents
from pipeline.dump import streams, units
from pipeline.dump.pages import MAX_PAGE_BYTES, BadPage, Page, split_pages
from pipeline.dump.site import ENGLISH, Site
from pipeline.dump.units import Damage
from tests.helpers.runs import run

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
 <siteinfo><dbname>dewiki</dbname><case>first-letter</case><namespaces>
 <namespace key="0" case="first-letter" /><namespace key="6">Datei</namespace>
 <namespace key="10">Vorlage</namespace><namespace key="14">Kategorie</namespace></namespaces></siteinfo>
"""


def xml_page(number, text="Text", title=None, ns="<ns>0</ns>"):
    return (
        f"<page><title>{title or f'Seite {number}'}</title>{ns}<id>{number}</id><revision>"
        f"<id>{number + 1000}</id><timestamp>2020-01-01T00:00:00Z</timestamp>"
        f"<text>{text}</text></revision></page>\n"
    )


def pages_of(path, size=None, monkeypatch=None):
    if size:
        for bounds in (units.MIN_UNIT, units.MAX_UNIT):
            for kind in bounds:
                monkeypatch.setitem(bounds, kind, size)
    return [p for unit in units.cut([units.inspect(Place(path))]) for p in units.read_unit(unit)]


def titles(found):
    return [page.title for page in found if isinstance(page, Page)]


BODY = [xml_page(i, f"Text {i} " * (1 + i % 7)) for i in range(60)]
WHOLE = (HEAD + "".join(BODY) + "</mediawiki>\n").encode()


def multistream(step):
    streams = [HEAD, *("".join(BODY[i : i + step]) for i in range(0, 60, step)), "</mediawiki>\n"]
    return b"".join(bz2.compress(stream.encode()) for stream in streams)


def block_stream(size):
    """Streams cut anywhere, inside pages and tags, as pbzip2 makes them."""
    return b"".join(bz2.compress(WHOLE[i : i + size]) for i in range(0, len(WHOLE), size))


CONTAINERS = {
    "plain.xml": WHOLE,
    "single.xml.bz2": bz2.compress(WHOLE),
    "multi.xml.bz2": multistream(7),
    "blocks.xml.bz2": block_stream(501),
    "tiny-blocks.xml.bz2": block_stream(97),
    "x.xml.gz": gzip.compress(WHOLE),
    "x.xml.xz": lzma.compress(WHOLE),
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("size", [None, 150, 700])
def test_same_pages_from_any_container_and_any_cut(tmp_path, monkeypatch, name, size):
    path = tmp_path / name
    path.write_bytes(CONTAINERS[name])
    found = pages_of(path, size, monkeypatch)
    assert titles(found) == [f"Seite {i}" for i in range(60)]
    assert len(found) == 60
    if size == 150 and name in ("plain.xml", "multi.xml.bz2", "blocks.xml.bz2"):
        assert len(units.cut([units.inspect(Place(path))])) > 3


BAD = {
    "invalid-utf8": b"<page><title>Bad</title><id>7</id><revision><text>a\xff\xfeb</text></revision></page>",
    "control-character": b"<page><title>Bad</title><id>7</id><revision><text>a\x08b</text></revision></page>",
    "undefined-entity": b"<page><title>Bad</title><id>7</id><revision><text>&lol9;</text></revision></page>",
    "broken-xml": b"<page><title>Bad</title><id>7</id><revision><text>a<b></text></revision></page>",
    "incomplete": b"<page><title>Bad</title><id>7</id></page>",
    "cut-off": b"<page><title>Bad</title><id>7</id><revision><text>never closed",
    "too-large": b"<page><title>Bad</title><id>7</id><revision><text>"
    + b"x" * (20 << 20)
    + b"</text></revision></page>",
}


@pytest.mark.parametrize("reason", BAD)
def test_bad_page_between_good_ones(tmp_path, reason):
    path = tmp_path / "dump.xml"
    bad = BAD[reason] + b"\n"
    path.write_bytes(
        HEAD.encode() + BODY[0].encode() + bad + "".join(BODY[1:4]).encode() + b"</mediawiki>"
    )
    found = pages_of(path)
    assert titles(found) == [f"Seite {i}" for i in range(4)]
    aside = [page for page in found if isinstance(page, BadPage)]
    assert [(page.reason, page.page_id, page.title) for page in aside] == [(reason, 7, "Bad")]


def test_entity_bomb_is_never_expanded(tmp_path):
    bomb = b'<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
    path = tmp_path / "dump.xml"
    path.write_bytes(bomb + HEAD.encode() + xml_page(1, "x &b; y").encode() + BODY[2].encode())
    found = pages_of(path)
    assert titles(found) == ["Seite 2"]
    assert [page.reason for page in found if isinstance(page, BadPage)] == ["undefined-entity"]


@pytest.mark.parametrize(
    "name", ["single.xml.bz2", "multi.xml.bz2", "x.xml.gz", "x.xml.xz", "plain.xml"]
)
def test_truncated_file_keeps_whole_pages(tmp_path, name):
    big = [xml_page(i, f"{i} {i * i} {i**3} " * 300) for i in range(300)]
    whole = (HEAD + "".join(big)).encode()
    data = {
        "single.xml.bz2": lambda: bz2.compress(whole, 1),
        "multi.xml.bz2": lambda: b"".join(
            bz2.compress(s.encode())
            for s in [HEAD, *("".join(big[i : i + 20]) for i in range(0, 300, 20))]
        ),
        "x.xml.gz": lambda: gzip.compress(whole),
        "x.xml.xz": lambda: lzma.compress(whole),
        "plain.xml": lambda: whole,
    }[name]()
    path = tmp_path / name
    path.write_bytes(data[: int(len(data) * 0.7)])
    found = pages_of(path)
    kept = titles(found)
    assert kept == [f"Seite {i}" for i in range(len(kept))]
    assert len(kept) >= 100
    damages = [d.reason for d in found if isinstance(d, Damage)]
    assert damages == ["truncated"]


def test_corrupt_stream_is_skipped_and_reported(tmp_path):
    data = bytearray(multistream(7))
    starts = [m.start() for m in streams._STREAM.finditer(bytes(data))]
    data[starts[3] + 40] ^= 0xFF
    path = tmp_path / "x.xml.bz2"
    path.write_bytes(bytes(data))
    found = pages_of(path)
    lost = set(range(14, 21))
    assert titles(found) == [f"Seite {i}" for i in range(60) if i not in lost]
    assert [d.reason for d in found if isinstance(d, Damage)] == ["corrupt"]


def test_old_dumps_without_namespace_and_redirect_elements(tmp_path):
    old = "".join(
        [
            xml_page(1, "#WEITERLEITUNG [[ziel#abschnitt]]", ns=""),
            xml_page(2, "x", "Vorlage:Box", ns=""),
            xml_page(3, "#redirect:[[Kategorie:x]]", "Kategorie:Y", ns=""),
            xml_page(4, "Text", "A: b", ns=""),
        ]
    )
    path = tmp_path / "old.xml"
    path.write_text(HEAD.replace("0.11", "0.3") + old + "</mediawiki>")
    found = pages_of(path)
    assert [(p.namespace, p.title, p.redirect) for p in found] == [
        (0, "Seite 1", "Ziel"),
        (10, "Vorlage:Box", None),
        (14, "Kategorie:Y", "Kategorie:X"),
        (0, "A: b", None),
    ]


@pytest.mark.parametrize(
    ("name", "head", "language", "expected"),
    [
        ("d.xml", HEAD, None, "de"),
        ("d.xml", HEAD, "de", "de"),
        ("frwiki-2010.xml", HEAD, "fr", "fr"),  # whose siteinfo is wrong
        ("fr.xml", HEAD, "fr", "fr"),
        ("d.xml", "<mediawiki>", None, "en"),
        ("d.xml", "<mediawiki>", "uk", "uk"),
        ("ukwiki-2020.xml", "<mediawiki>", None, "uk"),
        ("d.xml", '<mediawiki xml:lang="ja">', None, "ja"),
    ],
)
def test_language(tmp_path, name, head, language, expected):
    path = tmp_path / name
    path.write_text(head + BODY[0])
    assert units.inspect(Place(path), language).site.language == expected


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ([128 << 20], [2 << 20] * 64),  # as many as are wanted
        ([64 << 20, 64 << 20], [2 << 20] * 64),  # of all files together
        ([3 << 20], [1 << 20] * 3),  # not too small
        ([6400 << 20], [48 << 20] * 133 + [16 << 20]),  # nor too large
    ],
)
def test_lengths_of_units(sizes, lengths):
    files = [units.InputFile(f"{n}.xml", "xml", size, "", ENGLISH) for n, size in enumerate(sizes)]
    found = units.cut(files)
    assert [unit.end - unit.start for unit in found] == lengths
    assert [unit.index for unit in found] == list(range(len(lengths)))


NO = "<mediawiki xml:lang='nb'><siteinfo><dbname>nowiki</dbname></siteinfo>"
STUBS = (
    "<mediawiki>"
    + '<page><title>A</title><revision><text bytes="9" sha1="x"/></revision></page>' * 3
)


@pytest.mark.parametrize(
    ("name", "head", "language", "told"),
    [
        (
            "d.xml",
            HEAD,
            "fr",
            "the dump says dewiki; leave --language out, or call the file frwiki-",
        ),
        ("enwiki-2020.xml", HEAD, "fr", "the dump says dewiki; leave --language out"),
        ("d.xml", HEAD, "xx", "no Wikipedia has this language"),
        ("d.xml", "<mediawiki>", "english", "no Wikipedia has this language"),
        ("d.xml", NO, "da", "the dump says nowiki"),
        (
            "d.xml",
            HEAD.replace("dewiki", "dewiktionary"),
            None,
            "a dump of dewiktionary, which is no",
        ),
        (
            "d.xml",
            HEAD.replace("dewiki", "commonswiki"),
            None,
            "a dump of commonswiki, which is no",
        ),
        ("d.xml", STUBS, None, "a dump of stubs, without text; give pages-articles"),
        ("dewiki-20200801-stub-articles.xml", HEAD, None, "a dump of stubs, without text"),
    ],
)
def test_dumps_of_other_wikis_and_kinds(tmp_path, name, head, language, told):
    path = tmp_path / name
    path.write_text(head if head == STUBS else head + BODY[0])
    with pytest.raises(UserError, match=told) as error:
        units.inspect(Place(path), language)
    assert str(path) in str(error.value)
    flags = ["--dump", path, "--output", tmp_path / "out"]
    code, _, err = run(*flags, *(["--language", language] if language else []), cwd=tmp_path)
    assert (code, err.count("\n"), told in err) == (2, 1, True)
    assert list((tmp_path / "out").glob("[!.]*")) == []


@pytest.mark.parametrize("language", ["nb", "no", None])
def test_languages_that_a_dump_says(tmp_path, language):
    path = tmp_path / "d.xml"
    path.write_text(NO + BODY[0])
    assert units.inspect(Place(path), language).site.language == (language or "nb")


def test_no_dump(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text("hello")
    with pytest.raises(UserError, match=r"x\.xml: no MediaWiki export"):
        units.inspect(Place(path))


def test_site_from_siteinfo():
    site = Site.from_siteinfo(HEAD)
    assert site.language == "de"
    assert site.first_letter
    assert site.split("datei:x") == (6, "x")
    assert site.split("Bild:x") == (6, "x")
    assert site.title("file:x_y") == "Datei:X y"
    assert site.title("Unknown: x") == "Unknown: x"
    with pytest.raises(ValueError, match="siteinfo"):
        Site.from_siteinfo("<mediawiki>")


def test_every_real_dump_is_read_to_the_last_page(shared):
    counts = {
        "enwiki-20090902-pages-articles-sample.xml.bz2": (4, 2),
        "enwiki-201205-pages-articles-p3.xml.bz2": (37, 12),
        "enwiki-20250201-tiny_dump.xml.bz2": (70, 64),
        "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2": (206, 100),
        "frwiki-20101103-pages-articles-sample.xml.bz2": (6, 1),
        "jawiki-20230501-pages-articles-trimmed.xml.bz2": (238, 27),
        "ltgwiki-20170901-pages-articles.xml.bz2": (2004, 195),
        "nlwiki-20140927-pages-articles-sample.xml.bz2": (21, 2),
        "ukwiki-20230501-pages-articles-trimmed-multistream.xml.bz2": (532, 16),
        "viwiki-20230501-truncated-100k.xml.xz": (970, 154),
        "zhwiki-201805-test-pages.xml.bz2": (33, 0),
    }
    for name, (n_pages, n_redirects) in counts.items():
        language = "fr" if name.startswith("fr") else None
        source = units.inspect(Place(shared / "dumps" / name), language)
        found = [p for unit in units.cut([source]) for p in units.read_unit(unit)]
        pages = [p for p in found if isinstance(p, Page)]
        redirects = sum(p.redirect is not None and p.namespace == 0 for p in pages)
        assert len(pages) == n_pages, name
        assert (
            redirects == n_redirects or sum(p.redirect is not None for p in pages) == n_redirects
        ), name
        cut_off = [p.reason for p in found if not isinstance(p, Page)]
        assert cut_off == (["cut-off", "truncated"] if name.startswith("vi") else []), name


def chunked(data, size, limit=None):
    """Pieces of a dump, of which those from `limit` on lie beyond the unit."""
    ends = sorted({*range(0, len(data), size), len(data), *([limit] if limit is not None else [])})
    for start, end in pairwise(ends):
        if start == limit:
            yield b"", True
        yield data[start:end], limit is not None and start >= limit


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_page_belongs_to_the_unit_in_which_its_tag_begins(size):
    """Cut at every byte: each page is in the first or in the second unit, never in both or none."""
    data = b"<x>" + b"".join(f"<page><id>{n}</id></page>\n".encode() for n in range(4)) + b"</x>"
    every = list(split_pages([(data, False)]))
    assert len(every) == 4
    starts = [data.index(page) for page in every]
    for limit in range(len(data) + 1):
        first = list(split_pages(chunked(data, size, limit)))
        second = list(split_pages(chunked(data[limit:], size)))
        assert first == [page for page, start in zip(every, starts, strict=True) if start < limit]
        rest = [page for page, start in zip(every, starts, strict=True) if start >= limit]
        # The second unit may begin inside a page, whose end it sees.
        assert [page for page in second if page in rest] == rest


@pytest.mark.parametrize("over", [-1, 0, 1, 2 << 20])
def test_pages_at_the_largest_size(over):
    """A page of the limit is kept; a larger one is set aside, whatever its pieces are."""
    page = b"<page><title>Big</title><id>7</id>" + b"x" * 99
    page += b"x" * (MAX_PAGE_BYTES - len(page) - len(b"</page>") + over) + b"</page>"
    data = b"<page>1</page>" + page + b"<page>2</page>"
    for size in (1 << 20, len(data)):
        found = list(split_pages(chunked(data, size)))
        assert [found[0], found[-1]] == [b"<page>1</page>", b"<page>2</page>"]
        assert len(found) == 3
        if over <= 0:
            assert found[1] == page
        else:
            assert (found[1].reason, found[1].page_id, found[1].title) == ("too-large", 7, "Big")


@pytest.mark.parametrize("text", ["<page>\n", "<page ", "<page>a</pag", "<page></page <page>"])
def test_many_open_pages_take_linear_time(text):
    """Twice as many take twice as long; the number of looks is counted instead of the time."""
    looks = []

    class Counted(bytes):
        def find(self, *arguments):
            looks.append(arguments)
            return super().find(*arguments)

    for count in (500, 1000):
        looks.clear()
        list(split_pages([(Counted((text * count).encode()), False)]))
        assert len(looks) < 12 * count


def lost_by_damage(path):
    """Estimate of the lost pages, and number of those that are lost."""
    source = units.inspect(Place(path))
    cut = units.cut([source])
    folder = path.parent / "documents"
    reports = [write_documents(unit, Place(folder / unit.part), SentenceModel("x")) for unit in cut]
    return lost_pages(cut, reports), sum(report.pages.get("read", 0) for report in reports)


@pytest.mark.parametrize("per_stream", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_lost_pages_of_200_flipped_bytes(tmp_path, per_stream):
    """Within a factor of 1.5, whatever the lengths of the pages and the gaps between their ids."""
    draw = random.Random(per_stream)
    number, pages = 0, []
    for place in range(200):
        number += draw.choice((1, 1, 2, 30))
        pages.append(xml_page(number, "Wort " * draw.choice((1, 5, 40 + place))))
    chunks = ["".join(pages[i : i + per_stream]) for i in range(0, 200, per_stream)]
    data = b"".join(bz2.compress(chunk.encode()) for chunk in [HEAD, *chunks, "</mediawiki>\n"])
    first = len(bz2.compress(HEAD.encode()))
    path = tmp_path / "dewiki.xml.bz2"
    for _ in range(200 // 2):
        damaged = bytearray(data)
        damaged[draw.randrange(first, len(data) - 40)] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        estimate, read = lost_by_damage(path)
        assert 1 / 1.5 <= max(1, estimate) / max(1, 200 - read) <= 1.5


def test_lost_pages_of_one_stream_are_told_by_bytes(tmp_path):
    draw = random.Random(0)
    words = [[f"{draw.getrandbits(30):x}" for _ in range(200)] for _ in range(399)]
    pages = [xml_page(n, " ".join(text)) for n, text in enumerate(words, start=1)]
    data = bz2.compress((HEAD + "".join(pages) + "</mediawiki>").encode(), 1)
    path = tmp_path / "dewiki.xml.bz2"
    for share in (0.3, 0.5, 0.8):
        damaged = bytearray(data)
        damaged[int(len(data) * share)] ^= 1
        path.write_bytes(damaged)
        estimate, read = lost_by_damage(path)
        assert 0 < read < 399
        assert 1 / 1.5 <= estimate / (399 - read) <= 1.5


def test_streams_that_are_only_heads_are_one_damage(tmp_path):
    path = tmp_path / "dewiki.xml.bz2"
    good = [bz2.compress(text.encode()) for text in (HEAD, *BODY[:4], "</mediawiki>")]
    path.write_bytes(b"".join(good[:3]) + b"BZh91AY&SY" * 5000 + b"".join(good[3:]))
    found = pages_of(path)
    assert titles(found) == [f"Seite {i}" for i in range(4)]
    (damage,) = (item for item in found if isinstance(item, Damage))
    assert damage.lost == 50_000
