"""Wikidata ids and classes through them, in a small wiki of another language."""

import bz2
import gzip
import json
import re

import pyarrow.parquet as pq
import pytest

from ontology.entity_table import EntityTable
from tests.helpers.runs import run
from tests.helpers.tables import write_table

RDF = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
CLASS, ITEM = "http://dbpedia.org/ontology/", "http://www.wikidata.org/entity/"
PAGES = {
    1: ("Київ", "'''Київ''' є великим містом над річкою [[Дніпро]] в країні [[Україна]]."),
    2: ("Дніпро", "'''Дніпро''' є річкою, на якій лежить столиця [[Київ|Києва]] та інші міста."),
    3: ("Україна", "'''Україна''' є країною, у якій народився письменник [[Іван Франко]] давно."),
    4: (
        "Іван Франко",
        "'''Іван Франко''' писав книги у місті [[Львів|Львові]] і в столиці [[Київ]].",
    ),
    5: ("Львів", "'''Львів''' є містом, де жив письменник [[Франко]], у країні [[Україна]]."),
    6: ("Франко", "#REDIRECT [[Іван Франко]]"),
    7: ("Kyiv", "'''Kyiv''' є піснею, яку заспівали музиканти у місті [[Київ]] минулого року."),
}
QIDS = {1: "Q1899", 2: "Q40855", 3: "Q212", 4: "Q200938", 5: "Q36036", 6: "Q999"}
ENGLISH = {1: "Kyiv", 2: "Dnieper", 4: "Ivan Franko", 5: "Lviv#History"}


@pytest.fixture
def wiki(tmp_path):
    pages = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{page}</id>"
        + ('<redirect title="Іван Франко" />' if "REDIRECT" in text else "")
        + f"<revision><id>{page}</id><timestamp>2023-05-01T00:00:00Z</timestamp><text>{text}</text></revision></page>\n"
        for page, (title, text) in PAGES.items()
    )
    (tmp_path / "ukwiki-20230501-pages-articles.xml").write_text(
        f'<mediawiki xml:lang="uk">\n{pages}</mediawiki>\n', encoding="utf-8"
    )
    props = [
        row
        for page, qid in QIDS.items()
        for row in ((page, "defaultsort", "a'b", None), (page, "wikibase_item", qid, None))
    ]
    write_table(
        tmp_path / "ukwiki-20230501-page_props.sql.gz",
        "page_props",
        [*props, (99, "wikibase_item", "Q7", None)],
    )
    links = [
        (page, language, title)
        for page, title in ENGLISH.items()
        for language, title in (("de", "Andere"), ("en", title))
    ]
    write_table(tmp_path / "ukwiki-20230501-langlinks.sql.gz", "langlinks", links)
    types = {
        "en": [
            ("http://dbpedia.org/resource/Kyiv", "City"),
            ("http://dbpedia.org/resource/Dnieper", "River"),
            ("http://dbpedia.org/resource/Paris", "City"),
            ("http://dbpedia.org/resource/Lviv", "Band"),
        ],
        "items": [
            ("http://wikidata.dbpedia.org/resource/Q212", "Country"),
            (f"{ITEM}Q36036", "City"),
            (f"{ITEM}Q7", "Person"),
        ],
        "uk": [
            ("http://uk.dbpedia.org/resource/Франко", "Writer"),
            ("http://de.dbpedia.org/resource/Kiew", "City"),
        ],
    }
    for name, rows in types.items():
        lines = "".join(f"<{subject}> {RDF} <{CLASS}{cls}> .\n" for subject, cls in rows)
        (tmp_path / f"types_{name}.ttl.bz2").write_bytes(bz2.compress(lines.encode()))
    direct = "http://www.wikidata.org/prop/direct/"
    (tmp_path / "truthy.nt").write_text(
        f"<{ITEM}Q200938> <{direct}P31> <{ITEM}Q5> .\n"
        f"<{ITEM}Q40855> <{direct}P31> <{ITEM}Q55659167> .\n"
        f"<{ITEM}Q1899> <{direct}P31> <{ITEM}Q888888888> .\n"
        f"<{ITEM}Q55659167> <{direct}P279> <{ITEM}Q4022> .\n"
        f"<{ITEM}Q212> <{direct}P36> <{ITEM}Q1899> .\n"
    )
    return tmp_path


