"""LoRA: what is trained, and what is left behind."""

from dataclasses import replace

import pytest

from tests.helpers.lazy import lazy
from tests.helpers.toy import QUICK, rows

lora_module = lazy("finetune.tagger.lora")
models = lazy("pretrain.training.models")
tagger = lazy("finetune.tagger.tagger")
torch = lazy("torch")
transformers = lazy("transformers")
safetensors = lazy("safetensors.torch")

LORA = replace(QUICK, lora_rank=4, learning_rate=1e-2, epochs=20)


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_an_ordinary_checkpoint(base, tmp_path, head):
    made = tagger.Tagger(base, replace(LORA, head=head)).fit(rows(48), rows(12, 48))
    assert made.score(rows(12, 48)) > 0.8
    made.save(tmp_path / "saved")
    state = safetensors.load_file(tmp_path / "saved" / "model.safetensors")
    assert not any("lora" in name or "base_layer" in name for name in state)
    again = tagger.Tagger.load(tmp_path / "saved")
    texts = [row.tokens for row in rows(9, 60)]
    assert again.tag(texts) == made.tag(texts)
    transformers.AutoModelForTokenClassification.from_pretrained(tmp_path / "saved")


@pytest.mark.parametrize("rate", [None, 1e-2])
def test_only_the_matrices_and_the_head_are_trained(base, rate):
    """The change of a weight has LoRA's rank; embeddings and norms stay."""
    settings = replace(LORA, head_learning_rate=rate)
    made = tagger.Tagger(base, settings).fit(rows(48), rows(12, 48))
    before = models.load_encoder(base).state_dict()
    after = made.model.base_model.state_dict()
    changed = {
        name for name, value in after.items() if not torch.allclose(value, before[name], atol=1e-7)
    }
    assert changed
    assert all(name.endswith("weight") and before[name].dim() == 2 for name in changed)
    assert not any("embeddings" in name for name in changed)
    for name in changed:
        values = torch.linalg.svdvals(after[name] - before[name])
        assert (values[4:] < 1e-4 * values[0]).all(), name


def test_all_of_a_large_head_is_trained(base, monkeypatch):
    from finetune.tagger import fitting

    start, trained = {}, fitting.trained

    def watched(head, *args, **kwargs):
        start.update({name: weight.clone() for name, weight in head.model.named_parameters()})
        return trained(head, *args, **kwargs)

    monkeypatch.setattr(fitting, "trained", watched)
    settings = replace(LORA, head="multicell", word_hidden=8, epochs=1, keep="last")
    made = tagger.Tagger(base, settings).fit(rows(24))
    weights = {n: w for n, w in made.model.named_parameters() if n.startswith("words_head.")}
    still = {name for name, weight in weights.items() if torch.equal(weight, start[name])}
    assert {name.split(".")[1] for name in weights.keys() - still} >= {"forwards", "domains"}
    assert all(".1" in name or "domains" in name for name in still)  # of the other domain


def test_scale(base):
    """The merged change is alpha / rank * B A, as in equation 3 of the paper."""
    model = models.load_encoder(base)
    name, layer = next(
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
    )
    before = layer.weight.detach().clone()
    with lora_module.lora(model, ["classifier"], 2, 8):
        inside = model.get_submodule(name)
        torch.manual_seed(0)
        inside.lora_B["default"].weight.data.normal_()
        change = inside.lora_B["default"].weight @ inside.lora_A["default"].weight
    after = model.get_submodule(name).weight
    assert torch.allclose(after, before + 8 / 2 * change, atol=1e-5)
