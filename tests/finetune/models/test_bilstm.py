import pytest
from lazy import lazy
from toy import rows

from finetune.evaluate import COMMAND
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet

bilstm = lazy("finetune.models.bilstm")
tagger_module = lazy("finetune.tagger")
torch = lazy("torch")

LABELS = LabelSet(("city", "person"))


def test_tokens_are_boundaries_and_characters():
    tokenizer, _ = bilstm.build(rows(8), LABELS)
    encoding = tokenizer([["Ulm", "x", "Ω"]], is_split_into_words=True).encodings[0]
    assert encoding.word_ids == [0, 0, 0, 0, 1, 1, 2, 2]
    assert encoding.tokens == ["▁", "U", "l", "m", "▁", "[UNK]", "▁", "[UNK]"]


def test_a_sentence_scores_the_same_in_any_batch():
    tokenizer, model = bilstm.build(rows(8), LABELS)
    model.eval()
    texts = [row.tokens for row in rows(8)] + [["Ulm"], ["unheard", "of"]]
    batch = tokenizer(
        texts,
        is_split_into_words=True,
        padding=True,
        return_tensors="pt",
        return_token_type_ids=False,
    )
    together = model(**batch).logits
    for number, text in enumerate(texts):
        alone = tokenizer(
            [text], is_split_into_words=True, return_tensors="pt", return_token_type_ids=False
        )
        logits = model(**alone).logits[0]
        assert torch.allclose(together[number, : len(logits)], logits, atol=1e-6)
        assert logits[1].abs().sum() == 0  # a character
    empty = model(torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 3, dtype=torch.long))
    assert empty.logits.abs().sum() == 0


def test_words_are_found_whatever_their_case(tmp_path):
    (tmp_path / "vectors.txt").write_text("2 3\nulm 1 2 3\nOther 4 5 6\n")
    tokenizer, model = bilstm.build(rows(8), LABELS, str(tmp_path / "vectors.txt"))
    model.eval()

    def vector(word):
        ids = tokenizer([[word]], is_split_into_words=True, return_tensors="pt").input_ids
        return model._word_vectors(ids)[0].tolist()

    assert vector("Ulm") == vector("ULM") == [1, 2, 3]
    assert vector("other") == [4, 5, 6]
    assert vector("lived") != vector("in") != vector("unheard")
    assert vector("unheard") == vector("of") == model.word_embeddings.weight[0].tolist()
    (tmp_path / "bad.txt").write_text("a 1 2\nb 1\n")
    with pytest.raises(UserError, match=r"bad.txt: line 2: 1 numbers instead of 2"):
        bilstm.build(rows(8), LABELS, str(tmp_path / "bad.txt"))


def test_rare_words_are_forgotten_in_training_only():
    once = [*rows(8), Sentence(["hapax", "hapax2", "hapax2"], ["O"] * 3)]
    tokenizer, model = bilstm.build(once, LABELS)
    ids = tokenizer([["hapax", "hapax2"]], is_split_into_words=True, return_tensors="pt").input_ids[
        0
    ]
    words = bilstm._words(
        ids[None], torch.ones_like(ids[None]), ids[None].eq(model.config.boundary_id)
    )
    torch.manual_seed(0)
    drawn = torch.stack([model.train()._word_vectors(words) for _ in range(40)])
    unknown = (drawn == model.word_embeddings.weight[0]).all(-1).sum(0)
    assert 5 < unknown[0] < 35
    assert unknown[1] == 0
    assert not (model.eval()._word_vectors(words) == model.word_embeddings.weight[0]).all(-1).any()


def test_tagger_learns_saves_and_loads(tmp_path):
    flags = "--model bilstm --data x --recipe bilstm-crf --epochs 12 --learning-rate 1e-2"
    _, settings = COMMAND.parse([*flags.split(), "--batch-size", "8"]).settings
    blank = Sentence([" "], ["O"])  # of which the tokenizer makes nothing
    tagger = tagger_module.Tagger(bilstm.NAME, settings).fit(
        [*rows(48), blank], [*rows(12, 48), blank]
    )
    assert tagger.tag([[" "], ["Ulm", " "], []])[0] == ["O"]
    assert tagger.score(rows(12, 60)) > 0.9
    tagger.save(str(tmp_path / "saved"))
    again = tagger_module.Tagger.load(str(tmp_path / "saved"), settings)
    text = ["Ada Byron, unheard of, lived in Ulm.", ""]
    assert again.predict(text) == tagger.predict(text)
