"""The systems of CrossNER's table 2: trained, saved, loaded, stopped and continued, in all regimes."""

from dataclasses import replace

import pytest

from finetune.settings import FitSettings
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from tests.helpers.lazy import lazy
from tests.helpers.toy import rows

execution = lazy("finetune.experiments.execution")
fitting = lazy("finetune.tagger.fitting")
tagger_module = lazy("finetune.tagger.tagger")
torch = lazy("torch")
transformers = lazy("transformers")

SMALL = FitSettings(
    learning_rate=1e-2,
    epochs=6,
    eval_steps=10,
    batch_size=8,
    word_size=16,
    word_hidden=32,
    word_dropout=0.1,
    max_subwords=4096,
)
SYSTEMS = {
    "bilstm-crf": ("bilstm", replace(SMALL, head="crf", spelling="ngrams", word_layers=2)),
    "lample": ("bilstm", replace(SMALL, head="crf")),
    "coach": ("words", replace(SMALL, head="coach", spelling="ngrams", word_layers=2)),
    "coach-templates": (
        "words",
        replace(SMALL, head="coach", spelling="none", template_weight=0.1, template_steps=10),
    ),
    "cdlm": ("words", replace(SMALL, head="cdlm", learning_rate=5e-3)),
    "multicell": ("words", replace(SMALL, head="multicell")),
}
BLANK = Sentence([" "], ["O"])  # of which the tokenizer makes nothing


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_learns_saves_and_loads(name, tmp_path):
    base, settings = SYSTEMS[name]
    tagger = tagger_module.Tagger(base, settings).fit([*rows(48), BLANK], [*rows(12, 48), BLANK])
    assert tagger.tag([[" "], ["Ulm", " "], []])[0] == ["O"]
    assert tagger.score(rows(12, 60)) > 0.9
    tagger.save(str(tmp_path / "saved"))
    again = tagger_module.Tagger.load(str(tmp_path / "saved"), settings)
    text = ["Ada Byron, unheard of, lived in Ulm.", ""]
    (entities, none), (same, _) = again.predict(text), tagger.predict(text)
    # The place of a weight in memory may change the last bits of a score.
    assert [one.score for one in entities] == pytest.approx([one.score for one in same])
    assert [replace(one, score=0) for one in entities] == [replace(one, score=0) for one in same]
    assert entities
    assert not none
    (found,) = again.predictions(["Ada Byron lived in Ulm"], probabilities=True)
    assert found.probabilities.sum(1) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    "name", ["cdlm", *(pytest.param(one, marks=pytest.mark.slow) for one in ("multicell", "coach"))]
)
def test_regimes_and_the_same_numbers_twice(name):
    """The source has other types; the target's are predicted."""
    base, settings = SYSTEMS[name]
    settings = replace(settings, epochs=3, source_epochs=1)
    source = rows(16, person="artist")
    for regime in ("target", "source-target", "joint"):
        found = [
            execution.fit_in_regime(base, regime, rows(24), rows(8, 24), source, settings)
            for _ in range(2 if regime == "target" else 1)
        ]
        tags = [tagger.tag([row.tokens for row in rows(12, 60)]) for tagger in found]
        assert all(one == tags[0] for one in tags)
        if name != "coach":  # it has one set of types
            assert not any("artist" in tag for row in tags[0] for tag in row)
        assert found[0].score(rows(12, 60)) > 0.3, regime


def test_multicell_on_an_encoder(base, tmp_path):
    settings = replace(SMALL, head="multicell", max_subwords=32, learning_rate=5e-3)
    tagger = tagger_module.Tagger(base, settings).fit([*rows(40), BLANK], [*rows(12, 40), BLANK])
    assert tagger.score(rows(12, 60)) > 0.9
    tagger.save(str(tmp_path / "saved"))
    again = tagger_module.Tagger.load(str(tmp_path / "saved"), settings)
    long = [["Ada", "Byron", "lived", "in", "Ulm", *["for"] * 40, "Rom", " "], [" "], []]
    assert again.tag(long) == tagger.tag(long)
    for head in ("coach", "cdlm"):
        with pytest.raises(UserError, match=f"--head {head}: it is for the model `words`"):
            tagger_module.Tagger(base, replace(settings, head=head)).fit(rows(8), rows(8))


@pytest.mark.slow
def test_a_stopped_training_goes_on(tmp_path):
    """The same weights as those of a training that was never stopped."""
    base, settings = SYSTEMS["cdlm"]
    settings = replace(settings, patience=60)

    class Stop(transformers.TrainerCallback):
        def on_save(self, args, state, control, **_):
            raise KeyboardInterrupt

    def fit(folder, *callbacks):
        work = fitting.Work(str(folder), callbacks, device="cpu")
        return tagger_module.Tagger(base, settings).fit(rows(40), rows(12, 40), work=work)

    whole = fit(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "stopped", Stop())
    again = fit(tmp_path / "stopped")
    assert len(again.history) > 2
    states = [tagger.model.state_dict() for tagger in (whole, again)]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
