"""The vectors of words and of their spelling."""

import pytest

from finetune.settings import FitSettings
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet
from tests.helpers.lazy import lazy
from tests.helpers.toy import rows

bilstm = lazy("finetune.papers.words.bilstm")
torch = lazy("torch")
vocabulary = lazy("finetune.papers.words.vocabulary")

LABELS = LabelSet(("city", "person"))


def made(train, vectors=(), **changes):
    settings = FitSettings(vectors=tuple(map(str, vectors)), **changes)
    return bilstm.build("words", train, LABELS, settings)


def ids_of(tokenizer, *words):
    found = tokenizer([[word] for word in words], is_split_into_words=True).encodings
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(entry.ids) for entry in found], True)


def test_words_are_found_whatever_their_case(tmp_path):
    (tmp_path / "vectors.txt").write_text("2 3\nulm 1 2 3\nOther 4 5 6\n")
    tokenizer, model = made(rows(8), [tmp_path / "vectors.txt"], spelling="none")
    model.eval()
    found = model.vectors(ids_of(tokenizer, "Ulm", "ULM", "other", "lived", "in", "unheard", "of"))
    ulm, upper, other, lived, within, unheard, of = found.tolist()
    assert ulm == upper == [1, 2, 3]
    assert other == [4, 5, 6]
    assert lived != within != unheard
    assert unheard == of == model.vectors.word_embeddings.weight[0].tolist()
    (tmp_path / "bad.txt").write_text("a 1 2\nb 1\n")
    with pytest.raises(UserError, match=r"bad.txt: line 2: 1 numbers instead of 2"):
        made(rows(8), [tmp_path / "bad.txt"])


def test_rare_words_are_forgotten_in_training_only():
    once = [*rows(8), Sentence(["hapax", "hapax2", "hapax2"], ["O"] * 3)]
    tokenizer, model = made(once, spelling="none")
    ids = ids_of(tokenizer, "hapax", "hapax2")
    torch.manual_seed(0)
    drawn = torch.stack([model.train().vectors(ids) for _ in range(40)])
    unknown = (drawn == model.vectors.word_embeddings.weight[0]).all(-1).sum(0)
    assert 5 < unknown[0] < 35
    assert unknown[1] == 0
    weight = model.vectors.word_embeddings.weight
    assert not (model.eval().vectors(ids) == weight[0]).all(-1).any()
    assert model.vectors.rows(ids).gt(0).all()


def test_a_spelling_is_the_mean_of_its_known_grams(tmp_path):
    """As Hashimoto et al. give it: every n-gram of 2 to 4 marks, repetitions counted again."""
    known = {"2gram-an": [1.0, 0.0], "3gram-na#END#": [0.0, 6.0], "4gram-#BEGIN#ban": [3.0, 3.0]}
    lines = [f"{name} {one} {other}\n" for name, (one, other) in known.items()]
    (tmp_path / "grams.txt").write_text("".join(lines))
    tokenizer, model = made(rows(8), [tmp_path / "grams.txt"], spelling="ngrams", word_size=1)
    words = ["banana", "an", "xyz", "ana"]
    found = model.eval().vectors(ids_of(tokenizer, *words))[:, 1:]
    for word, vector in zip(words, found, strict=True):
        marks = ["#BEGIN#", *word, "#END#"]
        grams = [
            f"{size}gram-{''.join(marks[place : place + size])}"
            for size in (2, 3, 4)
            for place in range(len(marks) - size + 1)
        ]
        hits = [known[gram] for gram in grams if gram in known]
        mean = [sum(column) / len(hits) for column in zip(*hits, strict=True)] or [0.0, 0.0]
        assert vector.tolist() == pytest.approx(mean), word


def test_grams_of_the_train_words_without_a_file():
    assert vocabulary.gram_of("#BEGIN#ab#END#") == ("#BEGIN#", "a", "b", "#END#")
    assert vocabulary.grams_of("ab")[:3] == [("#BEGIN#", "a"), ("a", "b"), ("b", "#END#")]
    tokenizer, model = made(rows(8), spelling="ngrams", word_size=1)
    vectors = model.eval().vectors(ids_of(tokenizer, "Ulm", "Qqq"))[:, 1:]
    assert vectors[0].abs().sum() > 0
    assert vectors[1].abs().sum() == 0
