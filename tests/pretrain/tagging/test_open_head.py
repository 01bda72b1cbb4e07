"""The open head against loops, in training and in use."""

import itertools
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from nerbert.commands.table import main
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet, spans_to_tags, tags_to_spans
from ontology.classes import ClassTree, spaced
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT, run
from tests.helpers.toy import QUICK, write_set

conll = lazy("finetune.data.conll")
decoding = lazy("finetune.tagger.decoding")
open_head = lazy("pretrain.tagging.open_head")
open_loss = lazy("pretrain.tagging.open_loss")
open_onnx = lazy("finetune.heads.open_onnx")
open_types = lazy("pretrain.tagging.open_types")
safetensors = lazy("safetensors.torch")
tagging = lazy("finetune.tagger.tagger")
torch = lazy("torch")

CATEGORIES = ("ENTITY", "Senator", "Politician", "Person", "City", "Writer")


@pytest.fixture(scope="module")
def trained(demo, tmp_path_factory):
    """A tiny open tagger, and one that was stopped and went on."""
    flags = ("--recipe", "open-debug", "--eval-steps", 40, "--save-steps", 40)
    environment = {"HF_HOME": str(tmp_path_factory.mktemp("huggingface")), "HF_HUB_OFFLINE": "1"}
    folder = tmp_path_factory.mktemp("open")

    def train(name, *more):
        where = ("--corpus", demo[0] / "corpus", "--output", folder / name)
        flags_here = (*where, *flags, *more)
        return run(*flags_here, cwd=ROOT, name="pretrain", environment=environment)

    code, out, err = train("straight", "--max-steps", 120)
    assert code == 0, err
    return folder, train, out


def losses(model, chains=0.5):
    tree = ClassTree.shipped()
    return open_loss.ChainLoss(model, None, CATEGORIES, tree, chains), tree


def in_our_words(names):
    """Names of classes in the words of the ontology."""
    return [{"location": "place", "organization": "organisation"}.get(n, n) for n in names]


@pytest.mark.parametrize("others", [0, 8])
def test_candidates_are_right_by_the_ontology(monkeypatch, others):
    monkeypatch.setattr("pretrain.tagging.open_loss._OTHERS", others)
    loss, tree = losses(None)
    depth, drawn = {spaced(name): tree.depth(name) for name in tree.names}, set()
    torch.manual_seed(0)
    for _ in range(300):
        gold = [1, 2, 3, 4]
        names, targets = loss.candidates(gold)
        candidates = in_our_words(names)
        assert len(candidates) == len(set(candidates))
        for row, category in enumerate(gold):
            line = {CATEGORIES[category], *tree.ancestors(CATEGORIES[category])}
            right = [n for n, name in enumerate(candidates) if name in set(map(spaced, line))]
            (target,) = targets[row].nonzero().flatten().tolist()
            if right:
                assert target == max(right, key=lambda n: depth[candidates[n]])
            else:
                assert target == len(candidates)
            drawn.add((category, candidates[target] if right else "none"))
    assert {(1, "senator"), (1, "person"), (2, "person"), (4, "city")} <= drawn
    assert (4, "none") in drawn or others


def test_the_last_checkpoint_is_kept(trained):
    """F1 against the links of some sentences does not choose one of those before."""
    folder = trained[0] / "straight"
    last = (folder / "checkpoint-120" / "model.safetensors").read_bytes()
    assert (folder / "model.safetensors").read_bytes() == last
    assert "Last checkpoint, on" in (folder / "README.md").read_text()


def test_an_open_tagger_goes_on_with_its_head(trained):
    folder, train, _ = trained
    base = ("--base-model", folder / "straight")
    code, _, err = train("onwards", *base, "--max-steps", 1, "--learning-rate", 1e-12)
    assert code == 0, err
    before, after = (
        safetensors.load_file(folder / name / "model.safetensors")
        for name in ("straight", "onwards")
    )
    heads = [name for name in before if name.startswith("classifier.")]
    assert len(heads) == 9
    for name in heads:
        assert torch.allclose(before[name], after[name], atol=1e-9), name


@pytest.fixture
def model(trained):
    return tagging.Tagger.load(trained[0] / "straight", device="cpu")


