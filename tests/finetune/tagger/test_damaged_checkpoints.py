"""Checkpoints without their weights, or with other files: one line, never tags at random."""

import json
import pickle
import shutil
import zipfile
from dataclasses import replace

import pytest

from nerbert.errors import RunError, UserError
from tests.helpers.lazy import lazy
from tests.helpers.toy import QUICK, rows

checkpoints = lazy("pretrain.training.checkpoints")
models = lazy("pretrain.training.models")
mlm = lazy("pretrain.mlm.model")
np = lazy("numpy")
safetensors = lazy("safetensors.torch")
tagger = lazy("finetune.tagger.tagger")
tagging = lazy("pretrain.tagging.run")
tokenizer_of = lazy("pretrain.training.tokenizer")
torch = lazy("torch")
transformers = lazy("transformers")


@pytest.fixture
def copy(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "tagger")
    return tmp_path / "tagger"


def change_weights(folder, change):
    path = folder / "model.safetensors"
    weights = change(safetensors.load_file(path))
    safetensors.save_file(weights, path, {"format": "pt"})


def change_config(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def without(start):
    return lambda weights: {k: v for k, v in weights.items() if not k.startswith(start)}


def renamed(old, new):
    return lambda weights: {k.replace(old, new): v.clone() for k, v in weights.items()}


def filled(name, value):
    def change(weights):
        weights[name].view(-1)[3] = value
        return weights

    return change


LAYER = "bert.encoder.layer.1."
DAMAGES = {
    "no head": (without("classifier."), "lacks 2 weights, such as classifier.bias"),
    "no layer": (without(LAYER), "lacks 16 weights, such as bert.encoder.layer.1."),
    "no encoder": (without("bert."), "lacks"),
    "renamed layer": (renamed(LAYER, "bert.encoder.layer.7."), "lacks 16 weights"),
    "renamed head": (renamed("classifier", "klassifier"), "lacks 2 weights"),
    "another layer": (
        lambda weights: weights | renamed(LAYER, "bert.encoder.layer.2.")(weights),
        "config.json has no place for 16 weights, such as bert.encoder.layer.2.",
    ),
    "a head that nobody reads": (
        lambda weights: weights | {"crf.transitions": torch.zeros(5, 5)},
        "config.json has no place for 1 weight crf.transitions",
    ),
    "other sizes": (
        lambda weights: weights | {"classifier.bias": torch.zeros(7)},
        "config.json has other sizes for 1 weight classifier.bias",
    ),
    "NaN": (
        filled("bert.encoder.layer.0.output.dense.weight", float("nan")),
        "the weights bert.encoder.layer.0.output.dense.weight are not finite",
    ),
    "infinite": (filled("classifier.weight", float("inf")), "weights classifier.weight are not"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_tagger_without_its_weights(copy, name):
    change, message = DAMAGES[name]
    change_weights(copy, change)
    with pytest.raises(UserError, match=message) as error:
        tagger.Tagger.load(copy, device="cpu")
    assert "\n" not in str(error.value)
    assert error.value.about == str(copy)


def test_an_old_pooler_is_no_damage(copy, saved):
    """Files of old versions have a pooler and a table of positions that taggers do not use."""
    more = {"bert.pooler.dense.bias": torch.zeros(3), "bert.embeddings.position_ids": torch.ones(1)}
    change_weights(copy, lambda weights: weights | more)
    text = ["Ada Byron lived in Ulm"]
    assert tagger.Tagger.load(copy).predict(text) == tagger.Tagger.load(saved).predict(text)


@pytest.mark.parametrize("name", ["no layer", "no encoder", "another layer", "NaN"])
def test_an_encoder_without_its_weights(copy, name):
    """New heads are new by design; the encoder below them is not."""
    change_weights(copy, DAMAGES[name][0])
    labels = models.LabelSet(("x",))
    for load in (
        lambda: models.load_encoder(str(copy)),
        lambda: models.load_model(str(copy), labels, 32),
        lambda: mlm.load_masked_lm(str(copy), 32, new_head=True),
    ):
        with pytest.raises(UserError, match=r"lacks|no place for|not finite"):
            load()


def test_new_heads_are_new_by_design(copy, base):
    for head in ("no head", "a head that nobody reads", "other sizes"):
        change_weights(copy, DAMAGES[head][0])
        models.load_model(str(copy), models.LabelSet(("x", "y", "z")), 32)
        models.load_encoder(str(copy))
        mlm.load_masked_lm(str(copy), 32, new_head=True)
    encoder = models.load_encoder(base)
    encoder.save_pretrained(copy)  # names without prefix, and no head
    models.load_model(str(copy), models.LabelSet(("x",)), 32)
    change_weights(copy, lambda weights: weights | {"encoder.layer.9.x": torch.zeros(1)})
    with pytest.raises(UserError, match=r"no place for 1 weight encoder\.layer\.9\.x"):
        models.load_model(str(copy), models.LabelSet(("x",)), 32)


@pytest.fixture(scope="module")
def with_crf(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crf") / "tagger"
    settings = replace(QUICK, head="crf", epochs=1)
    tagger.Tagger(base, settings).fit(rows(16)).save(folder)
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("crf."), "its head 'crf' cannot be loaded"),
        (without("crf.start"), "its head 'crf' cannot be loaded"),
        (filled("crf.transitions", float("nan")), "the weights transitions are not finite"),
    ],
)
def test_a_crf_without_its_weights(with_crf, tmp_path, change, message):
    shutil.copytree(with_crf, tmp_path / "tagger")
    change_weights(tmp_path / "tagger", change)
    with pytest.raises(UserError, match=message):
        tagger.Tagger.load(tmp_path / "tagger")


def test_a_crf_that_the_config_forgets(with_crf, tmp_path):
    shutil.copytree(with_crf, tmp_path / "tagger")
    change_config(tmp_path / "tagger", tag_head="linear")
    with pytest.raises(UserError, match="no place for 3 weights, such as crf"):
        tagger.Tagger.load(tmp_path / "tagger")


CONFIGS = {
    "code of the hub": ({"attn_implementation": "kernels-community/flash-attn"}, "code of the hub"),
    "as transformers writes it": ({"_attn_implementation": "someone/kernel:f"}, "code of the hub"),
    "in a part": ({"text_config": {"attn_implementation": {"x": "a/b"}}}, "code of the hub"),
    "quantised": ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantised"),
    "no tags": (
        {"id2label": {"0": "O"}, "label2id": {"O": 0}},
        "other sizes for 2 weights, such as classifier.bias",
    ),
    "all O": ({"id2label": {str(n): "O" for n in range(5)}}, "no tags to use"),
    "a gap": (
        {"id2label": {"0": "O", "1": "B-x", "2": "I-x", "3": "B-y", "9": "I-y"}},
        "no tags to use",
    ),
    "a head that nobody knows": ({"tag_head": 7}, None),
    "a head without its weights": ({"tag_head": "crf"}, "its head 'crf' cannot be loaded"),
    "span heads without weights": ({"tag_head": "span"}, "its head 'span' cannot be loaded"),
    "a list": (None, "config.json"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configs(copy, name):
    values, message = CONFIGS[name]
    if values is None:
        (copy / "config.json").write_text("[1]")
    else:
        change_config(copy, **values)
    if message is None:
        tagger.Tagger.load(copy)
        return
    with pytest.raises(UserError, match=message) as error:
        tagger.Tagger.load(copy)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["[1]", '{"source": 1}', "{", "[" * 100_000, '"x"'])
def test_a_model_of_sentences_of_another_type(copy, content):
    (copy / "sentences.json").write_text(content)
    with pytest.raises(UserError, match=r"sentences\.json: no model of sentences"):
        tagger.Tagger.load(copy)


def test_a_tokenizer_of_another_model(copy):
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    tokenizer.add_tokens([f"new{n}" for n in range(5)])
    tokenizer.save_pretrained(copy)
    for message in ("not the one that it was trained with", "they are not of the same model"):
        with pytest.raises(UserError, match=message):
            tagger.Tagger.load(copy)
        with pytest.raises(UserError, match=message):
            tagger.Tagger(copy, QUICK).fit(rows(8))
        config = json.loads((copy / "config.json").read_text())
        config.pop("tokenizer_digest", None)
        (copy / "config.json").write_text(json.dumps(config))


def test_the_words_of_a_tokenizer_in_another_order(copy):
    """As many sub-words, which another model would have."""
    path = copy / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    words = [word for word in vocabulary if not word.startswith("[")]
    for word, other in zip(words, reversed(words), strict=True):
        vocabulary[word] = len(vocabulary) - len(words) + words.index(other)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="not the one that it was trained with"):
        tagger.Tagger.load(copy)


def test_a_tokenizer_that_ignores_case(copy):
    """Without this file transformers takes the defaults of the class: BERT's are in lower case."""
    (copy / "tokenizer_config.json").unlink()
    with pytest.raises(UserError, match="not the one that it was trained with"):
        tagger.Tagger.load(copy)


class Evil:
    def __reduce__(self):
        return print, ("this code ran",)


def test_a_foreign_pickle_runs_nothing(copy, capsys):
    (copy / "model.safetensors").unlink()
    (copy / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(), protocol=2))
    with pytest.raises(UserError) as error:
        tagger.Tagger.load(copy)
    assert "\n" not in str(error.value)
    assert "this code ran" not in capsys.readouterr().out


