import json
import shutil

import pytest

from nerbert.errors import UserError
from nerbert.text.tags import LabelSet
from tests.helpers.lazy import lazy

models = lazy("pretrain.training.models")
tokenizer_module = lazy("pretrain.training.tokenizer")
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
        tokenizer_module.load_tokenizer(str(tmp_path / "model"))
    assert "\n" not in str(e.value)
    assert e.value.about == str(tmp_path / "model")


def byte_level(folder, config, **options):
    """A checkpoint with a byte-level tokenizer, as RoBERTa, GPT-2 and ModernBERT have."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForTokenClassification, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<unk>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    backend.train_from_iterator(["Dante was born in Florence . Dante was born ."] * 20, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", **options
    )
    tokenizer.save_pretrained(folder)
    AutoModelForTokenClassification.from_config(config).save_pretrained(folder)
    return str(folder)


def small(name, **options):
    from transformers import AutoConfig

    sizes = {"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return AutoConfig.for_model(name, **sizes, intermediate_size=32, pad_token_id=1, **options)


@pytest.mark.parametrize("name", ["roberta", "modernbert", "bert"])
def test_tokenizers_part_words_as_in_running_text(tmp_path, name):
    """No list of models says which need a space before a word: the tokenizer is tried."""
    options = {"bos_token_id": 0, "eos_token_id": 0, "cls_token_id": 0, "sep_token_id": 0}
    folder = byte_level(tmp_path, small(name, **(options if name == "modernbert" else {})))
    tokenizer = tokenizer_module.load_tokenizer(folder)
    tokens = tokenizer(["Dante", "was", "born"], is_split_into_words=True).tokens()
    assert tokens == ["ĠDante", "Ġwas", "Ġborn"]


def stepwise(folder, steps, before=None):
    """A checkpoint whose tokenizer splits words by some steps."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import AutoModelForTokenClassification, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
    if before is not None:
        backend.normalizer = before
    alphabet = [*pre_tokenizers.ByteLevel.alphabet(), "▁"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>", "<pad>"], initial_alphabet=alphabet
    )
    text = "In 2005 Dante was born in Florence . Dante was born in 1265 ."
    backend.train_from_iterator([text] * 20, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>"
    )
    tokenizer.save_pretrained(folder)
    AutoModelForTokenClassification.from_config(small("bert")).save_pretrained(folder)
    return str(folder)


def steps_of(name):
    from tokenizers import Regex, normalizers, pre_tokenizers

    plain = pre_tokenizers.ByteLevel(add_prefix_space=False)
    llama = pre_tokenizers.Split(Regex(r" ?\p{L}+| ?[^\s\p{L}\p{N}]+|\p{N}{1,3}|\s+"), "isolated")
    joined = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    never = pre_tokenizers.Metaspace("▁", prepend_scheme="never")
    return {
        "digits": ([pre_tokenizers.Digits(individual_digits=True), plain], None),
        "llama 3": ([llama, joined], None),
        "metaspace never": ([never], None),
        "gemma": ([pre_tokenizers.Split("▁", "merged_with_next")], normalizers.Replace(" ", "▁")),
    }[name]


@pytest.mark.parametrize("name", ["digits", "llama 3", "metaspace never", "gemma"])
def test_tokenizers_that_split_in_several_steps(tmp_path, name):
    """Pre-split words behind the first are what they are in running text, also after saving."""
    folder = stepwise(tmp_path, *steps_of(name))
    words = ["Dante", "was", "born", "in", "1265", "."]
    for place in (folder, tmp_path / "again"):
        tokenizer = tokenizer_module.load_tokenizer(str(place))
        split = tokenizer(words, is_split_into_words=True)
        plain = tokenizer(" ".join(words))
        assert split["input_ids"] == plain["input_ids"]
        assert set(split.word_ids()) == set(range(len(words)))
        tokenizer.save_pretrained(tmp_path / "again")
        shutil.copy(tmp_path / "config.json", tmp_path / "again")


@pytest.mark.parametrize("change", ["no unknown", "bad expression", "null"])
def test_tokenizers_that_cannot_be_used_are_one_line(tmp_path, change):
    folder = byte_level(tmp_path, small("bert"))
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    if change == "no unknown":
        content["model"] = {"type": "WordLevel", "vocab": {"Dante": 0}, "unk_token": "x"}
        content["pre_tokenizer"] = {"type": "Whitespace"}
    elif change == "null":
        content["model"]["vocab"] = None
    else:
        step = {
            "type": "Split",
            "pattern": {"Regex": "(("},
            "behavior": "Isolated",
            "invert": False,
        }
        content["pre_tokenizer"] = step
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="give a model of the hub, or a folder with") as error:
        tokenizer_module.load_tokenizer(folder)
    assert "\n" not in str(error.value)


def test_weights_have_32_bits_whatever_the_file_has(tmp_path):
    import torch
    from transformers import AutoModelForTokenClassification

    folder = byte_level(tmp_path, small("bert"))
    half = AutoModelForTokenClassification.from_pretrained(folder, dtype=torch.float16)
    half.save_pretrained(folder)
    assert AutoModelForTokenClassification.from_pretrained(folder).dtype == torch.float16
    labels = LabelSet(("City",))
    for model in (
        models.load_model(folder, labels, 64),
        models.load_tagger(folder),
        models.load_encoder(folder),
    ):
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_o_is_moved_to_label_0(tmp_path):
    """As T-NER's taggers have it: O is the last label."""
    import torch
    from transformers import AutoModelForTokenClassification

    names = ["B-LOC", "I-LOC", "B-PER", "O", "I-PER"]
    config = small(
        "bert", id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)}
    )
    folder = byte_level(tmp_path, config)
    plain = AutoModelForTokenClassification.from_pretrained(folder).eval()
    model = models.load_tagger(folder).eval()
    assert models.tag_names(model) == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    ids = torch.arange(10, 20).unsqueeze(0)
    with torch.no_grad():
        one, other = plain(ids).logits, model(ids).logits
    for place, name in enumerate(names):
        assert torch.equal(one[..., place], other[..., models.tag_names(model).index(name)])