def test_the_loss_by_loops(model):
    tree = ClassTree.shipped()
    loss = open_loss.ChainLoss(model.model, model.tokenizer, CATEGORIES, tree, 0.0)
    model.model.eval()
    labels = torch.tensor([[-100, 3, 4, 0, 9, -100], [-100, 0, 1, 2, 7, -100]])
    ids = torch.randint(5, 50, labels.shape)
    with torch.no_grad():
        outputs = model.model(input_ids=ids)
        torch.manual_seed(3)
        found = float(loss.loss(outputs, labels, 17))
        torch.manual_seed(3)
        words, targets = loss.candidates([1, 3, 4])
        vectors = torch.cat(
            [open_head.name_vectors(model.model, model.tokenizer, [word]) for word in words]
        )
    head, logits = model.model.classifier, outputs.logits
    tag_loss, kind_losses = 0.0, []
    for row, column in (labels != -100).nonzero().tolist():
        label = int(labels[row, column])
        part = 0 if label == 0 else 1 if label % 2 else 2
        scores = logits[row, column]
        factor = head.scale.exp().item()
        best = max(float(scores[3:] @ vector) for vector in vectors)
        tag_scores = scores[:3].clone()
        tag_scores[0] -= head.evidence.item() * factor * (best - head.none.item())
        tag_scores[2] -= 1.0
        tag_loss -= float(tag_scores.log_softmax(-1)[part])
        category = (label - 1) // 2
        if label > 0 and CATEGORIES[category] != "ENTITY":
            cosines = [float(scores[3:] @ vector) for vector in vectors] + [head.none.item()]
            place = [1, 3, 4].index(category)
            scaled = torch.tensor(cosines) * head.scale.exp().item()
            kind_losses.append(-float(scaled.softmax(-1)[targets[place]].sum().log()))
    expected = (tag_loss + 8 * np.mean(kind_losses)) / 17
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("cost", [0.0, 4.0])
def test_types_of_words_by_loops(cost):
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(4, 7)).astype(np.float32)
    vectors[0] = vectors[1] * 1.2  # nearer to all that b is near
    numbers = open_types.Numbers(0.2, np.log(3), 0.3, cost)
    for keeps_others in (False, True):
        types = open_types.Types(["person", *"bcd"], vectors, numbers, keeps_others)
        for _ in range(50):
            logits = draw.normal(size=(12, 10)).astype(np.float32) * 2
            tags, scores = types.decode(logits)
            names = ["a", "b", "c", "d", "others"]
            spans, word = [], 0
            tag_scores = torch.from_numpy(logits[:, :3].copy())
            for n in range(12):
                tag_scores[n, 0] -= 0.3 * 3 * (max(vectors @ logits[n, 3:]) - 0.2)
            parts = open_types.best_path(tag_scores.softmax(-1).numpy())
            while word < 12:
                end = word + 1
                if parts[word] == 1:
                    while end < 12 and parts[end] == 2:
                        end += 1
                    mean = np.mean([vectors @ logits[n, 3:] for n in range(word, end)], 0)
                    mean[0] -= cost / 3
                    kind = int(np.append(mean, 0.2).argmax())
                    if kind < 4 or keeps_others:
                        spans.append((word, end, names[kind]))
                word = end
            labels = ["O", *(f"{prefix}-{name}" for name in names for prefix in "BI")]
            assert [labels[tag] for tag in tags] == spans_to_tags(spans, 12)
            assert all(0 <= score <= 1 for score in scores)
            assert types.probabilities(logits).shape == (12, 9 + 2 * keeps_others)


def test_person_yields_to_kinds_of_persons_and_to_nothing_else():
    vectors = np.array([[1, 0], [0.4, 0.9], [0, 1]], np.float32)

    def costs(*words):
        return open_types.person_costs(words, vectors, 2.0).tolist()

    assert costs("person", "researcher", "city") == [2, 0, 0, 0]
    assert costs("persona", "investigador", "ciudad") == [2, 0, 0, 0]
    assert open_types.person_costs(["Person", "people"], vectors[:2], 2.0).tolist() == [0, 0, 0]
    assert costs("city", "person", "river") == [0, 2, 0, 0]
    assert costs("city", "researcher", "river") == [0, 0, 0, 0]
    assert open_types.person_costs(["person"], vectors[:1], 2.0).tolist() == [0, 0]