def resolve(wiki, *types, tables=True, out="out", flags=(), stage="resolve"):
    arguments = ["--dump", wiki, "--output", out, "--stage", stage, *flags]
    if types:
        arguments += ["--types", *(wiki / name for name in types)]
    if tables:
        arguments += ["--page-props", wiki / "ukwiki-20230501-page_props.sql.gz"]
        arguments += ["--langlinks", wiki / "ukwiki-20230501-langlinks.sql.gz"]
    code, _, err = run(*arguments, "--no-page-typer", cwd=wiki)
    assert code == 0, err
    entities = wiki / out / "entities"
    return EntityTable.open(entities), json.loads((entities / "stage.json").read_text()), err


def classes(table):
    return {title: table.class_of(title) for title, _ in PAGES.values() if table.class_of(title)}


def test_ids_and_titles_of_pages(wiki):
    table, state, _ = resolve(wiki)
    assert {page: table.qid_of(title) for page, (title, _) in PAGES.items() if page < 6} == {
        page: qid for page, qid in QIDS.items() if page < 6
    }
    assert table.qid_of("Франко") == "Q200938"  # of the page that it leads to
    assert table.qid_of("Kyiv") is table.qid_of("Немає") is None
    assert state["counts"]["entities_with_qid"] == 5
    rows = pq.read_table(wiki / "out" / "entities" / "page_ids.parquet").to_pylist()
    assert {row["page_id"]: row["qid"] for row in rows} == {
        p: int(q[1:]) for p, q in QIDS.items() if p < 6
    }
    assert {row["page_id"]: row["english"] for row in rows if row["english"]} == {
        1: "Kyiv",
        2: "Dnieper",
        4: "Ivan Franko",
    }


def test_english_types_apply_through_the_link_and_only_through_it(wiki):
    table, state, _ = resolve(wiki, "types_en.ttl.bz2")
    assert classes(table) == {"Київ": "City", "Дніпро": "River"}
    (file,) = state["counts"]["types_files"]
    assert file["other_pages"] == 2  # Paris, and Lviv, whose link is to a section
    table, state, err = resolve(wiki, "types_en.ttl.bz2", tables=False, out="without")
    assert classes(table) == {}  # the page "Kyiv" is a song here
    assert (
        "types_en.ttl.bz2: 4 statements about English pages are not used; give --langlinks" in err
    )
    assert state["counts"]["types_files"][0]["without_table"] == {"en": 4}


def test_types_of_items(wiki):
    table, state, _ = resolve(wiki, "types_items.ttl.bz2")
    assert classes(table) == {"Україна": "Country", "Львів": "City"}
    assert state["counts"]["types_files"][0]["other_pages"] == 1
    _, _, err = resolve(wiki, "types_items.ttl.bz2", tables=False, out="without")
    assert "3 statements about Wikidata's items are not used; give --page-props" in err


def test_types_of_this_wiki_and_of_another(wiki):
    table, _, err = resolve(wiki, "types_uk.ttl.bz2", tables=False)
    assert classes(table) == {"Іван Франко": "Writer", "Франко": "Writer"}
    assert (
        "1 statements about pages in de are not used; give the types of the dump's language" in err
    )


def test_wikidatas_own_classes(wiki):
    table, state, _ = resolve(wiki, "truthy.nt")
    assert classes(table) == {"Іван Франко": "Person", "Франко": "Person", "Дніпро": "River"}
    (file,) = state["counts"]["types_files"]
    assert file["unmapped_classes"] == {"Q888888888": 1}
    assert file["other_lines"] == 1


