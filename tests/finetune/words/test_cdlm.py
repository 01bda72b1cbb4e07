"""CDLM: generated weights, sampled softmax and language models, on small numbers."""

import pytest

from tests.helpers.lazy import lazy

cdlm = lazy("finetune.words.cdlm")
sequence = lazy("finetune.heads.sequence")
torch = lazy("torch")

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
    torch.manual_seed(0)
    head = cdlm.Cdlm(3, NAMES, [["city"], ["city"]], words=9, hidden=4, dropout=0.0)
    states, rows = torch.randn(2, 4, 3), torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    mask = rows.gt(0)
    kinds = torch.tensor([sequence.SOURCE + sequence.TEXT] * 2)
    total = head(sequence.Words(states, mask, torch.zeros_like(rows), kinds, rows))
    expected = 0.0
    for text, length in ((0, 4), (1, 2)):
        hidden = head.lstm(states[text : text + 1, :length], mask[text : text + 1, :length], 1, 1)
        for place in range(length):
            if place + 1 < length:
                expected += head.after(
                    hidden[0, place : place + 1, :2], rows[text, place + 1 :][:1]
                )
            if place:
                expected += head.before(
                    hidden[0, place : place + 1, 2:], rows[text, place - 1 :][:1]
                )
    assert total.item() == pytest.approx(expected.item() / 2, rel=1e-5)


def test_each_domain_has_its_tags():
    head = cdlm.Cdlm(3, NAMES, [["city"], []], words=9, hidden=4, dropout=0.0)
    states, mask = torch.randn(1, 3, 3), torch.ones(1, 3, dtype=torch.bool)
    words = sequence.Words(states, mask, torch.tensor([[1, 2, 0]]), torch.tensor([0]))
    head(words).backward()
    assert head.domains.layers[0].weight.grad.abs().sum() > 0
    assert head.domains.layers[1].weight.grad is None
    assert (head.domains.emissions(torch.randn(1, 3, 4), 1)[..., 1:] == sequence.FORBIDDEN).all()
