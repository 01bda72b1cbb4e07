"""Whole runs on real slices of six Wikipedias. Slow: pytest -m slow."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from nerbert.text.punkt import SentenceSplitter
from nerbert.text.tokens import _aligned, tokenize
from ontology.entity_table import EntityTable
from pipeline.documents.rows import kept_as
from pipeline.documents.sample import sampled_texts
from pipeline.dump import units
from pipeline.dump.pages import Page
from pipeline.dump.streams import find_dumps
from pipeline.language import trained
from pipeline.wikitext.render import render
from tests.helpers.lazy import lazy
from tests.helpers.pieces import pieces
from tests.helpers.runs import check_example, examples, run

destructive = lazy("nltk.tokenize.destructive")
punkt = lazy("nltk.tokenize.punkt")

SLICES = {
    "en-2016": ("enwiki-latest-*", None, 206),
    "uk": ("ukwiki-*multistream.xml.bz2", "uk", 532),
    "ja": ("jawiki-*", "ja", 238),
    "ltg": ("ltgwiki-*", None, 2004),
    "vi-truncated": ("viwiki-*", None, 971),
    "en-2009": ("enwiki-2009*", None, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SLICES)
def test_slice(shared, tmp_path, name):
    pattern, mapping, n_pages = SLICES[name]
    types = sorted((shared / "dbpedia").glob("*.nt.bz2"))
    arguments = [
        "--dump",
        shared / "dumps" / pattern,
        "--output",
        "out",
        "--min-entities",
        2,
        "--types",
        *types,
    ]
    if mapping:
        path = shared / "dbpedia" / "mappings" / f"Mapping_{mapping}.xml.xz"
        arguments += ["--infobox-mapping", path]
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 0, err
    corpus = tmp_path / "out" / "corpus"
    tags = json.loads((corpus / "labels.json").read_text())["tags"]
    funnel = json.loads((corpus / "report.json").read_text())["funnel"]
    pages = funnel["pages"]
    kinds = ("article", "redirect", "category", "other-namespace", "other-content", "duplicate")
    assert pages["read"] == n_pages
    assert pages["read"] == sum(pages.get(k, 0) for k in kinds) + sum(pages["set_aside"].values())
    for what in ("sentences", "mentions"):
        counts = funnel[what]
        assert counts["in"] == sum(counts["dropped"].values()) + sum(counts["out"].values())
    documents = {
        row["page_id"]: row
        for path in (tmp_path / "out" / "documents").glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    }
    checked = 0
    for folder in (tmp_path / "out" / "examples", corpus):
        for split in ("train", "validation"):
            for row in examples(folder, split):
                check_example(row, documents[row["page_id"]], tags)
                checked += 1
    assert checked > 20


@pytest.mark.slow
def test_every_sentence_and_word_of_every_slice_as_nltk(shared):
    words = destructive.NLTKWordTokenizer()
    sentences = 0
    for path in find_dumps([str(shared / "dumps")]):
        cut = units.cut([units.inspect(path)])
        model = trained(sampled_texts(cut, seed=0), cut[0].site.language)
        parameters = punkt.PunktParameters()
        parameters.abbrev_types = set(model.parameters.abbreviations)
        parameters.collocations = set(model.parameters.collocations)
        parameters.sent_starters = set(model.parameters.starters)
        parameters.ortho_context.update(model.parameters.contexts)
        reference, splitter = (
            punkt.PunktSentenceTokenizer(parameters),
            SentenceSplitter(model.parameters),
        )
        for page in (page for unit in cut for page in units.read_unit(unit)):
            if not isinstance(page, Page) or kept_as(page) != "article":
                continue
            text = render(page.wikitext, cut[0].site).text
            position, expected = 0, []
            for line in text.split("\n"):
                found = reference.span_tokenize(line) if line else ()
                expected += [(position + start, position + end) for start, end in found]
                position += len(line) + 1
            assert splitter.spans(text) == expected, page.title
            for start, end in expected:
                sentence = text[start:end]
                spans = _aligned(sentence, words.tokenize(sentence))
                assert tokenize(sentence) == pieces(sentence, spans)
            sentences += len(expected)
    assert sentences > 100_000


@pytest.mark.slow
def test_a_page_that_two_files_know_has_the_same_class_in_every_dump(shared, tmp_path):
    types = sorted((shared / "dbpedia").glob("*.nt.bz2"))
    tables = []
    for name in ("enwiki-2009*", "enwiki-2025*"):
        arguments = ("--dump", shared / "dumps" / name, "--output", name[:-1], "--types", *types)
        code, _, err = run(*arguments, "--stage", "resolve", cwd=tmp_path)
        assert code == 0, err
        tables.append(EntityTable.open(tmp_path / name[:-1] / "entities"))
    one, other = tables
    keys = one.keys[np.isin(one.keys, other.keys)]
    places = [table.lookup_keys(keys) for table in tables]
    voters = [np.asarray(table.voters)[place] for table, place in zip(tables, places, strict=True)]
    # Pages of one of the dumps have an infobox there, or the page typer's vote.
    alike = (voters[0] == voters[1]) & (voters[0] & (voters[0] - 1) != 0)
    names = [
        np.array([*table.class_names, ""])[np.asarray(table.classes)[place[alike]]]
        for table, place in zip(tables, places, strict=True)
    ]
    assert alike.sum() > 50_000
    assert (names[0] != names[1]).sum() <= alike.sum() / 10_000