def test_a_damaged_configuration_is_named(trained, tmp_path):
    folder = shutil.copytree(trained[0] / "straight", tmp_path / "damaged")
    config = json.loads((folder / "config.json").read_text())
    for field, value, message in (
        ("open_person_cost", "two", "open_person_cost 'two' in its config.json is no cost"),
        ("open_person_cost", float("nan"), "open_person_cost nan in its config.json is no cost"),
        ("open_types", ["city"], "open_types in its config.json are no names of types"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, field: value}))
        with pytest.raises(UserError, match=message) as error:
            tagging.Tagger.load(folder)
        assert str(folder) in str(error.value)


def test_the_loss_of_a_set_has_the_cost_and_that_of_links_none(model, monkeypatch):
    monkeypatch.setattr(open_types, "_LIKE_PERSON", -1.0)
    config, tokenizer = model.model.config, model.tokenizer
    assert config.open_person_cost == open_types.PERSON_COST
    labels = torch.tensor([[-100, 1, 0, -100]])
    tree = ClassTree.shipped()
    for loss, rises in (
        (open_loss.OpenLoss(model.model, tokenizer, ["person", "scientist"]), True),
        (open_loss.OpenLoss(model.model, tokenizer, ["person", "people"]), False),
        (open_loss.ChainLoss(model.model, tokenizer, ("Person", "Scientist"), tree, 0.0), False),
    ):
        found = []
        for config.open_person_cost in (0.0, 100.0):
            torch.manual_seed(0)
            with torch.no_grad():
                outputs = model.model(input_ids=torch.tensor([[5, 6, 7, 8]]))
                found.append(float(loss.loss(outputs, labels)))
        assert (found[1] - found[0] > 10) == rises
        assert rises or found[0] == found[1]


def test_the_best_path_is_that_of_all():
    draw = np.random.default_rng(1)
    for size in range(7):
        for _ in range(20):
            chances = draw.dirichlet(np.ones(3), size).astype(np.float32)
            allowed = [
                tags
                for tags in itertools.product(range(3), repeat=size)
                if all(tag != 2 or before for before, tag in itertools.pairwise((0, *tags)))
            ]
            wanted = max(
                allowed, key=lambda tags: sum(np.log(chances[n, t]) for n, t in enumerate(tags))
            )
            assert open_types.best_path(chances) == list(wanted)


def test_it_learns_and_the_types_are_free(trained, model):
    folder, _, out = trained
    assert "F1 0." in out
    record = json.loads((folder / "straight" / "pretrain.json").read_text())
    assert record["results"]["validation"]["f1"] > 0.3
    text = "Albert Einstein studied in Zürich."
    (person, city) = model.predict(text, types=["scientist", "city"])
    assert (person.text, person.type, city.text, city.type) == (
        *("Albert Einstein", "scientist"),
        *("Zürich", "city"),
    )
    assert len(model.tags) > 5  # only those texts had other types
    model.use_types(["scientist", "city"])
    assert model.tags == ["O", "B-scientist", "I-scientist", "B-city", "I-city"]
    (row,) = model.predictions([text], probabilities=True)
    assert row.probabilities.shape == (6, 5)
    assert model.predict([text]) == [row.entities]


def test_names_are_encoded_once_and_not_by_their_neighbours(model, monkeypatch):
    names = ["city", "musical artist who plays the drums", "scientist"]
    model.use_types(names)
    alone = [open_head.types_of(model.model, model.tokenizer, [name]) for name in names]
    for row, types in zip(model._decoder.head.names, alone, strict=True):
        assert np.allclose(row, types.names[0], atol=1e-5)
    monkeypatch.setattr(open_head, "name_vectors", None)
    model.use_types(names[:2])


def test_fine_tuning_from_the_head(trained, tmp_path):
    """It keeps the types' names, and starts from what the head knows; misc is none of them."""
    given = [
        Sentence(["Ada", "Byron", "met", "misc", "Ulm"], ["B-sci", "I-sci", "O", "B-misc", "B-LOC"])
    ] * 4
    base = trained[0] / "straight"
    fitted = tagging.Tagger(base, head="open", epochs=8, learning_rate=1e-3).fit(given)
    assert fitted.model.config.open_types == {"LOC": "location", "misc": None, "sci": "sci"}
    assert fitted.tag([given[0].tokens]) == [given[0].tags]
    fitted.save(tmp_path / "fitted")
    loaded = tagging.Tagger.load(tmp_path / "fitted")
    assert loaded.tags == LabelSet(("LOC", "sci", "misc")).tags
    (row,) = loaded.predictions([given[0].tokens], probabilities=True)
    assert row.tags == given[0].tags
    assert [loaded.tags[column] for column in row.probabilities.argmax(1)] == row.tags
    assert fitted.min_score == loaded.min_score == open_onnx.MIN_SCORE
    assert loaded.predict([given[0].tokens], types=["location"])
    fresh = tagging.Tagger(trained[0] / "straight" / "base", head="open", epochs=1).fit(given)
    assert fresh.model.config.tag_head == "open"
    for part in ("weight", "name.weight"):
        start = model_of(base).get_parameter(f"classifier.{part}")
        end = fitted.model.get_parameter(f"classifier.{part}")
        assert torch.nn.functional.cosine_similarity(start.flatten(), end.flatten(), 0) > 0.9


