"""Several wikis in one corpus: rows of the runs, one split of a page and its translations."""

import re
import shutil
from collections import defaultdict

import numpy as np
import pytest

from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS, Corpus, load_corpus
from nerbert.text.tags import LabelSet
from ontology.entity_table import EntityTable
from pipeline.join.languages import language_factors
from tests.helpers.runs import DEMO, run
from tests.helpers.tables import write_table

FLAGS = ("--min-entities", "2", "--validation-share", "0.3")
SHIFT = 1000


@pytest.fixture(scope="module")
def wikis(demo, tmp_path_factory):
    """The demo dump, and half of it as a Swedish wiki with other ids of pages and the same items."""
    folder = tmp_path_factory.mktemp("wikis")
    text = DEMO.read_text(encoding="utf-8").replace("demowiki", "enwiki")
    (folder / "en.xml").write_text(text, encoding="utf-8")
    head, *pages = text.split("  <page>\n")
    pages = [
        re.sub(r"<id>(\d+)</id>", lambda match: f"<id>{int(match[1]) + SHIFT}</id>", page, count=1)
        for page in pages[: len(pages) // 2]
    ]
    swedish = "  <page>\n".join([head, *pages]).replace("enwiki", "svwiki") + "</mediawiki>\n"
    (folder / "sv.xml").write_text(swedish.replace('lang="en"', 'lang="sv"'), encoding="utf-8")
    ids = dict(re.findall(r"<title>(.*?)</title>\s*<ns>0</ns>\s*<id>(\d+)</id>", text))
    table = EntityTable.open(demo[0] / "entities")
    (folder / "types.nt").write_text(
        "".join(
            f"<http://www.wikidata.org/entity/Q{page}> "
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
            f"<http://dbpedia.org/ontology/{table.class_of(title)}> .\n"
            for title, page in ids.items()
            if table.class_of(title)
        )
    )
    for wiki, shift in (("en", 0), ("sv", SHIFT)):
        rows = [(int(page) + shift, "wikibase_item", f"Q{page}", None) for page in ids.values()]
        path = folder / f"{wiki}wiki-page_props.sql"
        write_table(path, "page_props", rows, wiki=f"{wiki}wiki")
    code, out, err = run(
        *("--dump", "en.xml", "sv.xml", "--types", "types.nt", *FLAGS),
        *("--page-props", "enwiki-page_props.sql", "svwiki-page_props.sql", "--output", "all"),
        cwd=folder,
    )
    assert code == 0, err
    return folder, out


def rows_of(corpus):
    for split in SPLITS:
        for row in corpus.table(split).to_pylist():
            yield split, row


def test_one_command_makes_the_runs_and_joins_them(wikis):
    folder, out = wikis
    assert re.findall(r"^(\w+):$", out, re.MULTILINE) == ["enwiki", "svwiki", "all"]
    code, again, err = run("all/enwiki", "all/svwiki", "--validation-share", "0.3",
                           "--output", "joined", cwd=folder, name="join")  # fmt: skip
    assert code == 0, err
    assert again.replace("joined", "all/corpus") in out
    for path in Place(folder / "joined").listing():
        if path.endswith("parquet"):
            assert (folder / "joined" / path).read_bytes() == (
                folder / "all" / "corpus" / path
            ).read_bytes()
    code, _, err = run("all/enwiki", "all/svwiki", "--validation-share", "0.3",
                       "--output", "joined", cwd=folder, name="join")  # fmt: skip
    assert (code, "join: up to date" in err) == (0, True)


def test_rows_are_those_of_the_runs(wikis):
    folder, _ = wikis
    corpus = load_corpus(folder / "all")
    joined = defaultdict(list)
    for _, row in rows_of(corpus):
        joined[row["language"], row["page_id"], row["sentence"]].append(row)
    expected = {}
    for wiki in ("en", "sv"):
        path = folder / "all" / f"{wiki}wiki"
        tags = LabelSet(tuple(Place(path / "corpus/labels.json").read_json()["categories"])).tags
        for part in sorted((path / "examples").glob("*/part-*.parquet")):
            if part.parent.name not in SPLITS:
                continue
            for batch in parts.read_batches(Place(part)):
                for row in batch.to_pylist():
                    row["ner_tags"] = [tags[tag] for tag in row["ner_tags"]]
                    expected[wiki, row["page_id"], row["sentence"]] = row
    assert joined.keys() == expected.keys()
    assert {language for language, *_ in expected} == {"en", "sv"}
    for key, copies in joined.items():
        row = expected[key]
        for number, copy in enumerate(sorted(copies, key=lambda copy: copy["copy"])):
            assert copy["id"] == f"{key[0]}:{key[1]}:{key[2]}:{number}"
            names = [corpus.labels.tags[tag] for tag in copy["ner_tags"]]
            assert names == row["ner_tags"]
            same = set(row) - {"id", "copy", "ner_tags"}
            assert {name: copy[name] for name in same} == {name: row[name] for name in same}


def test_a_page_and_its_translations_are_in_one_split(wikis):
    splits, languages = defaultdict(set), defaultdict(set)
    for split, row in rows_of(load_corpus(wikis[0] / "all")):
        item = row["page_id"] % SHIFT
        splits[item].add(split)
        languages[item].add(row["language"])
    assert all(len(of_page) == 1 for of_page in splits.values())
    assert sum(len(of_page) == 2 for of_page in languages.values()) > 10
    assert set().union(*splits.values()) == set(SPLITS)


def test_the_card_is_read_by_datasets(wikis, tmp_path):
    datasets = pytest.importorskip("datasets")
    folder = wikis[0] / "all" / "corpus"
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path))
    corpus = Corpus.open(str(folder))
    assert {split: len(rows) for split, rows in loaded.items()} == {
        split: sum(corpus.rows[split]) for split in SPLITS
    }
    assert loaded["train"].features["ner_tags"].feature.names == corpus.labels.tags
    assert set(loaded["train"]["language"]) == {"en", "sv"}


