"""Features against the way transformers' own examples make them."""

from itertools import pairwise

import numpy as np
import pytest

from nerbert.text.corpus import Corpus
from tests.helpers.corpora import LABELS, example, simple_corpus, write_corpus, write_part
from tests.helpers.lazy import lazy

data = lazy("pretrain.training.features")
datasets = lazy("datasets")
pieces_module = lazy("pretrain.training.pieces")
tagging = lazy("pretrain.training.models")
tiny = lazy("pretrain.training.tiny")
torch = lazy("torch")
transformers = lazy("transformers")

LONG = example(9, " ".join(["Ada/B-Scientist Byron/I-Scientist in many years"] * 5))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    rows = [
        example(i, "Ada/B-Scientist lived unlikelily in Rom/B-City", unlinked=["lived"])
        for i in range(4)
    ]
    return Corpus.open(str(write_corpus(folder, [*rows, LONG, example(5, "Ulm/B-City")])))


@pytest.fixture(scope="module")
def rows(corpus, tmp_path_factory):
    return data.load_split(corpus, "train", cache_dir=str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def tokenizer(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    tiny.build(rows, folder)
    return tagging.load_tokenizer(str(folder))


def features_of(corpus, rows, tokenizer, limit=128, categories="corpus", **options):
    pieces = pieces_module.count_subwords(rows, tokenizer, limit, len(LABELS.tags), "train")
    _, ids = data.category_view(corpus.labels, categories)
    return data.PieceFeatures(rows, pieces, tokenizer, ids, **options), pieces


def align(tokenizer, words, tags):
    """tokenize_and_align_labels of transformers' token-classification example."""
    encoding = tokenizer(words, is_split_into_words=True)
    labels, previous = [], None
    for word in encoding.word_ids():
        labels.append(-100 if word is None or word == previous else tags[word])
        previous = word
    return encoding["input_ids"], labels


def test_features_are_those_of_transformers_example(corpus, rows, tokenizer):
    features, _ = features_of(corpus, rows, tokenizer)
    found = features.__getitems__(list(range(len(features))))
    assert len(found) == 6
    assert [f.piece for f in found] == list(range(6))
    for feature, row in zip(found, rows, strict=True):
        ids, labels = align(tokenizer, row["tokens"], row["ner_tags"])
        assert feature.input_ids.tolist() == ids
        assert feature.labels.tolist() == labels
    assert features[2].input_ids.tolist() == found[2].input_ids.tolist()
    assert features.lengths.tolist() == [len(f.input_ids) for f in found]
    assert features.example_ids([5, 0]) == ["1:5:0", "1:0:0"]


def test_long_sentences_become_pieces_that_hold_every_word(corpus, rows, tokenizer):
    features, pieces = features_of(corpus, rows, tokenizer, limit=9)
    whole, _ = features_of(corpus, rows, tokenizer)
    assert features.lengths.max() <= 9
    long = [
        f
        for f in features.__getitems__(list(range(len(features))))
        if features.example_ids([f.piece]) == ["1:9:0"]
    ]
    assert len(long) > 1
    joined = np.concatenate([f.labels[1:-1] for f in long])
    assert joined.tolist() == whole[4].labels[1:-1].tolist()
    counts = pieces_module.PieceCounts.of(rows, pieces)
    assert counts.sentences == 6
    assert counts.pieces == len(pieces) == 5 + len(long)
    assert (counts.split, counts.words_left_out, counts.words_unseen) == (1, 0, 0)
    assert counts.subwords == features.lengths.sum()


def test_words_that_fit_into_no_piece_are_counted(corpus, rows, tokenizer):
    features, pieces = features_of(corpus, rows, tokenizer, limit=3)
    counts = pieces_module.PieceCounts.of(rows, pieces)
    found = features.__getitems__(list(range(len(features))))
    words = sum(int((f.labels != data.IGNORED).sum()) for f in found)
    assert counts.words_left_out > 0
    assert words + counts.words_left_out == sum(len(row["tokens"]) for row in rows)


def test_unlinked_names_are_left_out_of_the_loss_only_when_asked_for(corpus, rows, tokenizer):
    plain, _ = features_of(corpus, rows, tokenizer)
    masked, _ = features_of(corpus, rows, tokenizer, mask_unlinked=True)
    assert plain[0].unlinked.sum() == masked[0].unlinked.sum() == 1
    place = int(np.flatnonzero(plain[0].unlinked)[0])
    assert tokenizer.convert_ids_to_tokens(int(plain[0].input_ids[place])).startswith("l")
    assert plain[0].labels[place] == 0
    assert masked[0].labels[place] == data.IGNORED
    changed = plain[0].labels != masked[0].labels
    assert np.flatnonzero(changed).tolist() == [place]


def test_all_of_an_ending_outside_of_a_name_is_told(tokenizer, tmp_path):
    text = "Ada/B-Scientist 's friend saw Wendy/B-City 's/I-City and an old car 's end"
    rows = [example(number, text) for number in range(2)]
    corpus = Corpus.open(str(write_corpus(tmp_path / "corpus", rows)))
    rows = data.load_split(corpus, "train", cache_dir=str(tmp_path / "cache"))
    plain, _ = features_of(corpus, rows, tokenizer)
    told, _ = features_of(corpus, rows, tokenizer, tells_endings=True)
    words = tokenizer(rows[0]["tokens"], is_split_into_words=True).word_ids()
    pairs = enumerate(pairwise(words), 1)
    ends = [place for place, (before, word) in pairs if before == word in (1, 10)]
    assert ends
    changed = np.flatnonzero(plain[0].labels != told[0].labels).tolist()
    assert changed == ends
    assert told[0].labels[ends].tolist() == [0] * len(ends)
    marked = [example(number, text, unlinked=["'s"]) for number in range(2)]
    corpus = Corpus.open(str(write_corpus(tmp_path / "marked", marked)))
    rows = data.load_split(corpus, "train", cache_dir=str(tmp_path / "cache"))
    features, _ = features_of(corpus, rows, tokenizer, mask_unlinked=True, tells_endings=True)
    assert set(features[0].labels[ends].tolist()) == {data.IGNORED}


def test_a_view_changes_labels(corpus, rows, tokenizer):
    features, _ = features_of(corpus, rows, tokenizer, categories="coarse4")
    labels, _ = data.category_view(corpus.labels, "coarse4")
    seen = [labels.tags[i] for i in features[0].labels if i > 0]
    assert seen == ["B-person", "B-location"]


def test_collator_pads_as_transformers_does(corpus, rows, tokenizer):
    features, _ = features_of(corpus, rows, tokenizer)
    found = features.__getitems__([4, 0, 5])
    ours = data.Collator(tokenizer.pad_token_id)(found)
    theirs = transformers.DataCollatorForTokenClassification(tokenizer)(
        [{"input_ids": f.input_ids.tolist(), "labels": f.labels.tolist()} for f in found]
    )
    for name in ("input_ids", "attention_mask", "labels"):
        assert torch.equal(ours[name], theirs[name]), name
    assert ours[data.PIECES].tolist() == [4, 0, 5]


def test_vocabulary_is_made_from_the_corpus(tmp_path):
    corpus = Corpus.open(str(simple_corpus(tmp_path / "corpus")))
    rows = data.load_split(corpus, "train", cache_dir=str(tmp_path / "cache"))
    tiny.build(rows, tmp_path / "tiny")
    tokenizer = tagging.load_tokenizer(str(tmp_path / "tiny"))
    assert tokenizer.tokenize("Emmy lived in Ulm") == ["Emmy", "lived", "in", "Ulm"]
    assert tokenizer.tokenize("Xyz") == [tokenizer.unk_token]


def test_a_corpus_without_unlinked_is_read_when_that_is_not_asked_for(tmp_path):
    simple_corpus(tmp_path / "corpus")
    part = tmp_path / "corpus" / "validation" / "part-00000.parquet"
    write_part(part, [example(0, "a b")], without=["unlinked"])
    assert not Corpus.open(str(tmp_path / "corpus")).has_unlinked
    assert Corpus.open(str(simple_corpus(tmp_path / "newer"))).has_unlinked
    corpus = Corpus.open(str(tmp_path / "corpus"))
    rows = data.load_split(corpus, "validation", cache_dir=str(tmp_path / "cache"))
    assert rows.column_names == ["id", "tokens", "ner_tags", "phrases"]


@pytest.mark.parametrize(("wanted", "found"), [(0, 40), (1, 1), (20, 20), (21, 21), (99, 40)])
def test_the_first_examples_are_read(tmp_path, wanted, found):
    corpus = Corpus.open(str(simple_corpus(tmp_path / "corpus")))
    rows = data.load_split(corpus, "train", wanted, cache_dir=str(tmp_path / "cache"))
    assert rows["id"] == [f"1:{number}:0" for number in range(found)]


def test_labels_say_category_and_phrases():
    rows = datasets.Dataset.from_dict(
        {
            "phrases": [
                [["tennis player", "player"], []],
                [],
                [["city"], ["tennis player", "player"]],
            ]
        }
    )
    sets = lazy("pretrain.training.phrase_sets").PhraseSets(rows, 4)
    assert sets.sets == [[], ["city"], ["tennis player", "player"]]
    labels = np.array([0, 3, 4, 4, 0, 5, 3, 0])
    added = sets.added(labels, [["tennis player", "player"], [], ["city"]])
    assert added.tolist() == [0, 3 + 16, 4 + 16, 4 + 16, 0, 5, 3 + 8, 0]
    number, inside = (added - 1) // 2, added % 2
    assert (number % 4)[labels > 0].tolist() == ((labels - 1) // 2)[labels > 0].tolist()
    assert inside.tolist() == (labels % 2).tolist()
    assert sets.added(np.zeros(3, np.int64), []).tolist() == [0, 0, 0]
    assert sets.added(labels, [["unheard of"], [], []]).tolist() == labels.tolist()