def test_zero_shot_says_which_types_are_new(model, trained, tmp_path):
    folder = write_set(tmp_path / "set", person="Scientist", city="moonbase")
    from finetune.data.sets import DataSets
    from finetune.experiments.execution import score_run
    from finetune.experiments.runs import Run

    assert "scientist" in model.model.config.open_types.values()
    run_here = Run(str(trained[0] / "straight"), str(folder), QUICK, "zero-shot")
    scores, predictions = score_run(model, run_here, DataSets())
    assert scores["new_types"] == ["moonbase"]
    assert scores["without_misc"]["f1"] == scores["strict"]["f1"]  # the set has no such type
    assert {t[2:] for row in predictions.predicted for t in row} <= {"", "Scientist", "moonbase"}


def test_zero_shot_by_names_in_the_language_of_the_set(model, trained, tmp_path, capsys):
    from finetune.scoring.metrics import seqeval_scores

    (tmp_path / "wikiann").mkdir()
    for language in ("en", "es"):
        folder = write_set(tmp_path / "wikiann" / language, person="PER", city="LOC")
        for split, name in (("train", "train"), ("valid", "val"), ("test", "test")):
            (folder / f"{split}.txt").rename(folder / f"{name}.conllu")
    base = trained[0] / "straight"
    flags = f"--models {base} --data wikiann/en wikiann/es --data-root {tmp_path}"
    output = tmp_path / "report"
    assert main(f"evaluate {flags} --regime zero-shot --output {output}".split()) == 0
    english, spanish = json.loads((output / "report.json").read_text())["runs"]
    test = conll.read(str(folder / "test.conllu"), None)
    model.use_types({"PER": "persona", "LOC": "lugar"})
    tags = model.tag([row.tokens for row in test])
    scores, _ = seqeval_scores([row.tags for row in test], tags)
    assert spanish["own_words"] == scores.to_json()
    assert "own_words" not in english
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "set's language" in line)
    assert line.split("|")[2].strip() == "-"


def model_of(folder):
    return tagging.Tagger.load(folder, device="cpu").model


def test_all_types_of_a_set_are_candidates(model):
    loss = open_loss.OpenLoss(model.model, model.tokenizer, ["city", None, "sci"])
    names, right = loss.candidates([0, 1, 2])
    assert names == ["city", "sci"]
    assert right.tolist() == [[True, False, False], [False, False, True], [False, True, False]]
    labels = torch.tensor([[-100, 1, 2, 3, 5, -100]])
    outputs = model.model(input_ids=torch.tensor([[2, 5, 6, 7, 8, 3]]))
    best = loss.best(outputs.logits, labels)
    types = open_head.types_of(model.model, model.tokenizer, names, keeps_others=True)
    tags, _ = types.decode(outputs.logits[0, 1:5].detach().numpy())
    assert best[0, 1:5].tolist() == [[0, 1, 2, 5, 6, 3, 4][tag] for tag in tags]


@pytest.mark.slow
def test_a_stopped_run_gets_the_same_weights(trained, monkeypatch):
    folder, train, _ = trained
    steps, before = [], open_loss.OpenLoss.loss

    def stops(self, *arguments, **more):
        steps.append(1)
        if len(steps) > 100:
            raise KeyboardInterrupt
        return before(self, *arguments, **more)

    monkeypatch.setattr("pretrain.tagging.open_loss.OpenLoss.loss", stops)
    assert train("stopped", "--max-steps", 120)[0]
    monkeypatch.undo()
    code, _, err = train("stopped", "--max-steps", 120)
    assert code == 0, err
    assert "continuing from" in err
    weights = [(folder / n / "model.safetensors").read_bytes() for n in ("straight", "stopped")]
    assert weights[0] == weights[1]


