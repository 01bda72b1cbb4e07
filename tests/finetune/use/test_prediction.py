"""Texts are parted into sentences; tokens and probabilities; models that are checked first."""

from pathlib import Path

import numpy as np
import pytest

from finetune.data import conll
from finetune.tagger.texts import TextSplitter
from nerbert.commands.table import main
from nerbert.text.sentences import SENTENCES, SentenceModel
from nerbert.text.words import spans_in_text
from tests.helpers.lazy import lazy
from tests.helpers.toy import FLAGS, QUICK, rows, write_set

tagger = lazy("finetune.tagger.tagger")

ONE = "Ada Byron lived in Ulm."
OTHER = "Emmy Noether lived in Rom for years."


def found(entities, shift=0):
    return [(e.start + shift, e.end + shift, e.type, e.text) for e in entities]


@pytest.mark.parametrize("between", [" ", "\n", "  \n\n "])
def test_each_sentence_is_tagged_by_itself(fitted, between):
    text = ONE + between + OTHER
    alone = [fitted.predict([one])[0] for one in (ONE, OTHER)]
    (both,) = fitted.predict([text])
    assert found(both) == found(alone[0]) + found(alone[1], len(ONE + between))
    assert all(text[e.start : e.end] == e.text for e in both)
    (whole,) = fitted.predictions([text], split=False)
    assert whole.spans == spans_in_text(text)


def test_words_of_a_text_do_not_depend_on_other_texts(fitted):
    texts = [ONE + " " + OTHER, "", "x", OTHER]
    together = fitted.predictions(texts)
    for text, one in zip(texts, together, strict=True):
        (alone,) = fitted.predictions([text])
        assert (alone.words, alone.tags) == (one.words, one.tags)
    assert together[1].words == []


def test_abbreviations_of_the_corpus(fitted, tmp_path):
    text = "He met Abg. Byron in Ulm. She left."
    assert len(TextSplitter().sentences(text)) == 3
    model = SentenceModel.train(["Der Abg. Byron sprach. Auch Abg. Noether sprach."] * 40)
    TextSplitter(model).save(tmp_path)
    assert (tmp_path / SENTENCES).is_file()
    again = TextSplitter.beside(tmp_path)
    assert len(again.sentences(text)) == 2
    fitted.save(tmp_path / "saved")
    assert not (tmp_path / "saved" / SENTENCES).exists()
    (tmp_path / "saved" / SENTENCES).write_text(model.to_json(), encoding="utf-8")
    loaded = tagger.Tagger.load(tmp_path / "saved")
    loaded.save(tmp_path / "copy")
    assert (tmp_path / "copy" / SENTENCES).read_text(encoding="utf-8") == model.to_json()


def test_the_usual_abbreviations_are_known():
    assert len(TextSplitter().sentences("Mr. Smith met Dr. Jones. They left.")) == 2


def test_lists_of_tokens(fitted):
    tokens = "Ada Byron lived in Ulm".split()
    (entities,) = fitted.predict([tokens])
    assert found(entities) == [(0, 2, "person", "Ada Byron"), (4, 5, "city", "Ulm")]
    mixed = fitted.predict([tokens, ONE])
    assert found(mixed[0]) == found(entities)
    assert found(mixed[1])[0][:2] == (0, 9)


def test_probabilities(fitted):
    texts = [ONE + " " + OTHER, "Ulm".split(), ""]
    for one in fitted.predictions(texts, probabilities=True):
        assert one.probabilities.shape == (len(one.words), len(fitted.tags))
        if one.words:
            assert np.allclose(one.probabilities.sum(1), 1, atol=1e-5)
            best = one.probabilities.argmax(1)
            assert [fitted.tags[place] for place in best] == one.tags
            assert np.allclose(one.probabilities.max(1), one.scores)
    assert fitted.predictions(texts)[0].probabilities is None


def test_paths_in_the_whole_api(base, tmp_path):
    folder = write_set(tmp_path / "toy")
    made = tagger.Tagger(Path(base), QUICK).fit(Path(folder))
    made.save(tmp_path / "saved")
    again = tagger.Tagger.load(tmp_path / "saved")
    assert again.score(folder) == made.score(str(folder)) > 0.8
    conll.write(conll.read(folder / "test.txt"), tmp_path / "copy.txt")
    assert again.score(tmp_path / "copy.txt") == again.score(folder)


def test_types_of_several_sets(base, tmp_path):
    """Two sets that name their types in other ways; scores go by the unified names, too."""
    one = write_set(tmp_path / "one", person="PER", city="LOC")
    other = write_set(tmp_path / "other", person="person", city="Location")
    quick = tagger.FitSettings(learning_rate=2e-3, epochs=4, batch_size=8)
    both = tagger.Tagger(base, quick).fit([one, other])
    assert both.tags == ["O", "B-location", "I-location", "B-person", "I-person"]
    kept = tagger.Tagger(base, quick).fit([one, other], keep_types=True)
    assert {tag[2:] for tag in kept.tags} == {"", "LOC", "Location", "PER", "person"}
    single = tagger.Tagger(base, QUICK).fit(one)
    assert {tag[2:] for tag in single.tags} == {"", "LOC", "PER"}
    assert single.score(other) == single.score(one) > 0.8
    assert tagger.Tagger(base, quick).fit(f"{one}+{other}").tags == both.tags


def test_all_models_are_checked_before_the_first_training(base, tmp_path, capsys):
    folder = write_set(tmp_path / "toy")
    (tmp_path / "torn").mkdir()
    for path in Path(base).iterdir():
        (tmp_path / "torn" / path.name).write_bytes(path.read_bytes())
    weights = tmp_path / "torn" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    for bad, told in ((tmp_path / "none", "no such folder"), (tmp_path / "torn", "")):
        flags = ["--data", str(folder), *map(str, FLAGS), "--output", str(tmp_path / "report")]
        assert main(["evaluate", "--models", base, str(bad), *flags]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"--models {bad}: {told}")
        assert err.count("\n") == 1
        assert not (tmp_path / "report" / "runs").exists()


def test_the_last_weights(base):
    """With `keep="last"` all steps are done, whatever the dev set says."""
    settings = tagger.FitSettings(
        learning_rate=2e-3, epochs=6, batch_size=8, patience=1, keep="last"
    )
    made = tagger.Tagger(base, settings).fit(rows(16), rows(2, 48))
    evaluations = [line for line in made.history if "eval_f1" in line]
    assert len(evaluations) == 6
    assert evaluations[-1]["step"] == 12
