import json

import pytest

from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.corpus import Corpus, load_corpus
from tests.helpers.corpora import LABELS, example, simple_corpus, write_part
from tests.helpers.runs import examples

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


def test_fingerprint_tells_corpora_apart(tmp_path):
    one = Corpus.open(str(simple_corpus(tmp_path / "one")))
    same = Corpus.open(str(simple_corpus(tmp_path / "same")))
    other = Corpus.open(str(simple_corpus(tmp_path / "other", sentences=42)))
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_the_folder_of_a_run_or_its_corpus_is_loaded(demo):
    folder = demo[0]
    corpus = load_corpus(folder)
    assert corpus.folder == load_corpus(str(folder / "corpus")).folder
    rows = examples(folder / "corpus", "train")
    sentences = list(corpus.sentences("train"))
    assert [sentence.tokens for sentence in sentences] == [row["tokens"] for row in rows]
    assert sentences[0].tags == [corpus.labels.tags[label] for label in rows[0]["ner_tags"]]
    assert corpus.table("train").to_pylist() == rows


def test_a_sentence_is_shown_with_its_tags():
    assert str(Sentence(["Bern", "is"], ["B-City", "O"])) == "Bern/B-City is/O"


def test_a_split_that_is_none(demo):
    with pytest.raises(UserError, match="no split 'test'; there are train and validation"):
        load_corpus(demo[0]).table("test")
