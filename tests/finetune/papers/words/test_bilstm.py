from dataclasses import replace

from finetune.papers.crossner.settings import SYSTEMS
from finetune.settings import FitSettings
from nerbert.text.tags import LabelSet
from tests.helpers.lazy import lazy
from tests.helpers.runs import parsed
from tests.helpers.toy import rows

bilstm = lazy("finetune.papers.words.bilstm")
torch = lazy("torch")

LABELS = LabelSet(("city", "person"))


def test_tokens_are_boundaries_and_characters():
    tokenizer, _ = bilstm.build("bilstm", rows(8), LABELS, FitSettings())
    encoding = tokenizer([["Ulm", "x", "Ω"]], is_split_into_words=True).encodings[0]
    assert encoding.word_ids == [0, 0, 0, 0, 1, 1, 2, 2]
    assert encoding.tokens == ["▁", "U", "l", "m", "▁", "[UNK]", "▁", "[UNK]"]


def test_a_sentence_scores_the_same_in_any_batch():
    tokenizer, model = bilstm.build("bilstm", rows(8), LABELS, FitSettings())
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


def test_the_sizes_of_crossner():
    """Two layers of 256 in each direction over 300 + 100 numbers, as in its released code."""
    _, settings = parsed("evaluate", *"--model bilstm --data x --recipe bilstm-crf".split())
    _, model = bilstm.build("bilstm", rows(8), LABELS, settings)
    assert (model.word_lstm.input_size, model.word_lstm.hidden_size) == (400, 256)
    assert (model.word_lstm.num_layers, model.word_lstm.dropout) == (2, 0.5)
    assert (settings.source_times, settings.head) == (10, "crf")
    word = replace(settings, spelling="none")
    assert bilstm.build("bilstm", rows(8), LABELS, word)[1].word_lstm.input_size == 300


def test_as_in_the_released_code_of_crossner():
    """Nothing is dropped after the LSTM, no word is forgotten; politics has a dropout of its own."""
    (_, recipe) = parsed("evaluate", "--models", "bilstm", "--data", "x", "--recipe", "bilstm-crf")
    assert (recipe.state_dropout, recipe.forget_rare) == (0.0, False)
    labels = LabelSet(("city",))
    for settings, after, forgotten in ((FitSettings(), 0.5, True), (recipe, 0.0, False)):
        _, model = bilstm.build("bilstm", rows(8), labels, settings)
        assert (model.dropout.p, model.state_dropout.p) == (0.5, after)
        assert bool(model.vectors.rare.any()) == forgotten
    system = SYSTEMS["bilstm-crf"]
    assert system.in_domain("politics", recipe).word_dropout == 0.3
    assert system.in_domain("music", recipe).word_dropout == 0.5
    assert system.in_domain("politics", replace(recipe, word_dropout=0.4)).word_dropout == 0.4
