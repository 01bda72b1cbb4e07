import pytest

from tests.helpers.lazy import lazy

flop_counter = lazy("torch.utils.flop_counter")
logs = lazy("pretrain.training.logs")
torch = lazy("torch")
transformers = lazy("transformers")

SMALL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "num_labels": 7,
}


def test_flops_are_those_that_torch_counts():
    model = transformers.BertForTokenClassification(
        transformers.BertConfig(**SMALL, attn_implementation="eager")
    )
    mask = torch.ones(3, 16, dtype=torch.long)
    counter = flop_counter.FlopCounterMode(display=False)
    with counter:
        model(input_ids=torch.ones_like(mask), attention_mask=mask).logits.sum().backward()
    # The first layer's input needs no gradient of its own; the embeddings take none of ours.
    assert logs.TrainingFlops(model).of(mask.sum(-1)) == pytest.approx(
        counter.get_total_flops(), rel=0.01
    )


def test_only_real_subwords_count():
    model = transformers.BertForTokenClassification(transformers.BertConfig(**SMALL))
    meter = logs.Throughput(model, torch.device("cpu"), devices=2)
    assert meter.log() == {}
    meter.add(torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]))
    rates = meter.log()
    assert rates["padding"] == 0.5
    assert "mfu" not in rates
    assert meter.totals()["padding"] == 0.5
    assert meter.subwords == 4
