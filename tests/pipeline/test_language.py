import random

import pytest

from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.punkt import Parameters
from nerbert.text.sentences import SentenceModel, _split_full_stops
from pipeline.documents.sample import sampled_texts
from pipeline.dump import units
from pipeline.dump.pages import Page
from pipeline.dump.site import ENGLISH
from pipeline.dump.streams import find_dumps
from pipeline.language import pretrained, trained
from pipeline.wikitext.render import Anchor, render
from tests.helpers.lazy import lazy

punkt = lazy("nltk.tokenize.punkt")

PLAIN = SentenceModel("test", Parameters(frozenset({"dr", "u.s"})))


def split(text, anchors=(), model=PLAIN):
    return [text[start:end] for start, end in model.split(text, anchors)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One is. Two is! Three?", ["One is.", "Two is!", "Three?"]),
        ("Dr. No is here. Next one.", ["Dr. No is here.", "Next one."]),
        ("First\nSecond part. Third", ["First", "Second part.", "Third"]),
        ('He said "go." Then left.', ['He said "go."', "Then left."]),
        ("東京は都市。大阪も都市！次", ["東京は都市。", "大阪も都市！", "次"]),
        ("彼は「行く。帰る。」と言った。次。", ["彼は「行く。帰る。」と言った。", "次。"]),
        ("開「閉じない。次。", ["開「閉じない。", "次。"]),
        ("एक है। दो है।", ["एक है।", "दो है।"]),
        ("도시이다.그는 갔다. 끝.", ["도시이다.", "그는 갔다.", "끝."]),
        # No sentence begins in lower case.
        ("Το 400 π.Χ. περίπου ήταν. Και μετά.", ["Το 400 π.Χ. περίπου ήταν.", "Και μετά."]),
        ("Is it? he asked. No.\nand on.", ["Is it? he asked.", "No.", "and on."]),
        ("Atom (fr. Greek. Atomos) is one. No.", ["Atom (fr. Greek. Atomos) is one.", "No."]),
        ("It fell (see below. No end. So.", ["It fell (see below.", "No end.", "So."]),
        ("A (b. C (d) e) f.", ["A (b. C (d) e) f."]),
        ("(In part. All of it.) So.", ["(In part.", "All of it.)", "So."]),
        ("", []),
    ],
)
def test_split(text, sentences):
    assert split(text) == sentences


def test_no_sentence_ends_behind_an_ordinal():
    text = "Er war der 1. Duke. Die 2. Liga. Er hat 33. Im Jahr 1945. Tor im 16. Bis dann."
    model = SentenceModel.train([text, "nur im Wald, und bis zum Fluss"], language="de")
    wanted = ["Er war der 1. Duke.", "Die 2. Liga.", "Er hat 33.", "Im Jahr 1945."]
    assert [text[a:b] for a, b in model.split(text)] == [*wanted, "Tor im 16.", "Bis dann."]
    english = SentenceModel.train([text], language="en")
    assert text[slice(*english.split(text)[0])] == "Er war der 1."


def test_no_sentence_ends_inside_an_anchor():
    text = "He met Foo Inc. The Band. They sang. Who? Bar Co. Ltd. Yes."
    anchors = [Anchor(7, 24, "Foo Inc. The Band"), Anchor(42, 53, "Bar")]
    assert text[7:24] == "Foo Inc. The Band"
    assert split(text, anchors)[0] == "He met Foo Inc. The Band."
    for start, end in PLAIN.split(text, anchors):
        assert not any(a.start < end < a.end or a.start < start < a.end for a in anchors)


def nltk_tokenizer(model):
    """NLTK's own class with the parameters of a model."""
    parameters = punkt.PunktParameters()
    parameters.abbrev_types = set(model.parameters.abbreviations)
    parameters.collocations = set(model.parameters.collocations)
    parameters.sent_starters = set(model.parameters.starters)
    parameters.ortho_context.update(model.parameters.contexts)
    return punkt.PunktSentenceTokenizer(parameters)


def test_random_texts_are_split_as_nltk_splits_each_line():
    draw = random.Random(3)
    words = [
        "Dr.",
        "U.S.",
        "Mr.",
        "one",
        "Two",
        "3.",
        "e.g.",
        "end.",
        "end?",
        "(end.)",
        '"end."',
        "...",
        "x)",
        "see.",
        "A.",
        "b.",
        "wow!",
        "no.?",
        "Saint.",
        "“q.”",
        "é.",
        "1990.",
        "co-op.",
        "_a.",
        ".",
        '.".',
        "!",
        "?).",
    ]
    parameters = Parameters(
        frozenset({"co", "dr", "e.g", "op", "u.s"}),
        frozenset({("end", "two"), ("see", "saint")}),
        frozenset({"two"}),
        {"dr": 8, "one": 32, "two": 20},
    )
    model = SentenceModel("test", parameters)
    reference = nltk_tokenizer(model)
    for _ in range(3000):
        line = " ".join(draw.choice(words) for _ in range(draw.randint(1, 14)))
        assert model.split_line(line) == list(reference.span_tokenize(line)), line


