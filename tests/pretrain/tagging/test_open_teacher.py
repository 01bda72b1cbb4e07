"""A teacher of an open head: its part of the loss against loops, and which ones are refused."""

import json
import shutil

import numpy as np
import pytest

from ontology.classes import ClassTree
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT, run

open_head = lazy("pretrain.tagging.open_head")
open_loss = lazy("pretrain.tagging.open_loss")
open_teacher = lazy("pretrain.tagging.open_teacher")
safetensors = lazy("safetensors.torch")
tagging = lazy("finetune.tagger.tagger")
tokenizers = lazy("tokenizers")
torch = lazy("torch")
transformers = lazy("transformers")

CATEGORIES = ("ENTITY", "Politician", "City")
FLAGS = ("--recipe", "open-debug", "--eval-steps", 60, "--save-steps", 60)


@pytest.fixture(scope="module")
def folder(demo, tmp_path_factory):
    """A tiny open tagger."""
    folder = tmp_path_factory.mktemp("teacher") / "tagger"
    code, _, err = pretrain(demo, folder, "--max-steps", 60)
    assert code == 0, err
    return folder


def pretrain(demo, output, *flags):
    where = ("--corpus", demo[0] / "corpus", "--output", output)
    steps = () if "--max-steps" in flags else ("--max-steps", 20)
    return run(*where, *FLAGS, *steps, *flags, cwd=ROOT, name="pretrain")


def test_the_loss_by_loops(folder, tmp_path):
    teacher_folder = tmp_path / "teacher"
    shutil.copytree(folder, teacher_folder, ignore=shutil.ignore_patterns("checkpoint-*", "base"))
    torch.manual_seed(1)
    weights = safetensors.load_file(folder / "model.safetensors")
    weights = {
        name: value + 0.2 * torch.randn_like(value) if "LayerNorm" not in name else value
        for name, value in weights.items()
    }
    safetensors.save_file(weights, teacher_folder / "model.safetensors", {"format": "pt"})
    pupil = tagging.Tagger.load(folder, device="cpu")
    known = tagging.Tagger.load(teacher_folder, device="cpu")
    pupil.model.eval()
    known.model.eval()
    args = transformers.TrainingArguments(str(tmp_path), use_cpu=True)
    teacher = open_teacher.Teacher(str(teacher_folder), pupil.tokenizer, args)
    labels = torch.tensor([[-100, 3, 4, 0, 5, -100], [-100, 0, -100, 2, -100, -100]])
    unlinked = torch.zeros_like(labels)
    unlinked[1, 2] = 1
    inputs = {
        "input_ids": torch.randint(5, 50, labels.shape),
        "attention_mask": torch.ones_like(labels),
    }
    tree = ClassTree.shipped()
    loss = open_loss.ChainLoss(pupil.model, pupil.tokenizer, CATEGORIES, tree, 0.0, teacher=teacher)
    alone = open_loss.ChainLoss(pupil.model, pupil.tokenizer, CATEGORIES, tree, 0.0)
    with torch.no_grad():
        teacher.read({**inputs, "labels": labels, "unlinked": unlinked})
        outputs = pupil.model(**inputs)
        torch.manual_seed(3)
        found = float(loss.loss(outputs, labels, 11))
        torch.manual_seed(3)
        of_labels = float(alone.loss(outputs, labels, 11))
        torch.manual_seed(3)
        names, _ = loss.candidates([1, 2])
        answers = known.model(**inputs).logits

    def scores(tagger, logits):
        """Scores of O, B and I, and of the types and none, of a word."""
        head = tagger.model.classifier
        with torch.no_grad():
            vectors = open_head.name_vectors(tagger.model, tagger.tokenizer, names)
            cosines = [float(logits[3:] @ vector) for vector in vectors] + [head.none.item()]
        kinds = torch.tensor(cosines) * head.scale.exp().item()
        outside = logits[0] - head.evidence.item() * (max(kinds[:-1]) - kinds[-1])
        return torch.stack([outside, logits[1], logits[2] - 1.0]), kinds

    of_tags, of_types, mentions, words = 0.0, 0.0, 0.0, 0
    for row, column in ((labels != -100) | (unlinked == 1)).nonzero().tolist():
        tags, kinds = scores(pupil, outputs.logits[row, column])
        taught_tags, taught_kinds = scores(known, answers[row, column])
        chances = taught_tags.softmax(-1)
        chance = 1 - float(chances[0])
        if labels[row, column] > 0:  # a link says where it begins and ends
            chances = torch.eye(3)[2 - labels[row, column] % 2]
        of_tags -= float((chances * tags.log_softmax(-1)).sum())
        words += 1
        if chance > 0.3:
            mentions += chance
            crossed = taught_kinds.softmax(-1) * kinds.log_softmax(-1)
            of_types -= chance * float(crossed.sum())
    assert words == 7
    assert mentions > 0
    by_teacher = (of_tags + words * of_types / mentions) / 11
    assert found == pytest.approx(0.3 * of_labels + 0.7 * by_teacher, rel=1e-4)


