from types import SimpleNamespace

from tests.helpers.lazy import lazy

torch = lazy("torch")
trainer = lazy("pretrain.training.trainer")


def test_loss_is_the_mean_over_labelled_subwords():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 5, 7), torch.randint(0, 7, (2, 5))
    labels[0, 1] = labels[1, 3] = -100
    expected = torch.stack(
        [
            -logits[row, place].log_softmax(-1)[labels[row, place]]
            for row in range(2)
            for place in range(5)
            if labels[row, place] >= 0
        ]
    )
    outputs = SimpleNamespace(logits=logits)
    assert torch.isclose(trainer.token_loss(outputs, labels), expected.mean())
    # Halves of a step, each divided by the items of the whole.
    halves = [
        trainer.token_loss(SimpleNamespace(logits=logits[i : i + 1]), labels[i : i + 1], 8)
        for i in range(2)
    ]
    assert torch.isclose(sum(halves), expected.mean())
    assert trainer.token_loss(outputs, torch.full_like(labels, -100)) == 0
