import copy
from types import SimpleNamespace

import pytest

from finetune.data.sets import DataSets
from finetune.papers.dualner.data import Names, read
from finetune.papers.dualner.settings import METHODS, DualSettings
from tests.helpers.lazy import lazy

dual_training = lazy("finetune.papers.dualner.training")
features = lazy("pretrain.training.features")
runs = lazy("finetune.papers.dualner.runs")
stages = lazy("finetune.papers.dualner.stages")
torch = lazy("torch")


def test_a_better_student_becomes_the_teacher(world, tmp_path, monkeypatch):
    """Its weights are taken over, and it labels everything again; a worse one changes nothing."""
    trainer = trainer_of(world, tmp_path)
    before = [row.clone() for row in trainer._pseudo]
    assert len(before) == len(trainer.train_dataset)
    old = trainer.best.state["classifier.start.bias"].clone()
    with torch.no_grad():
        trainer.model.classifier.bias[1] += 50  # everything is a B- of the first type by its tags
    scores = {"f1": 0.4}
    monkeypatch.setattr(
        dual_training, "scores_by_language", lambda *_: {"x": type("S", (), {"f1": scores["f1"]})()}
    )
    trainer.evaluate()
    assert all(torch.equal(one, other) for one, other in zip(before, trainer._pseudo, strict=True))
    scores["f1"] = 0.6
    trainer.state.global_step = 7
    trainer.evaluate()
    assert (trainer.best.f1, trainer.best.steps) == (0.6, [7])
    tags, starts, ends = trainer._pseudo[3]
    assert set(starts.tolist()) == set(ends.tolist()) == {1}
    assert torch.equal(tags, before[3][0])  # what the spans say of the tags is what it was
    assert torch.equal(trainer.best.state["classifier.start.bias"], old)
    assert trainer.best.state["classifier.bias"][1] > 40


def trainer_of(world, folder):
    settings = DualSettings(base_model=str(world / "base"), batch_size=32, second_batch_size=32)
    names = Names(str(world / "first"), (str(world / "second"),))
    data = read(names, settings, DataSets())
    model, tokenizer = runs.Experiment(folder, names, settings, DataSets())._fresh(data, 0, True)
    pieces = stages.pieces_of(data, tokenizer, settings, second=True)
    return dual_training.DualTrainer(
        model,
        METHODS["dual"],
        data,
        dual_training.Best.of(model, 0.5),
        settings,
        True,
        args=stages._arguments(folder / "x", settings, 32, 8, 0),
        train_dataset=pieces,
        eval_dataset=pieces,
        batch_size=32,
        processing_class=tokenizer,
        data_collator=features.Collator(0),
    )


def test_replicas_give_their_hidden_states_back(world, tmp_path):
    """The copies of DataParallel keep nothing, so what the loss needs is a part of their output."""

    class Replicas(torch.nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, **inputs):
            parts = [
                copy.deepcopy(self.module)(**{k: v[rows] for k, v in inputs.items()}).logits
                for rows in (slice(0, 4), slice(4, None))
            ]
            return SimpleNamespace(logits=torch.cat(parts))

    trainer = trainer_of(world, tmp_path)
    trainer.model.eval()
    batch = trainer.data_collator([trainer.train_dataset[number] for number in range(0, 160, 20)])
    alone = trainer.compute_loss(trainer.model, batch)
    assert trainer._weight == 0.5
    assert torch.allclose(trainer.compute_loss(Replicas(trainer.model), batch), alone, atol=1e-5)
    assert not trainer.model.classifier.hidden_too


def test_a_step_of_several_batches_is_one_of_all_their_pieces(world, tmp_path):
    """Loss and gradient of the step, with its mentions of all batches in the regularisation."""
    trainer = trainer_of(world, tmp_path)
    for module in trainer.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    with torch.no_grad():  # random heads, so that there are mentions
        trainer.model.classifier.start.weight.normal_(std=2.0)
        trainer.model.classifier.end.weight.normal_(std=2.0)
    numbers = list(range(0, len(trainer.train_dataset), len(trainer.train_dataset) // 31))[:32]

    def step(size):
        parts = [numbers[first : first + size] for first in range(0, len(numbers), size)]
        collated = [trainer.data_collator([trainer.train_dataset[n] for n in p]) for p in parts]
        batches, items = trainer.get_batch_samples(iter(collated), len(collated), "cpu")
        trainer.model.zero_grad()
        total = 0.0
        for batch in batches:
            loss = trainer.compute_loss(trainer.model, batch, num_items_in_batch=items)
            loss.backward()
            total += loss.item()
        gradients = [
            w.grad.flatten().clone() for w in trainer.model.parameters() if w.grad is not None
        ]
        return total, torch.cat(gradients)

    whole, parts = step(32), step(8)
    trainer._weight = 0.0
    without = step(32)
    assert whole[0] > without[0] + 1e-3
    assert parts[0] == pytest.approx(whole[0], rel=1e-4)
    assert torch.allclose(parts[1], whole[1], atol=1e-4)
    assert not torch.allclose(without[1], whole[1], atol=1e-3)


def test_both_passes_of_a_step_have_the_same_dropout(world, tmp_path):
    trainer = trainer_of(world, tmp_path)
    collated = [
        trainer.data_collator([trainer.train_dataset[n] for n in range(first, first + 8)])
        for first in (0, len(trainer.train_dataset) - 8)
    ]
    seen, sums = [], trainer._sums

    def watched(*given):
        seen.append(sums(*given))
        return seen[-1]

    trainer._sums = watched
    batches, items = trainer.get_batch_samples(iter(collated), 2, "cpu")
    for batch in batches:
        trainer.model.train()
        trainer.compute_loss(trainer.model, batch, num_items_in_batch=items)
    (first, second), (again, later) = seen[:2], seen[2:]
    for one, other in ((first, again), (second, later)):
        assert torch.equal(one[1], other[1])
        assert torch.allclose(one[0], other[0])


def test_the_warm_up_is_the_papers_unless_the_training_is_short(caplog):
    caplog.set_level("INFO", "nerbert")
    settings = DualSettings()
    assert stages._warmup(settings, 900) == 300
    assert not caplog.messages
    assert stages._warmup(settings, 899) == 89
    (line,) = caplog.messages
    assert line == "warm-up shortened to 89 of 899 steps (300 would exceed a third)"
