"""Domain-adaptive pre-training: blocks, what is hidden, and runs as a user starts them."""

import json
import math
import shutil

import numpy as np
import pytest

from nerbert.text.columns import Sentence
from nerbert.text.tags import LEVELS
from tests.helpers.domain import write_sentences
from tests.helpers.lazy import lazy
from tests.helpers.runs import call
from tests.helpers.toy import QUICK

blocks = lazy("pretrain.mlm.blocks")
features = lazy("pretrain.training.features")
masking_module = lazy("pretrain.mlm.model")
model_module = lazy("pretrain.mlm.model")
tagger = lazy("finetune.tagger.tagger")
torch = lazy("torch")
transformers = lazy("transformers")

FLAGS = (
    "--recipe",
    "debug",
    "--max-subwords",
    32,
    "--batch-size",
    8,
    "--level",
    "domain",
    "--max-steps",
    8,
    "--eval-steps",
    4,
    "--save-steps",
    4,
    "--logging-steps",
    1,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_sentences(tmp_path_factory.mktemp("domain") / "corpus")


@pytest.fixture(scope="module")
def adapt(corpus, tmp_path_factory):
    """Runs the command in this process: torch is loaded only once."""
    cache = tmp_path_factory.mktemp("cache")

    def called(output, *flags, corpus=corpus):
        command = ["--corpus", corpus, "--output", output, *FLAGS, "--cache-dir", cache, *flags]
        return call("dapt", *command)

    return called


@pytest.fixture(scope="module")
def adapted(adapt, tmp_path_factory):
    output = tmp_path_factory.mktemp("adapted") / "span"
    assert adapt(output) == 0
    return output


def losses(output):
    last = max(output.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    history = json.loads((last / "trainer_state.json").read_text())["log_history"]
    return {line["step"]: line["loss"] for line in history if "loss" in line}


def results(output):
    return json.loads((output / "pretrain.json").read_text())["results"]


def stream(corpus, adapted, rows, length=32):
    tokenizer = transformers.AutoTokenizer.from_pretrained(adapted)
    ids = blocks.subwords(corpus, tokenizer, 1)
    return tokenizer, blocks.Blocks(ids, np.array(rows), tokenizer, length)


def test_blocks_are_the_text_end_to_end(corpus, adapted, tmp_path):
    loaded = blocks.load(str(corpus), str(tmp_path))
    rows = [5, 3, 3, 99, 0, 61]
    tokenizer, found = stream(loaded, adapted, rows)
    wanted = [
        i
        for row in rows
        for i in tokenizer(loaded[row]["text"], add_special_tokens=False).input_ids
    ]
    pieces = [found[index].input_ids.tolist() for index in range(len(found))]
    assert [i for piece in pieces for i in piece[1:-1]] == wanted
    assert {len(piece) for piece in pieces[:-1]} == {32}
    assert all(piece[0] == tokenizer.cls_token_id for piece in pieces)
    assert all(piece[-1] == tokenizer.sep_token_id for piece in pieces)
    assert found.subwords == len(wanted)


def test_smaller_shares_are_part_of_larger_ones(corpus, adapted, tmp_path):
    loaded = blocks.load(str(corpus), str(tmp_path))
    _, whole = stream(loaded, adapted, range(120))
    kept = []
    for share in (0.1, 0.5, 1):
        _, part = stream(loaded, adapted, range(120))
        part.take(share)
        assert len(part) == round(share * len(whole))
        kept.append({part[index].key[1] for index in range(len(part))})
    assert kept[0] < kept[1] < kept[2]


def test_levels_are_views_and_share_what_is_held_out(corpus, tmp_path):
    loaded = blocks.load(str(corpus), str(tmp_path))
    flags = {name: np.flatnonzero(loaded[name]) for name in ("entity", "task")}
    held = {}
    for level in LEVELS:
        train, held[level] = blocks.rows_of(loaded, level, "c")
        assert not set(train) & set(held[level])
        assert len(held[level])
    train, out = blocks.rows_of(loaded, "integrated", "c")
    wanted = [*flags["entity"], *flags["task"], *flags["task"]]
    assert sorted(train) == sorted(row for row in wanted if row not in set(out))
    assert set(blocks.rows_of(loaded, "domain", "c")[1]) & set(flags["entity"]) <= set(
        held["entity"]
    )


@pytest.mark.parametrize("masking", ["token", "span"])
def test_what_is_hidden(corpus, adapted, tmp_path, masking):
    loaded = blocks.load(str(corpus), str(tmp_path))
    tokenizer, found = stream(loaded, adapted, list(range(120)) * 8)
    masker = masking_module.Masker(tokenizer, masking, 0.15, seed=3)
    batch = masker([found[index] for index in range(len(found))])
    ids, labels = batch["input_ids"].numpy(), batch["labels"].numpy()
    hidden = labels != features.IGNORED
    originals = np.where(hidden, labels, ids)
    plain = np.zeros_like(ids)
    for row in range(len(found)):
        piece = found[row].input_ids
        plain[row, : len(piece)] = piece
    assert (originals == plain).all()
    assert not np.isin(plain[hidden], tokenizer.all_special_ids).any()
    text = ~np.isin(plain, tokenizer.all_special_ids)
    assert hidden.sum() / text.sum() == pytest.approx(0.15, abs=0.01)
    masked, kept = (ids == tokenizer.mask_token_id)[hidden], (ids == labels)[hidden]
    assert masked.mean() == pytest.approx(0.8, abs=0.03)
    assert kept.mean() == pytest.approx(0.1, abs=0.03)
    alone = masker([found[4]])
    length = len(found[4].input_ids)
    assert (alone["labels"][0] == batch["labels"][4, :length]).all()
    found.set_epoch(1)
    assert (masker([found[4]])["labels"] != alone["labels"]).any()


def test_perplexity_falls_and_the_checkpoint_is_an_encoder(adapted):
    found = results(adapted)
    assert found["perplexity"] < 0.8 * found["perplexity_before"]
    assert found["steps"] == 8
    model = transformers.AutoModelForMaskedLM.from_pretrained(adapted)
    tokenizer = transformers.AutoTokenizer.from_pretrained(adapted)
    assert model(**tokenizer("lada mova", return_tensors="pt")).logits.shape[-1] == len(tokenizer)
    card = (adapted / "README.md").read_text()
    assert f"Perplexity on {found['held_out']} sentences" in card
    assert "$" not in card
    sentence = Sentence(["lada"], ["B-x"])
    assert tagger.Tagger(str(adapted), QUICK).fit([sentence] * 8).tag([["lada"]]) == [["B-x"]]


def test_token_masking_learns_too(adapt, tmp_path):
    assert adapt(tmp_path / "token", "--masking", "token") == 0
    found = results(tmp_path / "token")
    assert found["perplexity"] < 0.8 * found["perplexity_before"]


def test_a_stopped_run_goes_on_exactly(adapt, adapted, tmp_path):
    output = tmp_path / "stopped"
    shutil.copytree(adapted, output)
    shutil.rmtree(output / "checkpoint-8")
    (output / "model.safetensors").unlink()
    assert adapt(output) == 0
    assert losses(output) == losses(adapted)
    assert (output / "model.safetensors").read_bytes() == (
        adapted / "model.safetensors"
    ).read_bytes()
    assert results(output)["perplexity_before"] == results(adapted)["perplexity_before"]


def test_shares_of_the_corpus(adapt, tmp_path):
    assert adapt(tmp_path / "out", "--fraction", 0.25, 1, "--max-steps", 1) == 0
    sizes = {
        share: results(tmp_path / "out" / f"fraction-{share}")["blocks"] for share in ("0.25", "1")
    }
    assert sizes["0.25"] == round(0.25 * sizes["1"])


def test_bad_input_is_one_line(adapt, adapted, corpus, capsys, tmp_path):
    few = write_sentences(tmp_path / "few", 1)
    cases = [
        (
            tmp_path / "a",
            corpus,
            ["--base-model", adapted / "base"],
            "its checkpoint has no language-model head; give --new-head",
        ),
        (tmp_path / "a", corpus, ["--base-model", tmp_path / "none"], "no such folder"),
        (tmp_path / "a", tmp_path, [], "no sentences/part-*.parquet"),
        (tmp_path / "a", few, [], "level domain has 1 sentences; take another --level"),
        (adapted, corpus, ["--rate", "0.2"], "made with rate 0.15, not 0.2"),
        (tmp_path / "a", corpus, ["--rate", "0"], "--rate 0: give more than 0"),
        (tmp_path / "a", corpus, ["--recipe", "none"], "--recipe none: no such recipe"),
        (
            tmp_path / "a",
            corpus,
            ["--maskin", "x"],
            "--maskin: unknown flag; did you mean --masking?",
        ),
        (
            tmp_path / "a",
            corpus,
            ["--base-model", adapted, "--max-subwords", "600"],
            "accepts 512 sub-words; give --max-subwords 512 or less",
        ),
    ]
    for output, folder, flags, message in cases:
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        assert adapt(output, *flags, corpus=folder) == 2
        err = capsys.readouterr().err.splitlines()
        assert message in err[-1], err


def test_first_loss_is_that_of_chance(adapted):
    """Before it learns, a model knows no more than that there are so many sub-words."""
    record = losses(adapted)
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(adapted))
    assert record[1] == pytest.approx(math.log(vocabulary), rel=0.05)


def test_a_head_that_sees_hidden_positions_alone_has_the_same_loss(corpus, adapted, tmp_path):
    tokenizer, found = stream(blocks.load(str(corpus), str(tmp_path)), adapted, range(40))
    batch = masking_module.Masker(tokenizer, "span", 0.3, seed=1)(
        [found[index] for index in range(4)]
    )
    model = transformers.AutoModelForMaskedLM.from_pretrained(adapted).eval()
    whole = model(**batch)
    hidden = batch["labels"].ne(features.IGNORED)
    with model_module.hidden_only(model, hidden) as alone:
        assert alone
        part = model(**{**batch, "labels": batch["labels"][hidden]})
    assert torch.isclose(part.loss, whole.loss)
    assert torch.allclose(part.logits, whole.logits[hidden], atol=1e-5)
    assert model(**batch).logits.shape == whole.logits.shape


def test_a_few_words_have_something_to_guess(adapted):
    tokenizer = transformers.AutoTokenizer.from_pretrained(adapted)
    ids = np.array(tokenizer("lada").input_ids)
    for number in range(20):
        labels = masking_module.Masker(tokenizer, "span", 0.01, seed=1)(
            [blocks.Block((0, number), ids)]
        )["labels"]
        assert (labels != features.IGNORED).sum() == 1
        assert labels[0, 0] == labels[0, -1] == features.IGNORED
