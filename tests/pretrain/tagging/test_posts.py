"""Posts, word by word."""

import re
from collections import Counter

import pytest

from nerbert.text.tags import LabelSet, tags_to_spans
from ontology.classes import ClassTree
from tests.helpers.lazy import lazy

posts = lazy("pretrain.tagging.posts")

NAMES = {"Politician": [["Angela", "Merkel"]], "City": [["New", "York"]], "Band": [["!!!"]]}
LABELS = LabelSet(("ENTITY", *NAMES))
IDS = {tag: number for number, tag in enumerate(LABELS.tags)}
FORMS = ("AngelaMerkel", "angelamerkel", "Angela_Merkel", "amerkel")
SENTENCES = 4000


@pytest.fixture(scope="module")
def rows():
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict(
        {
            "id": [str(number) for number in range(SENTENCES)],
            "tokens": [["A", "B", f"C{number}"] for number in range(SENTENCES)],
            "ner_tags": [[IDS["B-City"], IDS["I-City"], 0]] * SENTENCES,
            "unlinked": [[False, False, True]] * SENTENCES,
            "phrases": [[["city"]]] * SENTENCES,
        }
    )


def make(rows, names=NAMES, languages=("en",)):
    return posts.posts(rows, names, IDS, ClassTree.shipped(), languages)


def test_names_of_users_are_beside_sentences_and_remarks(rows):
    made = make(rows)
    assert (len(made), made.features) == (SENTENCES // 8, rows.features)
    assert len(set(made["id"])) == len(made)
    assert make(rows)[:] == made[:]
    users, numbers, sentences, first = Counter(), Counter(), [], Counter()
    for row in made:
        tokens, tags = row["tokens"], [LABELS.tags[number] for number in row["ner_tags"]]
        mentions = tags_to_spans(tags)
        of_users = [span for span in mentions if tokens[span[0] - 1] == "@"]
        assert tokens.count("@") == len(of_users)
        for start, end, name in of_users:
            assert (end, tags[start - 1]) == (start + 1, "O")
            users[name, re.sub(r"\d+$", "", tokens[start])] += 1
        numbers[len(of_users)] += 1
        first[tokens[0] in ("@", "RT")] += 1
        places = [place for place, token in enumerate(tokens) if re.fullmatch(r"C\d+", token)]
        assert len(mentions) == len(of_users) + len(places)
        assert [place for place, is_name in enumerate(row["unlinked"]) if is_name] == places
        for place in places:
            assert tokens[place - 2 : place] == ["A", "B"]
            assert tags[place - 2 :][:3] == ["B-City", "I-City", "O"]
            sentences.append(tokens[place])
        phrases = [["city"] if name == "City" else [] for _, _, name in mentions]
        assert row["phrases"] == phrases
    assert len(set(sentences)) == len(sentences)
    assert len(sentences) / len(made) == pytest.approx(0.5, abs=0.07)
    assert first[True] / len(made) == pytest.approx(0.75, abs=0.07)
    assert numbers[1] / len(made) == pytest.approx(0.7, abs=0.07)
    assert set(numbers) == {1, 2, 3}
    assert set(users) == {("Band", "!!!"), *(("Politician", form) for form in FORMS)}


def test_without_remarks_of_a_language_all_posts_have_a_sentence(rows):
    assert all("A" in row["tokens"] for row in make(rows, languages=("xx",)))
    german = {token for row in make(rows, languages=("de", "xx")) for token in row["tokens"]}
    english = {token for row in make(rows) for token in row["tokens"]}
    assert ("danke" in german, "danke" in english) == (True, False)


def test_places_are_no_users(rows):
    assert not len(make(rows, {"City": NAMES["City"]}))