def test_a_foreign_pickle_in_a_checkpoint_that_goes_on(tmp_path, capsys):
    """As torch.save writes it: a zip, so it looks whole."""
    path = tmp_path / "optimizer.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil(), protocol=2))
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")

    class Trainer:
        def train(self, resume_from_checkpoint):
            torch.load(path, weights_only=True)

    (tmp_path / "trainer_state.json").write_text('{"global_step": 1, "max_steps": 9}')
    with pytest.raises(UserError, match=r"not a checkpoint of ours .*; remove it"):
        checkpoints.resume(Trainer(), str(tmp_path))
    assert "this code ran" not in capsys.readouterr().out


def test_scores_that_are_not_finite(fitted, monkeypatch):
    def overflow(ids, mask):
        return np.full((*ids.shape, len(fitted.tags)), np.nan)

    monkeypatch.setattr(fitted._words, "_forward", overflow)
    with pytest.raises(RunError, match="scores that are not finite"):
        fitted.predict(["Ada"])


def test_backends(saved):
    with pytest.raises(UserError, match="--backend zzz: give auto, torch, onnx or int8"):
        tagger.Tagger.load(saved, backend="zzz")


def test_a_string_is_one_text(fitted):
    text = "Ada Byron lived in Ulm"
    assert fitted.predict(text) == fitted.predict([text])[0]
    assert [entity.text for entity in fitted.predict(text)] == ["Ada Byron", "Ulm"]
    assert fitted.predict(iter([text])) == fitted.predict((text,)) == fitted.predict([text])
    tokens = fitted.predict([text.split()])
    assert (
        tokens == fitted.predict([np.array(text.split())]) == fitted.predict([tuple(text.split())])
    )


