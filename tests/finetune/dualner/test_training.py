import copy
from types import SimpleNamespace

from finetune.data.sets import DataSets
from finetune.dualner.data import Names, read
from finetune.dualner.settings import METHODS, DualSettings
from tests.helpers.lazy import lazy

dual_training = lazy("finetune.dualner.training")
features = lazy("pretrain.training.features")
runs = lazy("finetune.dualner.runs")
stages = lazy("finetune.dualner.stages")
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
        args=stages._arguments(folder / "x", settings, pieces, 0, second=True),
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


def test_the_warm_up_is_the_papers_unless_the_training_is_short(caplog):
    caplog.set_level("INFO", "nerbert")
    settings = DualSettings()
    assert stages._warmup(settings, 900) == 300
    assert not caplog.messages
    assert stages._warmup(settings, 899) == 89
    (line,) = caplog.messages
    assert line == "warm-up shortened to 89 of 899 steps (300 would exceed a third)"
