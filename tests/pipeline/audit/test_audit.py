import json
import re
import shutil
from collections import Counter
from html import unescape
from itertools import pairwise

import pytest

from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.corpus import load_corpus
from ontology.categories import ENTITY
from pipeline.audit.judgements import QUESTIONS, read_judgements, table, wilson
from pipeline.audit.run import sample_mentions
from tests.helpers.browser import dom, screenshot
from tests.helpers.lazy import lazy
from tests.helpers.runs import call, run

stats = lazy("scipy.stats")


@pytest.fixture(scope="module")
def corpus(demo):
    return load_corpus(demo[0])


def by_hand(corpus, which):
    """Every mention of the corpus once, by a second reading of the parts."""
    found = {}
    for split in ("train", "validation"):
        for row in corpus.table(split).to_pylist():
            tags = [corpus.labels.tags[label] for label in row["ner_tags"]]
            begins = [tag[2:] for tag in tags if tag.startswith("B-")]
            for number, (category, target) in enumerate(zip(begins, row["targets"], strict=True)):
                if which == "all" or (category == ENTITY) == (which == "entity"):
                    stem = row["id"].rpartition(":")[0]
                    found[f"{stem}:0", number] = (category, target)
    return found


@pytest.mark.parametrize("which", ["typed", "entity", "all"])
def test_all_mentions_once(corpus, which):
    drawn = sample_mentions(corpus, 10_000, 0, which)
    found = {(mention.id, mention.number): (mention.category, mention.target) for mention in drawn}
    assert len(found) == len(drawn)
    assert found == by_hand(corpus, which)


def test_a_larger_sample_contains_the_smaller_and_seeds_differ(corpus):
    small, large = (sample_mentions(corpus, size, 1, "typed") for size in (20, 60))
    assert large[:20] == small
    assert sample_mentions(corpus, 20, 2, "typed") != small


def test_a_page_of_two_dump_files_counts_once(demo, corpus, tmp_path):
    twice = tmp_path / "corpus"
    shutil.copytree(demo[0] / "corpus", twice)
    for split in ("train", "validation"):
        shutil.copy(twice / split / "part-00000.parquet", twice / split / "part-00001.parquet")
    for size in (20, 10_000):
        assert sample_mentions(load_corpus(twice), size, 1, "all") == sample_mentions(
            corpus, size, 1, "all"
        )


@pytest.mark.slow
def test_every_mention_is_drawn_equally_often(corpus):
    drawn = Counter(
        (mention.id, mention.number)
        for seed in range(300)
        for mention in sample_mentions(corpus, 50, seed, "typed")
    )
    size = len(by_hand(corpus, "typed"))
    seen = [*drawn.values(), *[0] * (size - len(drawn))]
    assert stats.chisquare(seen).pvalue > 1e-4


def test_mentions_are_where_the_page_shows_them(corpus):
    for mention in sample_mentions(corpus, 10_000, 0, "all"):
        spans = sorted([(mention.start, mention.end), *mention.others])
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        words = mention.text[mention.start : mention.end]
        assert words == words.strip() != ""


def judged(answers, source="link", category="City", missed=None, id="1:0:0", others=()):
    row = {"id": id, "number": 0, "category": category, "source": source, "others": others}
    return {**row, **dict(zip(QUESTIONS, answers, strict=True)), "missed": missed}


def test_rates():
    rows = [
        judged([True, True, True, True], missed=1, others=[[0, 3]]),
        judged([False, None, True, True], source="title", category="Film", id="2:0:0"),
        judged([True, False, None, True], category="Film", id="3:0:0", missed=0),
    ]
    lines = table(rows).splitlines()
    assert lines[2].startswith("| all | 3 | 66.7 (21-94) | 50.0 of 2 (9-91) |")
    assert [line.split(" | ")[0] for line in lines[3:7]] == [
        "| source link",
        "| source title",
        "| category Film",
        "| category City",
    ]
    assert "| source title | 1 | 0.0 (0-79) | - |" in lines[4]
    assert lines[-1] == "marked names: 3 of 4, 75.0% (30% to 95%), in 2 sentences"


@pytest.mark.parametrize(("right", "judged_"), [(0, 5), (3, 7), (95, 100), (150, 150), (1, 1)])
def test_intervals_are_those_of_scipy(right, judged_):
    known = stats.binomtest(right, judged_).proportion_ci(0.95, method="wilson")
    assert wilson(right, judged_) == pytest.approx((known.low, known.high), abs=1e-4)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"mentions": [{}]}', '{"mentions": [{"page_class": 1}]}']
)
def test_a_file_without_judgements_is_one_line(demo, tmp_path, text, capsys):
    path = tmp_path / "audit.json"
    path.write_text(text)
    assert call("audit", demo[0], "--judged", path) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"--judged {path}: no judgements (")
    assert error.count("\n") == 1


