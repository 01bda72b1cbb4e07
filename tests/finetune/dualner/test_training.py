from lazy import lazy

from finetune.data.sets import DataSets
from finetune.dualner.data import Names, read
from finetune.dualner.settings import METHODS, DualSettings

dual_training = lazy("finetune.dualner.training")
features = lazy("pretrain.tagging.features")
runs = lazy("finetune.dualner.runs")
stages = lazy("finetune.dualner.stages")
torch = lazy("torch")


def test_a_better_student_becomes_the_teacher(world, tmp_path, monkeypatch):
    """Its weights are taken over, and it labels everything again; a worse one changes nothing."""
    settings = DualSettings(base_model=str(world / "base"), batch_size=32, second_batch_size=32)
    names = Names(str(world / "first"), (str(world / "second"),))
    data = read(names, settings, DataSets())
    experiment = runs.Experiment(tmp_path, names, settings, DataSets())
    model, tokenizer = experiment._fresh(data, 0, spans=True)
    pieces = stages.pieces_of(data, tokenizer, settings, second=True)
    args = stages._arguments(tmp_path / "x", settings, pieces, 0, second=True)
    trainer = dual_training.DualTrainer(
        model,
        METHODS["dual"],
        data,
        dual_training.Best.of(model, 0.5),
        settings,
        True,
        args=args,
        train_dataset=pieces,
        eval_dataset=pieces,
        batch_size=32,
        processing_class=tokenizer,
        data_collator=features.Collator(0),
    )
    before = [row.clone() for row in trainer._pseudo]
    assert len(before) == len(pieces)
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
