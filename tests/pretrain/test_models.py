import pytest
from lazy import lazy

from nerbert.errors import UserError
from nerbert.text.tags import LabelSet

models = lazy("pretrain.models")
torch = lazy("torch")
transformers = lazy("transformers")

SMALL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "num_labels": 7,
}


def test_head_is_fresh_and_named(tmp_path):
    model = transformers.BertForTokenClassification(transformers.BertConfig(**SMALL))
    model.save_pretrained(tmp_path)
    labels = LabelSet(("ENTITY", "City"))
    loaded = models.load_model(str(tmp_path), labels, 512)
    assert loaded.config.id2label == dict(enumerate(labels.tags))
    assert loaded.classifier.weight.shape == (5, 64)
    with pytest.raises(UserError, match=r": accepts 512 sub-words; give --max-subwords 512"):
        models.load_model(str(tmp_path), labels, 513)
    ours, theirs = loaded.bert.state_dict(), model.bert.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_no_model_is_one_line(tmp_path, make):
    make(tmp_path / "model")
    with pytest.raises(UserError, match=r"model: .*; give a model of the hub") as e:
        models.load_tokenizer(str(tmp_path / "model"))
    assert "\n" not in str(e.value)
    assert e.value.about == str(tmp_path / "model")
