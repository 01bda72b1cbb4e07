"""Uncased encoders that are told the case of words: in training, in use, exported and shipped."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.normalizers import Lowercase

from nerbert.commands.table import main
from tests.helpers.lazy import lazy
from tests.helpers.toy import QUICK, rows

letter_cases = lazy("pretrain.training.letter_cases")
shipped = lazy("finetune.tagger.shipped")
tagging = lazy("finetune.tagger.tagger")

TEXTS = ["Anna Keller came to Ulm .", "anna keller came to ulm .", "ANNA and Ulm ."]
TYPES = ["person", "city"]


@pytest.fixture(scope="module")
def uncased(base, tmp_path_factory):
    """An encoder whose tokenizer hides the case, and an open tagger that was made from it."""
    folder = tmp_path_factory.mktemp("uncased")
    shutil.copytree(base, folder / "base")
    path = str(folder / "base" / "tokenizer.json")
    tokenizer = Tokenizer.from_file(path)
    tokenizer.normalizer = Lowercase()
    tokenizer.save(path)
    config = folder / "base" / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"do_lower_case": True}))
    settings = replace(QUICK, head="open")
    tagging.Tagger(str(folder / "base"), settings).fit(rows(48), rows(12, 48)).save(
        folder / "tagger"
    )
    return folder


def test_the_case_of_each_sub_word():
    words = ["NATO", "A", "iPhone", "Élan", "ulm", "3", "Ünal-Kaya", "東京"]
    word_ids = [None, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7, None]
    assert letter_cases.cases_of(words, word_ids).tolist() == [0, 2, 2, 1, 0, 1, 1, 0, 0, 1, 0, 0]
    assert letter_cases.cases_of([], [None, None]).tolist() == [0, 0]


def logits_of(tagger):
    return [tagger._logits([[text.split()]])[0] for text in TEXTS]


def test_it_knows_capitals_wherever_it_is_loaded(uncased, tmp_path, monkeypatch):
    tagger = tagging.Tagger.load(uncased / "tagger", device="cpu")
    assert tagger.model.config.type_vocab_size == 3
    with_capitals, without, _ = expected = logits_of(tagger)
    assert not np.allclose(with_capitals, without, atol=1e-2)
    monkeypatch.setattr("finetune.tagger.shipped._cache", lambda: tmp_path / "cache")
    monkeypatch.setattr("finetune.tagger.shipped._DATA", tmp_path / "data")
    monkeypatch.setattr("finetune.tagger.shipped._TOKENIZER", ("tokenizer.json",))
    given = (str(uncased / "base"), [str(uncased / "tagger")], str(tmp_path / "data" / "open-en"))
    shipped.write_difference(*given, "some/encoder", 512)
    whole = shipped.checkpoint_of("open-en", str(uncased / "base"))
    for one, other in zip(logits_of(tagging.Tagger.load(whole)), expected, strict=True):
        assert np.allclose(one, other, atol=0.05)


def test_onnx_runtime_is_told_too(uncased, tmp_path):
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "tagger"
    shutil.copytree(uncased / "tagger", folder)
    assert main(["export", "--model", str(folder), "--format", "onnx"]) == 0
    taggers = [tagging.Tagger.load(folder, backend=name) for name in ("torch", "onnx")]
    for one, other in zip(*map(logits_of, taggers), strict=True):
        assert np.allclose(one, other[:, : one.shape[1]], atol=1e-4)
    expected, found = (tagger.predict(TEXTS, types=TYPES) for tagger in taggers)
    assert [[(e.text, e.type) for e in row] for row in found] == [
        [(e.text, e.type) for e in row] for row in expected
    ]


def test_fine_tuning_goes_on_with_the_cases(uncased, tmp_path):
    folder = str(uncased / "tagger")
    start = tagging.Tagger.load(folder).model.get_input_embeddings().weight.detach()
    for head in ("open", "linear"):
        tagger = tagging.Tagger(folder, replace(QUICK, head=head, epochs=1)).fit(rows(8))
        assert tagger.model.config.type_vocab_size == 3
        assert tagger.model.get_input_embeddings().weight.shape == start.shape
        with_capitals, without, _ = logits_of(tagger)
        assert not np.allclose(with_capitals, without, atol=1e-3)
        tagger.save(tmp_path / head)
        again = tagging.Tagger.load(tmp_path / head)
        assert np.allclose(logits_of(again)[0], with_capitals, atol=1e-5)


def test_cased_encoders_are_told_nothing(base):
    settings = replace(QUICK, head="open", epochs=1)
    tagger = tagging.Tagger(base, settings).fit(rows(8))
    assert tagger.model.config.type_vocab_size == 2
    assert not letter_cases.takes_cases(tagger.tokenizer)
