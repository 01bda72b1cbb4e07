"""Only the vectors of train words are trained, and the result is that of training all."""

from contextlib import nullcontext

import pytest

from finetune.settings import FitSettings
from tests.helpers.lazy import lazy
from tests.helpers.toy import rows

seen = lazy("finetune.papers.words.seen")
states = lazy("finetune.papers.words.states")
tagger = lazy("finetune.tagger.tagger")
torch = lazy("torch")
trainer = lazy("pretrain.training.trainer")


@pytest.mark.parametrize("model", ["bilstm", "words"])
def test_as_training_all_vectors(model, tmp_path, monkeypatch):
    """Given words and n-grams that no train sentence has stay; all other weights become the same."""
    given = "".join(f"unheard{number} {number} 1\n" for number in range(30))
    (tmp_path / "words.txt").write_text(f"ulm 1 2\n{given}")
    (tmp_path / "grams.txt").write_text("2gram-Ul 1 2\n3gram-zzz 3 4\n4gram-lm#END# 5 6\n")
    settings = FitSettings(
        vectors=(str(tmp_path / "words.txt"), str(tmp_path / "grams.txt")),
        spelling="ngrams", learning_rate=0.01, epochs=3, patience=9, word_hidden=8, batch_size=4,
        head="coach" if model == "words" else "crf",
    )  # fmt: skip
    counts, trained = [], []

    class Watched(trainer.TaggingTrainer):
        def create_optimizer(self, *args):
            counts.append(self.model.get_submodule("vectors.word_embeddings").weight.shape[0])
            return super().create_optimizer(*args)

    monkeypatch.setattr(trainer, "TaggingTrainer", Watched)
    monkeypatch.setattr(states, "DomainTrainer", type("W", (Watched, states.DomainTrainer), {}))
    for narrow in (seen.only_seen, lambda *_: nullcontext()):
        monkeypatch.setattr(seen, "only_seen", narrow)
        found = tagger.Tagger(model, settings).fit(rows(8), rows(4))
        trained.append(found.model.state_dict())
    others = 30 + len(["city", "person"])  # given, and of the types' descriptions
    assert counts == [13, 13 + others]  # 12 words, and all unknown ones
    assert trained[0].keys() == trained[1].keys()
    for name, value in trained[0].items():
        assert torch.equal(value, trained[1][name]), name
    table = trained[0]["vectors.word_embeddings.weight"]
    assert 0 < (table - torch.tensor([1.0, 2.0])).abs().sum(1).min() < 0.2  # of Ulm
    for number in range(30):
        assert (table == torch.tensor([number, 1.0])).all(1).any()