def test_transformers_loads_it_as_a_tagger_of_mentions(trained):
    code = (
        "import sys\n"
        "from transformers import AutoModel, AutoModelForTokenClassification\n"
        "model = AutoModelForTokenClassification.from_pretrained(sys.argv[1])\n"
        "AutoModel.from_pretrained(sys.argv[1])\n"
        "print(model.config.id2label)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(trained[0] / "straight")], capture_output=True, text=True
    )
    assert done.stdout == "{0: 'O', 1: 'B-ENTITY', 2: 'I-ENTITY'}\n", done.stderr


def test_many_types_do_not_make_the_right_one_improbable():
    size = open_types.SIZE
    names = torch.nn.functional.normalize(torch.randn(200, size), dim=-1).numpy()
    names[0] = np.eye(size)[0]
    names[1:, 0] = 0.2
    word = np.concatenate([[0, 9, 0], np.eye(size)[0]])[None].astype(np.float32)
    scores = []
    for count in (6, 50, 200):
        numbers, words = open_types.Numbers(0.0, 2.0), [f"type {n}" for n in range(count)]
        tags, chances = open_types.Types(words, names[:count], numbers).decode(word)
        assert tags == [1]
        scores += chances
    assert scores[0] == pytest.approx(scores[1]) == pytest.approx(scores[2])
    assert scores[0] > 0.9


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ("city", {"city": "city"}),
        (["city", "City", "CITY", " city", "ci\u200bty"], {"city": "city"}),
        (["PoliticalParty", "political_party"], {"PoliticalParty": "political party"}),
        (
            ["political  party", "person"],
            {"political  party": "political party", "person": "person"},
        ),
        (["PER", "person", "ORG"], {"PER": "person", "ORG": "organization"}),
        ({"a": "city", "b": "town"}, {"a": "city", "b": "town"}),
        ({"misc": None, "b": "town"}, {"b": "town", "misc": None}),
    ],
)
def test_types_as_people_write_them(types, expected):
    assert decoding.names_of_types(types) == expected


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([], "give at least one type"),
        ({}, "give at least one type"),
        ({"a": "city", "b": "ci\u200bty"}, "are alike"),
        ({"a": "city", "b": "CITY"}, "'city' and 'CITY' are alike"),
        ([""], "'' is no type"),
        (["city", "\u200b "], "is no type"),
        ([None], "None is no type"),
        ({"a": 5}, "5 is no type"),
        ({"misc": None}, "give at least one type"),
        ({"a": None, "b": "city", "c": None}, "None and None are alike"),
        (["scientist,city"], "has a comma; give types with spaces between them"),
        (["word " * 600], "has more than 512 sub-words"),
    ],
)
def test_bad_types_are_one_line(model, types, message):
    for use in (
        model.use_types,
        lambda names: model.predict("Ulm", types=names) if names else None,
    ):
        if types or use == model.use_types:
            with pytest.raises(UserError, match=message) as error:
                use(types)
            assert "\n" not in str(error.value)


def test_types_of_another_head(model):
    with pytest.raises(UserError, match="has its own types"):
        tagging.Tagger("x").use_types(["city"])


def test_a_string_is_one_type(model):
    model.use_types("city")
    assert model.types == ["city"]
    model.use_types(["film, song or book"])
    assert model.types == ["film, song or book"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("open_types", None),
        ("open_types", 5),
        ("open_types", {"city": 5}),
        ("open_types", {"city": " "}),
        ("open_types", {"city": None, "misc": None}),
        ("mention_scores", [1]),
        ("mention_scores", "x"),
        ("mention_scores", {"slope": 1, "other": 2}),
        ("mention_scores", {"slope": "x"}),
        ("mention_scores", {"slope": float("nan")}),
        ("mention_scores", {"slope": 0}),
        ("mention_scores", {"min_score": 2}),
    ],
)
def test_configs_of_another_shape(trained, tmp_path, key, value):
    shutil.copytree(trained[0] / "straight", tmp_path / "open")
    path = tmp_path / "open" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(UserError, match=rf"open: {key} in its config\.json"):
        tagging.Tagger.load(tmp_path / "open", device="cpu")