@pytest.mark.unit
@pytest.mark.parametrize("alpha", [0, 0.3, 0.7, 1])
@pytest.mark.parametrize("least", [0, 1])
def test_shares_of_languages_follow_the_exponent(alpha, least):
    draw = np.random.default_rng(0)
    expected = [draw.gamma(1, 1, size) for size in (5000, 700, 90, 0)]
    sentences = [len(copies) for copies in expected]
    factors = language_factors(expected, [least] * 4, sentences, alpha)
    totals = [
        np.maximum(factor * copies, least).sum()
        for factor, copies in zip(factors, expected, strict=True)
    ]
    assert factors[0] == pytest.approx(1)
    for total, size in zip(totals[1:3], sentences[1:3], strict=True):
        wanted = totals[0] * (size / 5000) ** alpha
        assert total == pytest.approx(wanted, rel=1e-6)
    assert factors[3] == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("all/enwiki", "all/enwiki"), "two runs of the language en"),
        (("all/enwiki", "nothing"), "nothing: no finished run (entities is missing"),
        (("all/enwiki", "torn"), "torn: no finished run (examples is missing or not whole)"),
        (("all/enwiki", "all/corpus"), "all/corpus: no finished run"),
    ],
)
def test_what_cannot_be_joined_is_said(wikis, arguments, problem):
    folder = wikis[0]
    if not (folder / "torn").exists():
        shutil.copytree(folder / "all" / "svwiki", folder / "torn")
        next((folder / "torn" / "examples" / "train").glob("part-*")).unlink()
    code, _, err = run(*arguments, "--output", "no", cwd=folder, name="join")
    assert code == 2
    assert problem in err
    assert len(err.splitlines()) == 1
    assert not (folder / "no" / "train").exists()


def test_tables_of_nobody_knows_which_wiki(wikis):
    folder = wikis[0]
    shutil.copy(folder / "svwiki-page_props.sql", folder / "page_props.sql")
    flags = ("--dump", "en.xml", "sv.xml", "--page-props", "page_props.sql", "--output", "no")
    code, _, err = run(*flags, cwd=folder)
    assert code == 2
    assert err == (
        "--page-props page_props.sql: of which wiki? begin its name with one of enwiki, svwiki\n"
    )


def test_without_items_translations_may_be_apart(wikis, demo):
    code, out, err = run(
        wikis[0] / "all/svwiki", demo[0], "--output", "two", cwd=wikis[0], name="join"
    )
    assert code == 0, err
    assert "no Wikidata items: en; translations may be in both splits" in out