def test_missing_files(demo, tmp_path, capsys):
    assert call("audit", demo[0], "--judged", "no.json") == 2
    assert (
        capsys.readouterr().err == "--judged no.json: No such file or directory; check the path\n"
    )
    assert call("audit", str(tmp_path)) == 2
    assert "no corpus (labels.json is missing)" in capsys.readouterr().err


def make_page(demo, tmp_path, *flags):
    page = tmp_path / "audit.html"
    assert (
        call("audit", demo[0], "--sample", "12", "--seed", "1", "--output", str(page), *flags) == 0
    )
    return page


def test_page_holds_its_data_and_nothing_from_outside(demo, tmp_path, capsys):
    page = make_page(demo, tmp_path)
    text = page.read_text(encoding="utf-8")
    data = json.loads(
        re.search(r'<script id="data" type="application/json">(.*)</script>', text)[1]
    )
    assert [row["id"] for row in data["mentions"]] == [
        mention.id for mention in sample_mentions(load_corpus(demo[0]), 12, 1, "typed")
    ]
    assert data["language"] == "en"
    assert not re.search(r'(?:src|href)="', text)
    assert "12 mentions: open" in capsys.readouterr().out
    assert make_page(demo, tmp_path).read_text(encoding="utf-8") == text


KEYS = [*"122333", *"4++-", "Enter", *"a12zn1zjk"]
"""Judges the first, all right to the second, judges the third, undoes, goes on, and undoes."""


def test_keys_judge_in_a_browser(demo, tmp_path):
    page = make_page(demo, tmp_path)
    script = (
        f"<script>for (const key of {json.dumps(KEYS)}) document.dispatchEvent("
        'new KeyboardEvent("keydown", { key: key }));'
        'const out = document.createElement("pre"); out.id = "out";'
        "out.textContent = JSON.stringify(JSON.parse(localStorage.getItem(place)));"
        "document.body.append(out);</script></body>"
    )
    acted = tmp_path / "acted.html"
    acted.write_text(page.read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    found = dom(acted, tmp_path)
    rows = json.loads(unescape(re.search(r'<pre id="out">(.*?)</pre>', found, re.DOTALL)[1]))
    answers = [[row.get(name) for name in QUESTIONS] for row in rows]
    assert answers[:3] == [
        [True, False, None, True],
        [True, True, True, True],
        [True, None, None, None],
    ]
    assert answers[3:] == [[None] * 4] * 9
    assert rows[0]["missed"] == 1
    assert "1 of 12 judged" in found
    # What the page keeps is what the command reads.
    mark = data_of(page)["fingerprint"]
    (tmp_path / "audit.json").write_text(json.dumps({"mentions": rows, "fingerprint": mark}))
    read = read_judgements(Place(tmp_path / "audit.json"), mark)
    assert "| all | 12 | 100.0 of 3" in table(read)
    assert found.count("<mark>") == 12
    assert found.count(">✓ ") == 2 + 4 + 1
    assert found.count(">✗ ") == 1
    assert "w/index.php?oldid=" in found
    assert 'title="a kind of ' in found
    assert re.findall('class="([^"]*current)"', found) == [" current"]
    assert screenshot(page, tmp_path).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"in_context": "yes"}, "an answer of 1:0:0 is neither true, false nor null"),
        ({"missed": -5}, "the missed names of 1:0:0 are not 0 or more"),
        ({"missed": 10**400}, "the missed names of 1:0:0 are not 0 or more"),
        ({"missed": 1.5}, "the missed names of 1:0:0 are not 0 or more"),
        ({"others": None}, "the other mentions of 1:0:0 are no list"),
        ({"others": 5}, "the other mentions of 1:0:0 are no list"),
        ({"id": ["1"]}, "an id, category or source is no text"),
        ({"category": "\ud800"}, "an id, category or source is no text"),
        ({"source": None}, "an id, category or source is no text"),
        ({"number": [1]}, "the number of 1:0:0 is not 0 or more"),
        ({}, "mention 0 of 1:0:0 is there twice"),
    ],
)
def test_judgements_of_another_shape_are_named(tmp_path, change, told):
    """The bad one is between good ones."""
    path = tmp_path / "audit.json"
    yes = [True] * 4
    rows = [judged(yes), {**judged(yes, id="1:0:0"), **change}, judged(yes, id="9:0:0")]
    rows[0]["id"] = "0:0:0" if change else "1:0:0"
    path.write_text(json.dumps({"mentions": rows, "fingerprint": "x"}))
    with pytest.raises(UserError, match=told):
        read_judgements(Place(path), "x")


