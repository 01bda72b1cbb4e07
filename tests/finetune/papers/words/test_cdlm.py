"""CDLM: generated weights, sampled softmax and language models, on small numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from finetune.settings import FitSettings
from tests.helpers.lazy import lazy
from tests.helpers.toy import rows

cdlm = lazy("finetune.papers.words.cdlm")
crf = lazy("finetune.heads.crf")
sequence = lazy("finetune.papers.words.states")
tagger = lazy("finetune.tagger.tagger")
torch = lazy("torch")
train_rows = lazy("finetune.tagger.train_rows")
trainer = lazy("pretrain.training.trainer")
words_module = lazy("finetune.papers.words.words")

NAMES = ("O", "B-city", "I-city")


def test_generated_weights_are_those_of_a_plain_lstm():
    """Equation 3: a tensor times the vectors of task and domain; then torch's LSTM."""
    torch.manual_seed(0)
    made = cdlm.GeneratedLstm(3, 2)
    states, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 4, [True, True, False, False]])
    for task in (0, 1):
        for domain in (0, 1):
            flat = sum(
                made.tensor[t, d] * made.tasks[task, t] * made.domains[domain, d]
                for t in range(8)
                for d in range(8)
            )
            plain = torch.nn.LSTM(3, 2, batch_first=True, bidirectional=True)
            torch.nn.utils.vector_to_parameters(flat.detach(), plain.parameters())
            found = made(states, mask, task, domain)
            assert torch.allclose(found[:1], plain(states[:1])[0], atol=1e-6)
            assert torch.allclose(found[1:, :2], plain(states[1:, :2])[0], atol=1e-6)
    made(states, mask, 0, 1).sum().backward()
    assert made.tensor.grad.abs().sum() > 0
    assert made.tasks.grad[1].abs().sum() == 0
    assert made.domains.grad[0].abs().sum() == 0


def test_all_words_drawn_is_the_whole_softmax():
    torch.manual_seed(0)
    model = cdlm.NextWord(3, 7, samples=50)
    torch.nn.init.normal_(model.biases.weight)
    states, words = torch.randn(5, 3), torch.tensor([0, 6, 2, 2, 5])
    scores = states @ model.vectors.weight.T + model.biases.weight.T
    whole = torch.nn.functional.cross_entropy(scores, words, reduction="sum")
    assert model(states, words).item() == pytest.approx(whole.item(), rel=1e-5)


def test_drawn_words_stand_for_all():
    """The mean of the drawn sums of exponentials is the sum over the other words."""
    torch.manual_seed(0)
    model = cdlm.NextWord(2, 40, samples=10)
    states, words = torch.randn(1, 2) * 3, torch.tensor([0])
    torch.nn.init.normal_(model.vectors.weight)
    scores = (states @ model.vectors.weight.T)[0]
    # exp(loss + right score) is the sum of all drawn exponentials
    drawn = [(model(states, words) + scores[0]).exp() for _ in range(3000)]
    assert torch.stack(drawn).mean().item() == pytest.approx(scores.exp().sum().item(), rel=0.05)


def test_the_loss_of_text_is_half_of_both_directions():
    """One table of words for both; those that no text has are not predicted."""
    torch.manual_seed(0)
    head = cdlm.Cdlm(3, NAMES, [["city"], ["city"]], words=5, rows=9, hidden=4, dropout=0.0)
    states, ids = torch.randn(2, 4, 3), torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    mask = ids.gt(0)
    places = [-1, 0, 1, -1, 2, 3, 4, -1, -1]
    head.places.copy_(torch.tensor(places))
    kinds = torch.tensor([sequence.SOURCE + sequence.TEXT] * 2)
    total = head(sequence.Words(states, mask, torch.zeros_like(ids), kinds, ids))
    expected = 0.0
    for text, length in ((0, 4), (1, 2)):
        hidden = head.lstm(states[text : text + 1, :length], mask[text : text + 1, :length], 1, 1)
        for place in range(length):
            for other, half in ((place + 1, slice(0, 2)), (place - 1, slice(2, 4))):
                if 0 <= other < length and (word := places[int(ids[text, other])]) >= 0:
                    state = hidden[0, place : place + 1, half]
                    expected += head.words(state, torch.tensor([word]))
    assert total.item() == pytest.approx(expected.item() / 2, rel=1e-5)


