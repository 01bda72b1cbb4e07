import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertForTokenClassification

from ontology.labels import LabelSet
from pipeline.errors import UserError
from pretrain import tagging
from pretrain.throughput import Throughput, TrainingFlops

SMALL = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 128, "num_labels": 7}  # fmt: skip


def test_loss_is_the_mean_over_labelled_subwords():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 5, 7), torch.randint(0, 7, (2, 5))
    labels[0, 1] = labels[1, 3] = -100
    expected = torch.stack([
        -logits[row, place].log_softmax(-1)[labels[row, place]]
        for row in range(2) for place in range(5) if labels[row, place] >= 0
    ])  # fmt: skip
    outputs = SimpleNamespace(logits=logits)
    assert torch.isclose(tagging.token_loss(outputs, labels), expected.mean())
    # Halves of a step, each divided by the items of the whole.
    halves = [tagging.token_loss(SimpleNamespace(logits=logits[i : i + 1]), labels[i : i + 1], 8)
              for i in range(2)]  # fmt: skip
    assert torch.isclose(sum(halves), expected.mean())
    assert tagging.token_loss(outputs, torch.full_like(labels, -100)) == 0


def test_flops_are_those_that_torch_counts():
    model = BertForTokenClassification(BertConfig(**SMALL, attn_implementation="eager"))
    mask = torch.ones(3, 16, dtype=torch.long)
    counter = FlopCounterMode(display=False)
    with counter:
        model(input_ids=torch.ones_like(mask), attention_mask=mask).logits.sum().backward()
    # The first layer's input needs no gradient of its own; the embeddings take none of ours.
    assert TrainingFlops(model).of(mask.sum(-1)) == pytest.approx(
        counter.get_total_flops(), rel=0.01
    )


def test_only_real_subwords_count():
    model = BertForTokenClassification(BertConfig(**SMALL))
    meter = Throughput(model, torch.device("cpu"), devices=2)
    assert meter.log() == {}
    meter.add(torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]))
    rates = meter.log()
    assert rates["padding"] == 0.5
    assert "mfu" not in rates
    assert meter.totals()["padding"] == 0.5
    assert meter.subwords == 4


def test_head_is_fresh_and_named(tmp_path):
    model = BertForTokenClassification(BertConfig(**SMALL))
    model.save_pretrained(tmp_path)
    labels = LabelSet(("ENTITY", "City"))
    loaded = tagging.load_model(str(tmp_path), labels, 512)
    assert loaded.config.id2label == dict(enumerate(labels.tags))
    assert loaded.classifier.weight.shape == (5, 64)
    with pytest.raises(UserError, match=r"--max-subwords 513: .* takes 512 or fewer"):
        tagging.load_model(str(tmp_path), labels, 513)
    ours, theirs = loaded.bert.state_dict(), model.bert.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_no_model_is_one_line(tmp_path, make):
    make(tmp_path / "model")
    with pytest.raises(UserError, match=r"--base-model .*model: .*; give a model of the hub") as e:
        tagging.load_tokenizer(str(tmp_path / "model"))
    assert "\n" not in str(e.value)


def test_vocabulary_is_the_same_in_every_process():
    code = (
        "from pretrain.tiny import wordpiece_vocabulary as make\n"
        "texts = [' '.join(a + b + c for b in 'aeiou') for a in 'bdgklmnprst' for c in 'nrstx']\n"
        "vocabulary = make(lambda: texts, 150)\n"
        "print(sorted(vocabulary, key=vocabulary.get))"
    )
    found = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            check=True).stdout for _ in range(3)}  # fmt: skip
    assert len(found) == 1
    assert "##aeiou" not in found.pop()