def test_training_gives_nltks_parameters(shared):
    (path,) = find_dumps([Place(shared / "dumps" / "enwiki-201205-pages-articles-p2.xml.bz2")])
    pages = [p for unit in units.cut([units.inspect(path)]) for p in units.read_unit(unit)]
    texts = [render(p.wikitext, ENGLISH).text for p in pages if p.redirect is None][:12]
    model = SentenceModel.train(texts)
    trainer = punkt.PunktTrainer()
    trainer.train("\n\n".join(texts))
    reference = trainer.get_params()
    assert set(model.parameters.abbreviations) == reference.abbrev_types
    assert set(model.parameters.collocations) == reference.collocations
    assert set(model.parameters.starters) == reference.sent_starters
    assert model.parameters.contexts == {
        word: n for word, n in reference.ortho_context.items() if n
    }
    assert len(model.parameters.contexts) > 5000
    assert len(model.parameters.abbreviations) > 10


def test_json_round_trip():
    model = SentenceModel.train(["Dr. A saw Mr. B. Then Dr. C came. " * 30])
    assert SentenceModel.from_json(model.to_json()) == model
    assert model.source == "dump"


def test_pretrained_needs_data_and_a_known_language(monkeypatch):
    monkeypatch.setattr("nltk.data.path", [])
    with pytest.raises(UserError, match="NLTK_DATA"):
        pretrained("en")
    with pytest.raises(UserError, match="no pre-trained Punkt model for language 'ja'"):
        pretrained("ja")


def test_pretrained_decides_as_nltk_on_real_pages(shared, monkeypatch):
    monkeypatch.setattr("nltk.data.path", [str(shared / "nltk")])
    model, reference = pretrained("en"), punkt.PunktTokenizer("english")
    source = units.inspect(Place(shared / "dumps" / "enwiki-201205-pages-articles-p2.xml.bz2"))
    lines = 0
    for unit in units.cut([source]):
        for page in units.read_unit(unit):
            if isinstance(page, Page) and page.redirect is None:
                for line in render(page.wikitext, ENGLISH).text.split("\n"):
                    assert model.split_line(line) == (
                        list(reference.span_tokenize(line)) if line else []
                    )
                    lines += 1
    assert lines > 500


@pytest.mark.parametrize(
    "pattern",
    [
        *("enwiki-latest-*", "ltgwiki-*", "nlwiki-*"),
        pytest.param("ukwiki-*multistream.xml.bz2", marks=pytest.mark.slow),
        pytest.param("viwiki-*", marks=pytest.mark.slow),
    ],
)
def test_trained_model_decides_as_nltk_on_a_slice(shared, pattern):
    (path,) = find_dumps([Place(shared / "dumps" / pattern)])
    source = units.inspect(path)
    cut = units.cut([source])
    model = trained(sampled_texts(cut, seed=0), cut[0].site.language)
    reference = nltk_tokenizer(model)
    lines = 0
    for page in (page for unit in cut for page in units.read_unit(unit)):
        if isinstance(page, Page) and page.redirect is None and page.namespace == 0:
            for line in render(page.wikitext, source.site).text.split("\n"):
                if len(_split_full_stops(line)) == 1:  # other scripts' full stops are cut before
                    assert model.split_line(line) == list(reference.span_tokenize(line))
                    lines += 1
            if lines > 4000:
                break
    assert lines > 400


def test_model_does_not_depend_on_the_container(shared, tmp_path):
    from bz2 import compress, decompress

    packed = (shared / "dumps" / "enwiki-201205-pages-articles-p1.xml.bz2").read_bytes()
    plain = decompress(packed)
    half = plain.index(b"<page>", len(plain) // 2)
    files = {"a.xml": plain, "b.xml.bz2": compress(plain[:half]) + compress(plain[half:])}
    models = []
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        cut = units.cut([units.inspect(Place(tmp_path / name))])
        models.append(trained(sampled_texts(cut, seed=0), "en"))
    assert models[0] == models[1]
    assert len(models[0].parameters.contexts) > 1000


@pytest.mark.parametrize(
    ("code", "text", "sentences"),
    [
        ("en", "He met Lt. Smith in St. Louis. He left.", 2),
        ("en", "Dr. Jones lives at No. 5 now.", 1),
        ("de", "Er wohnt in der Nr. 5 am Markt.", 1),
        ("xx", "He met Lt. Smith.", 2),
    ],
)
def test_usual_abbreviations_of_a_language(code, text, sentences):
    texts = ["The cat sat. He ran. Then he left the house. It did. Smith saw Louis there."] * 20
    assert len(trained(texts, code).split(text)) == sentences
