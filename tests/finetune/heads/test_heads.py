from dataclasses import replace
from types import SimpleNamespace

import pytest

from finetune.settings import FitSettings
from tests.helpers.lazy import lazy
from tests.helpers.toy import QUICK, rows

crf_module = lazy("finetune.heads.crf")
features = lazy("pretrain.training.features")
linear = lazy("finetune.heads.windows")
tagger_module = lazy("finetune.tagger.tagger")
torch = lazy("torch")
transformers = lazy("transformers")

NAMES = ["O", "B-A", "I-A", "B-B", "I-B"]


@pytest.fixture
def head():
    model = torch.nn.Module()
    model.config = SimpleNamespace(id2label=dict(enumerate(NAMES)))
    torch.manual_seed(0)
    crf_module.CrfHead.restore(model)
    return crf_module.CrfHead(model), model.crf


def test_labels_are_packed_for_loss_and_path(head):
    """First sub-words stand anywhere; a row may have none."""
    crf_head, crf = head
    labels = torch.full((3, 7), features.IGNORED)
    places = [[1, 3, 4], [], [2, 6]]
    gold = [[1, 2, 0], [], [3, 4]]
    for row, (at, tags) in enumerate(zip(places, gold, strict=True)):
        labels[row, at] = torch.tensor(tags, dtype=torch.long)
    logits = torch.randn(3, 7, len(NAMES))
    alone = [
        crf(logits[row, at].unsqueeze(0), torch.tensor([tags]))
        for row, (at, tags) in enumerate(zip(places, gold, strict=True))
        if at
    ]
    loss = crf_head.loss(SimpleNamespace(logits=logits), labels, 5)
    assert torch.isclose(loss, -torch.cat(alone).sum() / 5)
    found = crf_head.best(logits, (labels, None))
    for row, at in enumerate(places):
        if at:
            assert found[row, at].tolist() == crf.decode(logits[row, at].unsqueeze(0))[0]


def test_no_stray_inside_tag(head):
    crf_head, _ = head
    for seed in range(50):
        logits = torch.randn(12, 5, generator=torch.Generator().manual_seed(seed)) * 5
        tags, scores = crf_head.decode(logits.numpy())
        assert all(0 < score <= 1 for score in scores)
        for before, tag in zip([0, *tags], tags, strict=False):
            assert tag not in (2, 4) or before in (tag - 1, tag)
    assert crf_head.decode(torch.zeros(0, 5).numpy()) == ([], [])


def test_linear_head_is_softmax():
    tags, scores = linear.LinearHead().decode(torch.tensor([[0.0, 2.0], [1.0, 1.0]]).numpy())
    assert tags[0] == 1
    assert scores == pytest.approx([0.8808, 0.5], abs=1e-4)


def test_tagger_with_a_crf(base, tmp_path):
    tagger = tagger_module.Tagger(base, replace(QUICK, head="crf")).fit(rows(48), rows(12, 48))
    assert tagger.score(rows(12, 60)) == 1
    tagger.save(str(tmp_path / "crf"))
    again = tagger_module.Tagger.load(str(tmp_path / "crf"))
    text = ["Emmy Noether lived in Rom"]
    assert again.predict(text) == tagger.predict(text)
    assert isinstance(again._model.crf, crf_module.CRF)
    plain = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path / "crf")
    assert plain.num_labels == 5
    # Another head in its place: the CRF stays behind.
    other = tagger_module.Tagger(str(tmp_path / "crf"), QUICK).fit(rows(48), rows(12, 48))
    other.save(str(tmp_path / "linear"))
    assert tagger_module.Tagger.load(str(tmp_path / "linear")).predict(text) == other.predict(text)
    assert not hasattr(other._model, "crf")


@pytest.mark.parametrize("rate", [1e-5, 0.0])
def test_the_head_has_its_own_learning_rate(base, monkeypatch, rate):
    """One step of Adam moves each weight by its rate; none moves at a rate of 0."""
    from finetune.tagger import fitting as module

    settings = FitSettings(learning_rate=rate, head_learning_rate=1e-2, epochs=1, batch_size=64)
    start = {}
    trained = module.trained

    def watched(head, *args, **kwargs):
        start.update({name: value.clone() for name, value in head.model.state_dict().items()})
        return trained(head, *args, **kwargs)

    monkeypatch.setattr(module, "trained", watched)
    tagger = tagger_module.Tagger(
        base, replace(settings, head="multicell", keep="last", max_subwords=32)
    )
    tagger.fit(rows(24))
    moved = {
        name: (value - start[name]).abs().max().item()
        for name, value in tagger.model.state_dict().items()
        if value.is_floating_point()
    }
    heads = {name: step for name, step in moved.items() if name.startswith("words_head.")}
    others = {name: step for name, step in moved.items() if name not in heads}
    assert max(heads.values()) == pytest.approx(1e-2, rel=0.01)
    if rate:
        assert max(others.values()) == pytest.approx(rate, rel=0.1)
    else:
        assert not any(others.values())
    assert all(weight.requires_grad for weight in tagger.model.parameters())


def test_something_must_be_trained():
    with pytest.raises(ValueError, match="--learning-rate 0 trains nothing"):
        FitSettings(learning_rate=0.0)