@pytest.mark.parametrize(
    "texts",
    [None, 7, {"text": "Ada"}, b"Ada", ["Ada", None], [1.5], [{"a": "b"}], [[["Ada"]]], [b"A"]],
)
def test_what_is_no_text(fitted, texts):
    with pytest.raises(UserError, match="give a text, or a list of"):
        fitted.predict(texts)


@pytest.mark.parametrize("text", ["Ulm \ud800 is", ["Ulm", "\udcff"]])
def test_half_of_a_character(fitted, text):
    with pytest.raises(UserError, match="text 1: surrogates not allowed; give Unicode text"):
        fitted.predict(["Ada", text, "Ulm"])


def test_sentences_as_mappings(base):
    settings = replace(QUICK, epochs=1)
    given = [{"tokens": row.tokens, "tags": row.tags} for row in rows(16)]
    histories = [tagger.Tagger(base, settings).fit(data).history for data in (given, rows(16))]
    assert [line.get("loss") for line in histories[0]] == [
        line.get("loss") for line in histories[1]
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "there are no sentences"),
        ([{"tokens": ["a"]}], "sentence 0: neither tokens and tags, nor text and entities"),
        ([{"tokens": ["a", "b"], "tags": ["O"]}], "sentence 0: 2 tokens and 1 tags"),
        ([{"tokens": ["a"], "tags": [1]}], "sentence 0: tags are numbers without names"),
        ([{"tokens": ["a"], "tags": ["O"]}, 7], "sentence 1: TypeError"),
        ([{"tokens": 7, "tags": ["O"]}], "sentence 0: TypeError"),
    ],
)
def test_other_sentences(base, data, message):
    with pytest.raises(UserError, match=message):
        tagger.Tagger(base, QUICK).fit(data)


def test_settings_as_keyword_arguments(base):
    assert tagger.Tagger(base, learning_rate=1e-3, epochs=2).settings.learning_rate == 1e-3
    with pytest.raises(
        UserError, match="unknown option 'learning_rat'; did you mean learning_rate"
    ):
        tagger.Tagger(base, learning_rat=1e-3)
    with pytest.raises(UserError, match="epochs =: give it in `settings`"):
        tagger.Tagger(base, QUICK, epochs=2)