def test_judgements_of_another_corpus_are_refused(demo, tmp_path, capsys):
    rows = [judged([True] * 4)]
    for mark in ("another", None):
        path = tmp_path / "audit.json"
        path.write_text(json.dumps({"mentions": rows, "corpus": "enwiki", "fingerprint": mark}))
        assert call("audit", demo[0], "--judged", path) == 2
        error = capsys.readouterr().err
        assert f"--judged {path}: judgements of another corpus (enwiki), or of an earlier" in error
        good = written(demo, tmp_path, "good", rows)
        assert call("audit", demo[0], "--judged", good, path) == 2
        assert "judgements of another corpus (enwiki)" in capsys.readouterr().err
    assert call("audit", demo[0], "--judged", good) == 0


def test_a_file_of_yours_is_not_replaced(demo, tmp_path, capsys):
    page = tmp_path / "mine.html"
    page.write_text("<!doctype html><p>mine")
    arguments = [str(demo[0]), "--sample", "5", "--output", str(page)]
    assert call("audit", *arguments) == 2
    assert "mine.html: exists, and nerbert audit did not write it" in capsys.readouterr().err
    assert page.read_text() == "<!doctype html><p>mine"
    page.unlink()
    assert call("audit", *arguments) == 0
    assert call("audit", *arguments, "--seed", "3") == 0


def test_judgements_that_are_nested_deeply(demo, tmp_path, capsys):
    path = tmp_path / "deep.json"
    path.write_text('{"mentions": ' + "[" * 100_000)
    assert call("audit", demo[0], "--judged", path) == 2
    assert "no judgements (ValueError: nested too deeply)" in capsys.readouterr().err


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1])


def written(demo, folder, name, rows):
    path = folder / f"{name}.json"
    content = {"mentions": rows, "fingerprint": load_corpus(demo[0]).fingerprint}
    path.write_text(json.dumps(content), encoding="utf-8")
    return Place(path)


def test_two_judges_and_a_third(demo, tmp_path):
    """Agreement and kappa as by hand; the third one sees, and decides, what they differ about."""
    page = tmp_path / "audit.html"
    call("audit", demo[0], "--sample", 40, "--output", page)
    sample = data_of(page)["mentions"]
    yes = dict.fromkeys(QUESTIONS, True)
    first = [{**row, **yes, "page_class": n >= 10} for n, row in enumerate(sample)]
    second = [{**row, **yes, "page_class": n >= 15} for n, row in enumerate(sample)]
    second[39]["boundary"] = None
    files = [written(demo, tmp_path, "one", first), written(demo, tmp_path, "two", second[::-1])]
    conflicts = tmp_path / "conflicts.html"
    code, out, err = run(
        demo[0], "--judged", *files, "--output", conflicts, cwd=tmp_path, name="audit"
    )
    assert code == 0, err
    # 35 of 40 agree; by chance 30/40 * 25/40 + 10/40 * 15/40.
    kappa = (35 / 40 - (0.75 * 0.625 + 0.25 * 0.375)) / (1 - (0.75 * 0.625 + 0.25 * 0.375))
    assert (
        f"| class right for the linked page | 40 | 35 of 40, 87.5% (74% to 95%) | {kappa:.2f} |"
        in out
    )
    assert "| boundary right | 39 | 39 of 39, 100.0% (91% to 100%) | - |" in out
    assert "5 mentions on which they differ" in out
    asked = data_of(conflicts)["mentions"]
    assert [row["id"] for row in asked] == [row["id"] for row in sample[10:15]]
    assert not any(question in row for row in asked for question in QUESTIONS)
    third = [{**row, **yes, "page_class": n < 2} for n, row in enumerate(asked)]
    files.append(written(demo, tmp_path, "three", third))
    _, out, _ = run(demo[0], "--judged", *files, cwd=tmp_path, name="audit")
    assert "| all | 40 | 67.5 (" in out
    code, _, err = run(demo[0], "--judged", *files, files[0], cwd=tmp_path, name="audit")
    assert (code, err) == (2, "--judged: give the files of at most three judges\n")
    files[1] = written(demo, tmp_path, "other", [{**first[0], "id": "x"}])
    code, _, err = run(demo[0], "--judged", *files[:2], cwd=tmp_path, name="audit")
    assert code == 2
    assert err == "--judged: the judges have no mention in common; give the same sample\n"