def test_threads_have_their_own_types(model):
    """Each call finds its own types only, and leaves those of the tagger."""
    texts = ["Albert Einstein and Max Planck studied in Zürich and Rome."] * 2
    model.use_types(["river"])
    names = ["scientist", "city", "person", "settlement", "album", "place"]
    subsets = [names[first : first + size] for first in range(6) for size in (1, 2, 3)]
    alone = [model.predict(texts, types=types) for types in subsets]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda types: model.predict(texts, types=types), subsets * 8))
    assert together == alone * 8
    assert model.types == ["river"]
    assert sum(map(len, alone[0])) + sum(map(len, alone[3])) > 2


def test_onnx_runtime_takes_any_types_without_torch(trained, model, tmp_path):
    """The same mentions and scores as by torch, also of the types of training, and of no type."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "exported"
    shutil.copytree(trained[0] / "straight", folder)
    config = json.loads((folder / "config.json").read_text())
    config["open_types"] = {"misc": None, "river": "river"}
    (folder / "config.json").write_text(json.dumps(config))
    assert main(["export", "--model", str(folder), "--format", "onnx"]) == 0
    texts = ["Albert Einstein studied in Zürich.", "", "Rome , x", "Mr. Planck of Berlin. " * 200]
    code = (
        "import json, sys\n"
        "from finetune.tagger.tagger import Tagger\n"
        "tagger = Tagger.load(sys.argv[1])\n"
        "texts = json.loads(sys.argv[2])\n"
        "found = [tagger.predict(texts, types=json.loads(sys.argv[3])), tagger.predict(texts)]\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
        "print(json.dumps([[[vars(e) for e in es] for es in found_] for found_ in found]))"
    )
    names = ["scientist", "city", "musical artist who plays the drums"]
    given = [str(folder), json.dumps(texts), json.dumps(names)]
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    fresh = tagging.Tagger.load(folder, backend="torch")
    wanted = [fresh.predict(texts, types=names), fresh.predict(texts)]
    assert "misc" in {entity.type for entities in wanted[1] for entity in entities}
    for of_onnx, of_torch in zip(json.loads(done.stdout), wanted, strict=True):
        for found, expected in zip(of_onnx, of_torch, strict=True):
            keys = [(e["start"], e["end"], e["type"], e["text"]) for e in found]
            assert keys == [(e.start, e.end, e.type, e.text) for e in expected]
            scores = [entity.score for entity in expected]
            assert [e["score"] for e in found] == pytest.approx(scores, abs=1e-4)
    attending = tagging.Tagger.load(folder, replace(QUICK, attend_padding=True))
    keys = [(e.start, e.end, e.type) for e in attending.predict(texts[0], types=names)]
    assert keys == [(e.start, e.end, e.type) for e in wanted[0][0]]
    by_onnx = tagging.Tagger.load(folder, backend="onnx")
    with pytest.raises(UserError, match="has more than 512 sub-words"):
        by_onnx.use_types(["city", "x " * 600])


def test_names_of_strangers_are_forgotten(model, monkeypatch):
    monkeypatch.setattr(open_types, "_KEPT", 50)
    for first in range(0, 200, 20):
        model.predict("Rome", types=[f"type {n}" for n in range(first, first + 20)])
    assert len(model._head._vectors) == 50
    model.use_types([f"type {n}" for n in range(120)])
    assert model.predict("Rome") == model.predict("Rome", types=model.types)


def test_tags_are_of_mentions_from_the_smallest_score_on(model):
    tokens = "Albert Einstein , Mr. Max Planck and Rome of Zürich studied Physics .".split()
    names = ["scientist", "city", "philosophy", "band"]
    model.use_types(names)
    assert model.min_score == open_onnx.MIN_SCORE
    kept = model.tag([tokens])[0]
    model.min_score = 0.0
    (whole,) = model.predictions([tokens])
    spans = [
        (one.start, one.end, one.type) for one in whole.entities if one.score >= open_onnx.MIN_SCORE
    ]
    assert kept == spans_to_tags(spans, len(tokens))
    model.min_score = 1.0
    assert model.tag([tokens]) == [["O"] * len(tokens)]


def test_onnx_says_what_torch_says(trained, tmp_path):
    pytest.importorskip("onnxscript")
    folder = tmp_path / "open"
    shutil.copytree(trained[0] / "straight", folder)
    assert main(["export", "--format", "onnx", "--model", str(folder)]) == 0
    text = "Albert Einstein studied in Zürich."
    by = {}
    for backend in ("torch", "onnx"):
        loaded = tagging.Tagger.load(folder, backend=backend, device="cpu")
        loaded.use_types(["scientist", "city"])
        (by[backend],) = loaded.predictions([text], probabilities=True)
    assert by["torch"].tags == by["onnx"].tags
    np.testing.assert_allclose(by["torch"].probabilities, by["onnx"].probabilities, atol=1e-4)


def test_a_matrix_of_open_heads_looks_for_the_types_of_each_set(trained, tmp_path):
    """A head that saw only one set knows the types of the other by their names."""
    first = write_set(tmp_path / "a", person="Scientist", city="City")
    other = write_set(tmp_path / "b", person="Writer", city="Town")
    flags = ("--model", trained[0] / "straight", "--head", "open", "--data", first, other)
    flags += ("--seeds", 1, "--epochs", 1, "--output", tmp_path / "matrix")
    assert main(["matrix", *map(str, flags)]) == 0
    cells = json.loads((tmp_path / "matrix" / "matrix.json").read_text())["cells"]
    assert [sorted(cell["per_type"]) for cell in cells] == [
        ["city", "scientist"],
        ["town", "writer"],
    ] * 2
    assert all(cell["strict"]["f1"] > 0 for cell in cells)


def test_every_type_that_fits_a_mention(model, trained, capsys):
    """By hand: against none it has 0.75 or more; the tags are still of the best type."""
    text = "Albert Einstein studied in Zürich."
    names = ["scientist", "person", "city", "settlement", "album"]
    model.use_types(names)
    model.min_score = 0.0
    (one,) = model.predictions([text])
    (all_,) = model.predictions([text], overlapping=True)
    assert (all_.tags, all_.words) == (one.tags, one.words)
    best = {(e.start, e.end): e.type for e in one.entities}
    assert {(e.start, e.end) for e in all_.entities} == set(best)
    (logits,) = model._logits([[one.words]])
    types = model._decoder.head
    for (first, end, _), place in zip(tags_to_spans(one.tags), best, strict=True):
        means = logits[first:end, 3:].mean(0) @ types.names.T
        chances = 1 / (1 + np.exp(-(means - types.none) * types.factor))
        wanted = {name for name, chance in zip(names, chances, strict=True) if chance >= 0.75}
        here = [e for e in all_.entities if (e.start, e.end) == place]
        assert here[0].type == best[place]
        assert {e.type for e in here} == wanted | {best[place]}
        assert [e.score for e in here[1:]] == sorted((e.score for e in here[1:]), reverse=True)
    assert len(all_.entities) > len(one.entities)
    flags = ("--types", *names, "--min-score", "0", "--overlapping", "--", text)
    assert main(["predict", "--model", str(trained[0] / "straight"), *flags]) == 0
    found = json.loads(capsys.readouterr().out)["entities"]
    assert [e["type"] for e in found] == [e.type for e in all_.entities]


def test_phrases_are_right_beside_the_class():
    tree, sets = ClassTree.shipped(), [(), ("tennis player", "player"), ("city",), ("algorithm",)]
    loss = open_loss.ChainLoss(None, None, CATEGORIES, tree, 0.3, sets)
    size, drawn = len(CATEGORIES), set()
    gold = [3 + size, 4, 4 + 2 * size, 3 * size]  # persons who play, cities, an algorithm
    classes = {n for name in CATEGORIES[1:] for n in (name, *tree.ancestors(name))}
    torch.manual_seed(0)
    for _ in range(300):
        names, right = loss.candidates(gold)
        assert names == sorted(set(names))
        names = in_our_words(names)
        for row, number in enumerate(gold):
            category, phrases = CATEGORIES[number % size], sets[number // size]
            line = [] if category == "ENTITY" else [category, *tree.ancestors(category)]
            deepest = [n for n in sorted(line, key=tree.depth) if spaced(n) in names][-1:]
            expected = {phrase for phrase in phrases if phrase in names}
            if not expected or not any({*deepest} & {*tree.parents(n)} for n in classes):
                expected.update(map(spaced, deepest))
            marked = {name for name, is_right in zip(names, right[row], strict=False) if is_right}
            assert marked == expected
            assert bool(right[row, -1]) == (not expected)
            drawn.add((row, *sorted(marked)))
        assert right[3].nonzero().flatten().tolist() == [names.index("algorithm")]
    assert {(0, "player", "tennis player"), (1, "city"), (2, "city")} <= drawn


def test_in_some_batches_the_kind_is_right(monkeypatch):
    monkeypatch.setattr("pretrain.tagging.open_loss._KINDS", 1.0)
    tree, sets = ClassTree.shipped(), [(), ("tennis player", "player"), ("algorithm",)]
    loss = open_loss.ChainLoss(None, None, CATEGORIES, tree, 0.3, sets)
    size, drawn = len(CATEGORIES), set()
    gold = [1, 3 + size, 4, 2 * size]  # a senator, a person who plays, a city, an algorithm
    torch.manual_seed(0)
    for _ in range(100):
        names, right = loss.candidates(gold)
        assert {*names} <= {"person", "place", "location", "algorithm"}
        for row, kind in enumerate([{"person"}, {"person"}, {"place", "location"}]):
            expected = [name in kind for name in names]
            assert right[row].tolist() == [*expected, not any(expected)]
        assert right[3].tolist() == [name == "algorithm" for name in [*names, ""]]
        drawn.update(names)
    assert drawn == {"person", "place", "location", "algorithm"}


def test_classes_have_names_in_the_languages_of_the_corpus():
    tree, others = ClassTree.shipped(), {"City": ["місто", "Stadt"], "Person": ["особа"]}
    sets = [(), ("Stadt",)]
    loss = open_loss.ChainLoss(None, None, CATEGORIES, tree, 0.0, sets, others)
    english = {"місто": "city", "Stadt": "city", "особа": "person", "location": "place"}
    gold, drawn = [4, 3, 2, len(CATEGORIES)], set()  # of City, Person, Politician, and a "Stadt"
    lines = [
        [spaced(n) for n in sorted({name, *tree.ancestors(name)}, key=tree.depth, reverse=True)]
        for name in ("City", "Person", "Politician")
    ]
    torch.manual_seed(0)
    for _ in range(300):
        names, right = loss.candidates(gold)
        assert names == sorted(set(names))
        meant = [english.get(name, name) for name in names]
        for row, line in enumerate(lines):
            deepest = next((name for name in line if name in meant), None)
            found = [name for name, is_right in zip(meant, right[row], strict=False) if is_right]
            # "Stadt" may be there as a phrase alone.
            assert found == [deepest] * (deepest is not None) or ("Stadt" in names and row == 0)
            drawn.update(
                name for name, is_right in zip(names, right[row], strict=False) if is_right
            )
        of_phrase = [names.index("Stadt")] if "Stadt" in names else [len(names)]
        assert right[3].nonzero().flatten().tolist() == of_phrase
    assert drawn >= {"city", "місто", "Stadt", "person", "особа", "politician"}


def test_mentions_without_a_class_count_by_their_phrases(model):
    tree, size = ClassTree.shipped(), len(CATEGORIES)
    labels = torch.tensor([[-100, 1 + 2 * size, 2 + 2 * size, 0, -100]])
    losses: list[float] = []
    model.model.requires_grad_(False)
    outputs = model.model(input_ids=torch.tensor([[2, 5, 6, 7, 3]]))
    for sets in ([(), ("algorithm",)], [(), ()]):
        loss = open_loss.ChainLoss(model.model, model.tokenizer, CATEGORIES, tree, 0.0, sets)
        torch.manual_seed(0)
        names, right = loss.candidates([size])
        torch.manual_seed(0)
        value = float(loss.loss(outputs, labels, 3))
        vectors = open_head.name_vectors(model.model, model.tokenizer, names)
        scores = model.model.classifier.scores(outputs.logits[0, 1:3, 3:], vectors)
        kinds = -scores.log_softmax(-1)[:, right[0]].exp().sum(-1).log().mean()
        head = model.model.classifier
        every = head.scores(outputs.logits[0, 1:4, 3:], vectors)
        tag_scores = head.tag_scores(outputs.logits[0, 1:4, :3], every)
        tag_scores = tag_scores - torch.tensor([0.0, 0.0, 1.0])
        tags = torch.nn.functional.cross_entropy(
            tag_scores, torch.tensor([1, 2, 0]), reduction="sum"
        )
        assert value == pytest.approx(float(tags + 3 * kinds) / 3, rel=1e-4)
        losses.append(value)
    assert losses[0] != losses[1]
