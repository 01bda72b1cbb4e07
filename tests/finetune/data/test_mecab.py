"""Sentences of characters become sentences of MeCab's words."""

import builtins

import pytest

from finetune.data import mecab
from finetune.data.sets import DataSets
from nerbert.errors import UserError
from nerbert.text.columns import Sentence

TEXT = "夏目漱石は東京大学で学んだ。"
PERSON, SCHOOL = ["B-PER", *["I-PER"] * 3], ["B-ORG", *["I-ORG"] * 3]


@pytest.fixture
def fugashi():
    return pytest.importorskip("fugashi")


def by_hand(fugashi, tokens, tags):
    """The rule of T-NER's code: a word has the tag of its first character; mentions begin by B."""
    words = [word.surface for word in fugashi.Tagger()("".join(tokens))]
    result, start, before = [], 0, "O"
    for word in words:
        tag = tags[start]
        if tag.startswith("I-") and before[2:] != tag[2:]:
            tag = f"B-{tag[2:]}"
        result.append(tag)
        before, start = tag, start + len(word)
    return Sentence(words, result)


def test_words_and_tags_are_those_of_the_released_code(fugashi, caplog):
    caplog.set_level("WARNING", "nerbert")
    whole = [*PERSON, "O", *SCHOOL, *"OOOOO"]
    one = ["O", *["I-PER"] * 13]  # not IOB2, as files may be: a mention begins within a word
    within = ["O", "B-PER", *"OOOOOOOOOOOO"]
    for tags in (whole, one, within):
        (row,) = mecab.in_words([Sentence(list(TEXT), tags)], "f")
        assert row == by_hand(fugashi, list(TEXT), tags)
    (row,) = mecab.in_words([Sentence(list(TEXT), whole)], "f")
    assert [one.getMessage() for one in caplog.records] == [
        "f: 1 of 1 mentions lie within a word of MeCab"
    ]
    assert row.tokens[:2] == ["夏目", "漱石"]
    assert row.tags[:3] == ["B-PER", "I-PER", "O"]


def test_tokens_of_several_characters_and_spaces(fugashi):
    (row,) = mecab.in_words(
        [Sentence(["東京", "\u3000", "Ulm", " ", "は"], ["B-LOC", "O", "B-LOC", "I-LOC", "O"])], "f"
    )
    kept = [pair for pair in zip(row.tokens, row.tags, strict=True) if pair[0].strip()]
    assert kept == [("東京", "B-LOC"), ("Ulm", "B-LOC"), ("は", "O")]


def test_named_set_and_without_mecab(fugashi, tmp_path, monkeypatch):
    lines = "".join(f"ja:{c}\t{t}\n" for c, t in zip(TEXT, [*PERSON, *"O" * 10], strict=True))
    (tmp_path / "panx" / "ja").mkdir(parents=True)
    for split in ("train", "test"):
        (tmp_path / "panx" / "ja" / split).write_text(lines + "\n", encoding="utf-8")
    sets = DataSets(str(tmp_path))
    assert sets.sentences("wikiann/ja", "train")[0].tokens == list(TEXT)
    assert sets.sentences("wikiann-mecab/ja", "test")[0].tokens[:2] == ["夏目", "漱石"]

    real = builtins.__import__

    def without(name, *args, **options):
        if name == "fugashi":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    mecab._tagger.cache_clear()
    with pytest.raises(UserError, match=r"-e '\.\[ja\]' in the checkout"):
        sets.sentences("wikiann-mecab/ja", "train")
