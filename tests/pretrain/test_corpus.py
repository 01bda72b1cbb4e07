import json

import pytest
from corpora import LABELS, example, simple_corpus, write_part

from ontology.labels import LabelSet
from pipeline.errors import UserError
from pretrain import data
from pretrain.corpus import Corpus, view

PART = "validation/part-00000.parquet"


def _no_labels(corpus):
    (corpus / "labels.json").unlink()


def _other_tags(corpus):
    (corpus / "labels.json").write_text(json.dumps({"tags": ["O"], "categories": ["ENTITY"]}))


def _no_json(corpus):
    (corpus / "labels.json").write_text("{")


def _no_rows(corpus):
    write_part(corpus / PART, [])


def _no_part(corpus):
    (corpus / PART).unlink()


def _damaged(corpus):
    (corpus / PART).write_bytes(b"PAR1 and no more")


def _no_column(corpus):
    write_part(corpus / PART, [example(0, "a b")], without=["ner_tags"])


def _no_unlinked(corpus):
    write_part(corpus / PART, [example(0, "a b")], without=["unlinked"])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_no_labels, "no corpus .labels.json is missing.; give the folder `corpus`"),
        (_other_tags, "labels.json: its tags are not O and B-, I- of each of its categories"),
        (_no_json, "labels.json: no labels"),
        (_no_rows, "validation: no examples; use a larger dump"),
        (_no_part, "validation: no examples"),
        (_damaged, "part-00000.parquet: no Parquet file"),
        (_no_column, "part-00000.parquet: no column 'ner_tags'"),
        (_no_unlinked, "part-00000.parquet: no column 'unlinked'"),
    ],
)
def test_what_is_no_corpus(tmp_path, spoil, message):
    corpus = simple_corpus(tmp_path)
    assert Corpus.open(str(corpus), unlinked=True).labels == LABELS
    spoil(corpus)
    with pytest.raises(UserError, match=message):
        Corpus.open(str(corpus), unlinked=True)


def test_the_folder_above_is_understood(tmp_path):
    simple_corpus(tmp_path / "corpus")
    with pytest.raises(UserError, match=r"did you mean .*corpus$"):
        Corpus.open(str(tmp_path))


def test_a_corpus_without_unlinked_is_read_when_that_is_not_asked_for(tmp_path):
    _no_unlinked(simple_corpus(tmp_path / "corpus"))
    corpus = Corpus.open(str(tmp_path / "corpus"))
    rows = data.load(corpus, "validation", cache_dir=str(tmp_path / "cache"))
    assert rows.column_names == ["id", "tokens", "ner_tags"]


def test_fingerprint_tells_corpora_apart(tmp_path):
    one = Corpus.open(str(simple_corpus(tmp_path / "one")))
    same = Corpus.open(str(simple_corpus(tmp_path / "same")))
    other = Corpus.open(str(simple_corpus(tmp_path / "other", sentences=42)))
    assert one.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize(("wanted", "found"), [(0, 40), (1, 1), (20, 20), (21, 21), (99, 40)])
def test_the_first_examples_are_read(tmp_path, wanted, found):
    corpus = Corpus.open(str(simple_corpus(tmp_path / "corpus")))
    rows = data.load(corpus, "train", wanted, cache_dir=str(tmp_path / "cache"))
    assert rows["id"] == [f"1:{number}:0" for number in range(found)]


def test_views():
    labels, ids = view(LABELS, "corpus")
    assert labels == LABELS
    assert ids.tolist() == list(range(7))
    labels, ids = view(LABELS, "coarse4")
    assert labels.categories == ("ENTITY", "location", "person")
    assert ids.tolist() == [0, 1, 2, 3, 4, 5, 6]
    labels, ids = view(LabelSet(("ENTITY", "album", "scientist", "town")), "coarse4")
    assert labels.categories == ("ENTITY", "location", "person")
    assert [labels.tags[i] for i in ids] == [
        "O", "B-ENTITY", "I-ENTITY", "B-ENTITY", "I-ENTITY", "B-person", "I-person", "B-location",
        "I-location",
    ]  # fmt: skip


def test_views_by_a_table_of_ones_own(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("place\tPlace\nScientist\tPerson\n")
    labels, ids = view(LabelSet(("ENTITY", "Scientist", "place")), str(table))
    assert labels.categories == ("ENTITY", "Person", "Place")
    assert ids.tolist() == list(range(7))
    with pytest.raises(UserError, match="category 'thing' of the corpus is no class"):
        view(LabelSet(("ENTITY", "thing")), str(table))
    with pytest.raises(UserError, match="'wintersportplayer' of the corpus would become several"):
        view(LabelSet(("ENTITY", "wintersportplayer")), "nerbert315")