def test_all_voters_and_the_examples(wiki):
    names = ("types_en.ttl.bz2", "types_items.ttl.bz2", "types_uk.ttl.bz2", "truthy.nt")
    flags = ["--min-entities", "1", "--validation-share", "0"]
    resolve(wiki, *names, flags=flags, stage="corpus")
    rows = pq.read_table(wiki / "out" / "corpus" / "train").to_pylist()
    pairs = {pair for row in rows for pair in zip(row["targets"], row["qids"], strict=True)}
    assert ("Київ", "Q1899") in pairs
    assert ("Франко", "Q200938") in pairs
    assert all(qid is None or re.fullmatch(r"Q\d+", qid) for _, qid in pairs)


@pytest.mark.parametrize(
    ("flag", "content", "message"),
    [
        ("--page-props", None, "no such file; check the path"),
        (
            "--page-props",
            gzip.compress(b"<html>", mtime=0),
            "no SQL dump of the table page_props; give another file",
        ),
        ("--langlinks", b"\x1f\x8b\x08\x00\x00\x00", "cannot be read"),
    ],
)
def test_wrong_tables_are_refused_before_the_run(wiki, flag, content, message):
    if content is not None:
        (wiki / "table.sql.gz").write_bytes(content)
    code, _, err = run("--dump", wiki, "--output", "o", flag, "table.sql.gz", cwd=wiki)
    assert code == 2
    assert re.search(rf"{flag} table.sql.gz: .*{message}", err), err
    assert not (wiki / "o").exists()


def test_truncated_table_on_the_way(wiki):
    path = wiki / "ukwiki-20230501-page_props.sql.gz"
    rows = [(page, "wikibase_item", f"Q{page * 7919 % 10007}", None) for page in range(1, 90_000)]
    write_table(path, "page_props", rows)
    path.write_bytes(path.read_bytes()[:-9])
    code, _, err = run("--dump", wiki, "--output", "o", "--page-props", path, cwd=wiki)
    assert code == 2
    assert "--page-props" in err
    assert "is it complete?" in err


def corpus(wiki, props):
    flags = ["--min-entities", 1, "--keep-untyped", "--page-props", props]
    return run("--dump", wiki, "--output", "o", "--no-page-typer", *flags, cwd=wiki)


def test_a_truncated_table_is_told_and_counted(wiki):
    path = wiki / "ukwiki-20230501-page_props.sql.gz"
    content = gzip.decompress(path.read_bytes())
    code, out, err = corpus(wiki, path)
    assert code == 0, err
    assert "page_props 5 of 6 articles have a Wikidata id (7 rows)" in out
    assert "truncated (no" not in err
    assert "truncated)" not in out
    path.write_bytes(gzip.compress(content[: content.index(b"(4,'wikibase_item'")]))
    code, out, err = corpus(wiki, path)
    assert code == 0, err
    assert "page_props 3 of 6 articles have a Wikidata id (3 rows, truncated)" in out
    assert f"--page-props {path}: truncated (no '-- Dump completed' at its end)" in err
    card = (wiki / "o" / "corpus" / "README.md").read_text()
    assert "3 of 6 articles have a Wikidata id (3 rows, truncated)." in card
    report = json.loads((wiki / "o" / "corpus" / "report.json").read_text())
    counted = {"pages": 3, "described": 0, "rows": 3, "truncated": 1}
    assert report["coverage"]["tables"] == {"articles": 6, "page_props": counted}


def test_a_table_of_another_wiki(wiki):
    path = wiki / "ukwiki-20230501-page_props.sql.gz"
    rows = [(1, "wikibase_item", "Q90", None)]
    write_table(path, "page_props", rows, wiki="frwiki")
    code, out, err = corpus(wiki, path)
    assert (code, out) == (2, "")
    told = f"--page-props {path}: a table of frwiki, and the dump is of ukwiki; give another file"
    assert err.splitlines()[-1] == told
    assert not (wiki / "o" / "documents").exists()