def test_a_pupil_becomes_like_its_teacher(demo, folder, tmp_path):
    few = ("--train-examples", 20, "--base-model", folder / "base")
    texts = ["Albert Einstein studied in Z\u00fcrich.", "Goethe wrote Faust in Weimar."]

    def probabilities(path):
        tagger = tagging.Tagger.load(path, device="cpu")
        tagger.use_types(["scientist", "city"])
        return [row.probabilities for row in tagger.predictions(texts, probabilities=True)]

    of_teacher, distances = probabilities(folder), []
    for name, flags in (("alone", ()), ("taught", ("--teacher", folder))):
        code, _, err = pretrain(demo, tmp_path / name, "--max-steps", 60, *few, *flags)
        assert code == 0, err
        pairs = zip(of_teacher, probabilities(tmp_path / name), strict=True)
        distances.append(np.mean([abs(before - after).mean() for before, after in pairs]))
    assert distances[1] < 0.8 * distances[0]
    record = json.loads((tmp_path / "taught" / "pretrain.json").read_text())
    assert record["settings"]["teacher"] == str(folder)
    assert (
        "| teacher | `tagger`, beside the labels |" in (tmp_path / "taught/README.md").read_text()
    )


def test_whom_nobody_learns_from_is_one_line(demo, folder, tmp_path):
    code, _, err = pretrain(demo, tmp_path / "a", "--head", "closed", "--teacher", folder)
    assert (code, "--teacher: only --head open learns from it" in err) == (2, True)
    closed = tmp_path / "closed"
    assert pretrain(demo, closed, "--head", "closed")[0] == 0
    code, _, err = pretrain(demo, tmp_path / "b", "--teacher", closed)
    assert (code, "a tagger without an open head teaches no types" in err) == (2, True)
    others = {"cases": {"letter_cases": True}, "headless": {}}
    for name, keys in others.items():
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("checkpoint-*"))
        facts = tmp_path / name / "tokenizer_config.json"
        facts.write_text(json.dumps({**json.loads(facts.read_text()), **keys}))
    weights = safetensors.load_file(folder / "model.safetensors")
    kept = {key: value for key, value in weights.items() if not key.startswith("classifier.word")}
    safetensors.save_file(kept, tmp_path / "headless" / "model.safetensors", {"format": "pt"})
    base = ("--base-model", folder / "base")
    for name, message in (
        ("cases", "it is told the case of words, and the base model is not"),
        ("headless", "its head 'open' cannot be loaded"),
    ):
        code, _, err = pretrain(demo, tmp_path / "d", *base, "--teacher", tmp_path / name)
        assert (code, message in err, "Traceback" in err) == (2, True, False)
    code, _, err = pretrain(demo, tmp_path / "c", "--teacher", tmp_path / "nobody")
    assert (code, "nobody: no such folder" in err) == (2, True)


def tokenizer(words, mark="[{}]"):
    names = {role: mark.format(role.upper()) for role in ("unk", "cls", "sep", "pad", "mask")}
    vocabulary = {word: number for number, word in enumerate([*words, *names.values()])}
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token=names["unk"]))
    backend.normalizer = tokenizers.normalizers.BertNormalizer()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    pair = [(names[role], vocabulary[names[role]]) for role in ("sep", "cls")]
    backend.post_processor = tokenizers.processors.BertProcessing(*pair)
    tokens = {f"{role}_token": name for role, name in names.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **tokens)


def test_sub_words_have_other_numbers_but_are_the_same():
    words = ["caf", "##e", "in", "19", "##14", "test", "##ing", ".", ",", "("]
    pupil, teacher = tokenizer(words), tokenizer(words[::-1], "<{}>")
    ids = open_teacher._teachers_ids(pupil, teacher, "base")
    text = "Testing a café in 1914"
    assert ids[pupil(text)["input_ids"]].tolist() == teacher(text)["input_ids"]
    for others in ([*words[1:], "ring"], [*words, "cafe"]):
        with pytest.raises(Exception, match="makes other sub-words than the base model"):
            open_teacher._teachers_ids(pupil, tokenizer(others), "base")
    assert np.all(ids.numpy() >= 0)
