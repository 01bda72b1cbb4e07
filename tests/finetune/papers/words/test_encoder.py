"""A frozen encoder beside the vectors of words, against plain transformers."""

import shutil

import pytest

from finetune.settings import FitSettings
from nerbert.errors import UserError
from tests.helpers.lazy import lazy
from tests.helpers.toy import rows

encoder = lazy("finetune.papers.words.encoder")
models = lazy("pretrain.training.models")
tagger = lazy("finetune.tagger.tagger")
torch = lazy("torch")
transformers = lazy("transformers")


def settings(base, **changes):
    given = {
        "word_encoder": str(base), "head": "multicell", "spelling": "cnn", "word_size": 8,
        "word_hidden": 8, "learning_rate": 0.01, "epochs": 6, "batch_size": 8, "word_dropout": 0.1,
    }  # fmt: skip
    return FitSettings(**{**given, **changes})


def plain_states(base, words):
    """Last states by transformers itself, at the first sub-word of each word; zero without one."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    model = transformers.AutoModel.from_pretrained(base).eval()
    encoding = tokenizer([words], is_split_into_words=True, return_tensors="pt")
    places = encoding.word_ids(0)
    with torch.no_grad():
        states = model(**encoding).last_hidden_state[0]
    zero = torch.zeros(states.shape[1])
    return torch.stack(
        [states[places.index(n)] if n in places else zero for n in range(len(words))]
    )


@pytest.fixture(scope="module")
def fitted(base):
    return tagger.Tagger("words", settings(base)).fit(rows(24), rows(8, 24))


def test_states_are_those_of_transformers(base, fitted):
    """In a batch, of words that training has not seen, and of one that has no sub-words."""
    texts = [["Ada", "livedin", "Ulm"], ["\u200b", "unheard", "of", "\u4e2d", "."]]
    model = fitted.model.eval()
    seen = []
    model.classifier.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    tokenizer = fitted.tokenizer
    batch = tokenizer(texts, is_split_into_words=True, padding=True, return_tensors="pt")
    model(batch["input_ids"], batch["attention_mask"])
    size = transformers.AutoConfig.from_pretrained(base).hidden_size
    wanted = torch.cat([plain_states(base, words) for words in texts])
    assert torch.allclose(seen[0][:, -size:], wanted, atol=1e-5)
    assert model.config.hidden_size == model.vectors.size + size


def test_it_stays_as_it_is_and_is_not_saved(base, fitted, tmp_path):
    before = models.load_encoder(base).state_dict()
    for name, weight in fitted.model._encoders[0]._encoder.state_dict().items():
        assert torch.equal(weight, before[name])
    fitted.save(str(tmp_path / "saved"))
    again = tagger.Tagger.load(str(tmp_path / "saved"))
    assert not any("encoder" in name for name in again.model.state_dict())
    words = [row.tokens for row in rows(12, 60)]
    assert again.tag(words) == fitted.tag(words)
    assert again.score(rows(12, 60)) > 0.9


def test_other_weights_are_refused(base, tmp_path):
    folder = tmp_path / "encoder"
    shutil.copytree(base, folder)
    own = tagger.Tagger("words", settings(folder, epochs=1)).fit(rows(8))
    own.save(str(tmp_path / "saved"))
    changed = models.load_encoder(str(folder))
    with torch.no_grad():
        next(changed.parameters())[0] += 1
    changed.save_pretrained(folder)
    again = tagger.Tagger.load(str(tmp_path / "saved"))
    with pytest.raises(UserError, match="other weights than when the tagger was trained"):
        again.tag([["Ulm"]])
    shutil.rmtree(folder)
    with pytest.raises(UserError, match="encoder"):
        again.tag([["Ulm"]])


def test_also_for_the_bilstm_and_not_for_coach(base):
    own = settings(base, head="crf", spelling="none", epochs=1)
    found = tagger.Tagger("bilstm", own).fit(rows(8))
    assert len(found.tag([["Ada", "Byron"]])[0]) == 2
    with pytest.raises(UserError, match="--word-encoder: coach describes types by words alone"):
        tagger.Tagger("words", settings(base, head="coach")).fit(rows(8))


def test_kept_states_are_the_same(base, monkeypatch):
    frozen = encoder.FrozenEncoder(base)
    texts, device = [["Ada", "Byron"], ["Ulm"], []], torch.device("cpu")
    first = frozen(texts, device)
    monkeypatch.setattr(frozen, "_tagger", None)  # nothing is computed again
    assert torch.equal(frozen(texts[::-1], device), torch.cat([first[2:], first[:2]]))
    monkeypatch.undo()
    monkeypatch.setattr(encoder, "_KEPT", 1)
    assert torch.equal(frozen(texts, device), first)
    assert len(frozen._states) == 1