def test_each_domain_has_its_tags():
    head = cdlm.Cdlm(3, NAMES, [["city"], []], words=9, rows=9, hidden=4, dropout=0.0)
    states, mask = torch.randn(1, 3, 3), torch.ones(1, 3, dtype=torch.bool)
    words = sequence.Words(states, mask, torch.tensor([[1, 2, 0]]), torch.tensor([0]))
    head(words).backward()
    assert head.domains.layers[0].weight.grad.abs().sum() > 0
    assert head.domains.layers[1].weight.grad is None
    assert (head.domains.emissions(torch.randn(1, 3, 4), 1)[..., 1:] == crf.FORBIDDEN).all()


def test_tags_of_the_target_have_their_weight():
    torch.manual_seed(0)
    sizes = {"words": 2, "rows": 2, "hidden": 4, "dropout": 0.0, "target_weight": 2.0}
    head = cdlm.Cdlm(3, NAMES, [["city"], ["city"]], **sizes)
    states, mask = torch.randn(1, 3, 3), torch.ones(1, 3, dtype=torch.bool)
    tags = torch.tensor([[1, 2, 0]])
    for domain, weight in ((sequence.TARGET, 2), (sequence.SOURCE, 1)):
        total = head(sequence.Words(states, mask, tags, torch.tensor([domain])))
        emissions = head.domains.emissions(head.lstm(states, mask, 0, domain), domain)
        once = -head.domains.crfs[domain](emissions, tags, mask).sum()
        assert total.item() == pytest.approx(weight * once.item(), rel=1e-5)


def test_the_next_sentences_of_the_text_come_in_each_epoch():
    """As many as the domain has with labels; after the last one it begins again."""
    kinds = np.array([0, 0, 1, 2, 2, 2, 2, 2, 3])
    groups = sequence.epochs_of(kinds)
    sampler = trainer.LengthBatches(np.arange(1, 10, dtype=np.int32), 3, groups=groups)
    assert len(sampler) == 2  # 3 with labels, 2 of the target's text, 1 of the source's
    seen = []
    for epoch in range(4):
        sampler.set_epoch(epoch)
        epoch_pieces = sorted(piece for batch in sampler for piece in batch)
        assert epoch_pieces[:3] == [0, 1, 2]
        assert epoch_pieces[-1] == 8
        seen += epoch_pieces[3:-1]
    assert seen == [3, 4, 5, 6, 3, 7, 4, 5]


def test_only_words_of_the_texts_are_predicted(tmp_path):
    """Given vectors of other words are known to the model, and never predicted."""
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"word{n} 0.1 0.2\n" for n in range(50)) + "ulm 1 1\n")
    settings = FitSettings(head="cdlm", epochs=1, vectors=(str(vectors),), spelling="cnn")
    fitted = tagger.Tagger("words", settings).fit(rows(8), [])
    words = {word.lower() for row in rows(8) for word in row.tokens}
    sizes = fitted.model.config.tag_head_sizes
    assert sizes["rows"] > 50 + len(words) - 2
    assert len(words) <= sizes["words"] <= len(words) + 5  # and the words that name types
    head = fitted.model.words_head
    assert int((head.places >= 0).sum()) == sizes["words"] == head.words.vectors.num_embeddings


def test_the_convolution_over_characters_by_loops():
    config = SimpleNamespace(words=1, word_size=2, characters=9, grams=0, spelling="cnn")
    model = words_module.WordVectors(config).eval()
    given = torch.tensor([[2, 5, 6, 0, 0], [2, 7, 8, 3, 4]])
    found = model(given)[:, 2:]
    weight, bias = model.convolution.weight, model.convolution.bias
    for row, word in enumerate([[2, 5, 6], [2, 7, 8, 3, 4]]):
        letters = [
            torch.zeros(30),
            *model.character_embeddings(torch.tensor(word)),
            torch.zeros(30),
        ]
        features = [
            sum(weight[:, :, step] @ letters[place + step] for step in range(3)) + bias
            for place in range(len(word))
        ]
        assert torch.allclose(found[row], torch.stack(features).max(0).values, atol=1e-5)
