"""Steps 1 to 8 of the corpus stage, on documents made here."""

import random

import numpy as np
import pyarrow as pa
import pytest

from nerbert.storage.places import Place
from nerbert.text.overlap import SentenceIndex
from nerbert.text.tags import LabelSet
from nerbert.text.tokens import tokenize
from ontology.categories import ENTITY
from ontology.classes import ClassTree
from ontology.titles import title_keys
from ontology.voting.building import Facts, build
from pipeline.documents.rows import SCHEMA, empty_row
from pipeline.examples.balance import Weights, repeat
from pipeline.examples.counts import SelectionReport
from pipeline.examples.mentions import (
    Labelling,
    distinct_entities,
    frequent_categories,
    kept_categories,
    sentences_of,
)
from pipeline.examples.selector import Selector
from pipeline.language import NO_WORDS, CommonWords
from pipeline.settings import CorpusSettings
from pipeline.wikitext.lexicon import is_installed
from pipeline.wikitext.names import NO_ENTITY, NO_PLACE, SURE
from tests.helpers.lazy import lazy

stats = lazy("scipy.stats")

TREE = ClassTree({"A": [], "B": [], "C": [], "R": []})


class _Specific:
    def category(self, name, tree):
        return name or ENTITY


def table_of(classes):
    """Entity table of {title: class}."""
    names = sorted(set(classes.values()))
    keys = title_keys(classes)
    nothing = Facts(keys, [], np.full(len(keys), -1, np.int32))
    indices = np.array([names.index(c) for c in classes.values()], np.int32)
    return build(nothing, [Facts(keys, names, indices)], TREE).table


def document(page_id, sentences, name=True, doubt=SURE, **columns):
    """A document row of sentences written with anchors as [text|target]."""
    row = empty_row(page_id=page_id, title=f"P{page_id}", **columns)
    for sentence in sentences:
        if row["text"]:
            row["text"] += " "
        row["sentence_starts"].append(len(row["text"]))
        for index, piece in enumerate(sentence.replace("]", "[").split("[")):
            shown, _, target = piece.partition("|")
            if index % 2:
                start = len(row["text"])
                row["anchors"].append(
                    {
                        "start": start,
                        "end": start + len(shown),
                        "target": target or shown,
                        "name": name,
                        "doubt": doubt,
                    }
                )
            row["text"] += shown if index % 2 else piece
        row["sentence_ends"].append(len(row["text"]))
        row["sentence_holes"].append(False)
        row["sentence_markup"].append(False)
    return row


def batch_of(*rows):
    return pa.RecordBatch.from_pylist(list(rows), SCHEMA)


def select(batch, classes, exclude=(), frequent=(), language="en", common=NO_WORDS, **settings):
    table = table_of(classes)
    labelling = Labelling.of(table, _Specific(), TREE)
    settings = CorpusSettings(
        **{"min_entities": 0, "validation_share": 0.0, "min_tokens": 1, **settings}
    )
    excluded = SentenceIndex.of_files(exclude)
    how = {"language": language, "common": common}
    selector = Selector(table, labelling, list(frequent), settings, excluded, **how)
    selection = SelectionReport()
    examples = selector.select(batch, selection)
    return examples["train"].to_pylist(), selection, LabelSet(labelling.names)


@pytest.mark.parametrize(
    ("has_lexicon", "expected"),
    [(False, "なつめこころこころ"), (True, "なつめこころ山田プーチンこころ")],
)
def test_japanese_names_without_a_link_are_no_negatives(has_lexicon, expected):
    if has_lexicon and not is_installed():
        pytest.skip("the extra `ja` is not installed")
    text = "[夏目|NY]の『こころ』を山田と学生とプーチンが読む。"
    row = document(
        7, ["[夏目|NY]（なつめ、学生）だ。", text, "『こころ』と[夏目|NY]。"], doubt=SURE
    )
    common = CommonWords(frozenset(), 0.0, has_lexicon=has_lexicon)
    examples, _, _ = select(batch_of(row), {"NY": "A"}, language="ja", common=common)
    unlinked = [
        token
        for example in examples
        for token, mark in zip(example["tokens"], example["unlinked"], strict=True)
        if mark
    ]
    assert len(examples) == 3
    assert "".join(unlinked) == expected


def test_example_row():
    row = document(
        7, ["First [x|Nowhere] one.", "Visit [New York|NY]'s [Met] and [home|Nowhere] now."]
    )
    examples, _, labels = select(batch_of(row), {"NY": "A", "Met": "B"})
    (example,) = examples
    assert example["id"] == "7:1:0"
    assert example["tokens"] == ["Visit", "New", "York", "'s", "Met", "and", "home", "now", "."]
    assert [labels.tags[t] for t in example["ner_tags"]] == [
        "O",
        "B-A",
        "I-A",
        "O",
        "B-B",
        "O",
        "B-ENTITY",
        "O",
        "O",
    ]
    assert example["targets"] == ["NY", "Met", "Nowhere"]
    start = example["start"]
    for token, offset in zip(example["tokens"], example["token_starts"], strict=True):
        assert row["text"][start + offset :].startswith(token)


def test_unlinked_names_are_those_of_the_same_page():
    rows = [
        document(1, ["[Oslo] is far from NY."]),
        document(2, ["[Met] and NY and Bergen, Oslo.", "[NY] and [Bergen]."]),
        document(3, ["[Oslo] is not in NY."]),
    ]
    examples, _, _ = select(batch_of(*rows), {"NY": "A", "Met": "B", "Oslo": "A"})
    marked = {
        row["id"]: [t for t, u in zip(row["tokens"], row["unlinked"], strict=True) if u]
        for row in examples
    }
    # All capitals inside of sentences, and what is linked elsewhere on the page.
    assert marked == {
        "1:0:0": ["NY"],
        "2:0:0": ["NY", "Bergen", "Oslo"],
        "2:1:0": [],
        "3:0:0": ["NY"],
    }


def test_names_of_another_page_are_not_marked():
    rows = [
        document(1, ["an [iPhone|Met] is here."]),
        document(2, ["on [eBay|NY] is no iPhone.", "in [NY] is no eBay."]),
        document(3, ["in [NY] is no eBay."]),
    ]
    examples, _, _ = select(batch_of(*rows), {"NY": "A", "Met": "B"})
    marked = [
        [t for t, u in zip(row["tokens"], row["unlinked"], strict=True) if u] for row in examples
    ]
    assert marked == [[], [], ["eBay"], []]


def test_doubtful_names_are_mentions_of_pages_with_a_class_and_else_masked():
    row = document(1, ["Die [数学|Math] hier.", "im [Met] das 数学 ist."], doubt=NO_ENTITY)
    other = document(2, ["die 数学 [NY] hier."])
    classes = {"Met": "A", "NY": "A"}
    examples, *_ = select(batch_of(row, other), classes)
    unlinked = [[t for t, u in zip(r["tokens"], r["unlinked"], strict=True) if u] for r in examples]
    assert [row["targets"] for row in examples] == [["Met"], ["NY"]]
    assert unlinked == [["数", "学"], []]
    examples, *_ = select(batch_of(row, other), {**classes, "Math": "B"})
    assert [row["targets"] for row in examples] == [["Math"], ["Met"], ["NY"]]


def test_demonyms_are_mentions_of_all_but_places():
    tree_class = {"Ulm": "Place", "Bern": "Person"}
    row = document(1, ["Die [Ulmer|Ulm] und [Berner|Bern] und [Uri]."], doubt=NO_PLACE)
    keys = title_keys(tree_class)
    names = sorted(tree_class.values())
    nothing = Facts(keys, [], np.full(len(keys), -1, np.int32))
    indices = np.array([names.index(name) for name in tree_class.values()], np.int32)
    table = build(nothing, [Facts(keys, names, indices)], ClassTree({"Place": [], "Person": []}))
    assert sentences_of(batch_of(row), table.table).targets.to_pylist() == ["Bern", "Uri"]


def test_anchors_that_reach_over_the_end_of_a_sentence_are_counted():
    row = document(1, ["Old [Ulm].", "New [Bern]."])
    row["anchors"].insert(0, {"start": 4, "end": 13, "target": "Ulm", "name": True, "doubt": 0})
    found = sentences_of(batch_of(row), table_of({"Ulm": "A"}))
    text = row["text"]
    anchors = zip(found.anchor_starts, found.anchor_ends, strict=True)
    assert [text[start:end] for start, end in anchors] == ["Ulm", "Bern"]
    assert found.outside == 1


def test_counts_of_a_split_one_by_one():
    rows = [document(n, [f"See [NY] and [NY] and [Met] {n}.", "Or [NY]."]) for n in range(5)]
    examples, selection, labels = select(batch_of(*rows), {"NY": "A", "Met": "B"})
    tags = [[labels.tags[tag] for tag in row["ner_tags"]] for row in examples]
    for name, times in (("A", 15), ("B", 5)):
        assert sum(row.count(f"B-{name}") for row in tags) == times
        assert selection.by_category["train"][name] == times
        assert selection.with_category["train"][name] == sum(f"B-{name}" in row for row in tags)
    assert selection.tokens["train"] == sum(map(len, tags))
    types = {"ner_tags": pa.list_(pa.int32()), "tokens": pa.list_(pa.string())}
    taken = pa.table({name: pa.array([e[name] for e in examples], t) for name, t in types.items()})
    assert selection.count("train", taken, [ENTITY, "A", "B"], times=-1) == 20
    assert not any(selection.by_category["train"].values())
    assert selection.sentences["train"] == selection.tokens["train"] == 0


@pytest.mark.parametrize(("entities", "kept"), [(9, False), (10, True)])
def test_scarce_category_needs_ten_distinct_entities(entities, kept):
    classes = {f"E{i}": "A" for i in range(entities)} | {f"F{i}": "B" for i in range(20)}
    sentences = [f"x [e|{name}] y." for name in classes] + ["[E0] [E0] [E0] again."] * 3
    table = table_of(classes)
    labelling = Labelling.of(table, _Specific(), TREE)
    linked = np.bincount(
        sentences_of(batch_of(document(1, sentences)), table).entities, minlength=len(table.classes)
    )
    distinct, mentions = distinct_entities(linked, labelling)
    assert distinct["A"] == entities
    assert mentions["A"] == entities + 9
    names = kept_categories(distinct, 10)
    assert names == [ENTITY, "A", "B"] if kept else [ENTITY, "B"]
    after = labelling.keep(names)
    labels = after.label(table.lookup(["E0", "F0", "Nowhere"]))
    assert [after.names[label] for label in labels] == ["A" if kept else ENTITY, "B", ENTITY]


def test_frequent_categories_tie_by_name_and_entity_takes_a_slot():
    mentions = {ENTITY: 50, "C": 3, "A": 3, "B": 9, "Z": 0}
    assert frequent_categories(mentions, 3) == [ENTITY, "B", "A"]
    assert frequent_categories(mentions, 20) == [ENTITY, "B", "A", "C"]


@pytest.mark.parametrize(
    ("n_entity", "probability"), [(0, 0), (2, 0), (3, 0.3), (4, 0.5), (5, 0.7), (9, 0.7)]
)
def test_frequent_rule_hits_its_probability(n_entity, probability):
    sentence = "[a|NY] " + " ".join(["[z|Nowhere]"] * n_entity) + " word {}."
    rows = [document(i, [sentence.format(f"{i}x{j}") for j in range(10)]) for i in range(400)]
    examples, selection, _ = select(batch_of(*rows), {"NY": "A"}, frequent=["A", ENTITY])
    dropped = selection.dropped_sentences["frequent"]
    assert dropped + len(examples) == 4000
    if probability in (0, 1):
        assert dropped == 4000 * probability
    else:
        assert stats.binomtest(dropped, 4000, probability).pvalue > 1e-3


def test_one_rare_category_saves_a_sentence():
    rows = [document(i, [f"[a|NY] {'[z|Nowhere] ' * 6}[r|Rare] n{i}."]) for i in range(200)]
    examples, _, _ = select(batch_of(*rows), {"NY": "A", "Rare": "R"}, frequent=["A", ENTITY])
    assert len(examples) == 200


def test_sentences_without_a_category_stay_on_request():
    rows = [document(1, ["Here is [z|Nowhere].", "Nobody is here.", "See [a|NY] there."])]
    kept, selection, _ = select(batch_of(*rows), {"NY": "A"}, keep_untyped=True)
    assert [example["id"] for example in kept] == ["1:0:0", "1:2:0"]
    assert dict(selection.dropped_sentences) == {"no-category": 1}
    assert [e["id"] for e in select(batch_of(*rows), {"NY": "A"})[0]] == ["1:2:0"]


def test_every_reason_between_good_sentences():
    good = "Good [a|NY] sentence number {} here."
    rows = [
        document(
            1,
            [
                good.format(1),
                "No [z|Nowhere] category.",
                good.format(2),
                good.format(1),
                "[a|NY].",
                "[a|NY] " + "long " * 30,
                "[a|NY] has a hole in it.",
            ],
        ),
        document(2, [good.format(1), good.format(3)], is_disambiguation=True),
        document(3, [good.format(1)]),
    ]
    rows[0]["sentence_holes"][-1] = True
    examples, selection, _ = select(batch_of(*rows), {"NY": "A"}, min_tokens=3, max_tokens=20)
    assert [e["id"] for e in examples] == ["1:0:0", "1:2:0", "3:0:0"]
    assert dict(selection.dropped_sentences) == {
        "no-category": 1,
        "disambiguation-page": 2,
        "hole": 1,
        "repeated": 1,
        "too-short": 1,
        "too-long": 1,
    }
    dropped = sum(selection.dropped_sentences.values())
    assert selection.sentences_in == len(examples) + dropped
    assert selection.mentions_in == sum(len(e["targets"]) for e in examples) + sum(
        selection.dropped_mentions.values()
    )


def test_contamination_equal_and_13_tokens(tmp_path):
    words = [f"w{i}" for i in range(30)]
    path = tmp_path / "test.conll"
    sentences = [["Short", "[", "NY", "]", "line", "."], words]
    path.write_text(
        "\n\n".join("\n".join(f"{w}\tO" for w in s if w not in "[]") for s in sentences) + "\n"
    )
    shared = lambda n: "[NY] x " + " ".join(words[5 : 5 + n]) + " y"  # noqa: E731
    row = document(1, ["Before [NY].", "Short [NY] line.", shared(12), shared(13), "After [NY]."])
    examples, selection, _ = select(batch_of(row), {"NY": "A"}, exclude=[Place(path)])
    assert [e["sentence"] for e in examples] == [0, 2, 4]
    assert selection.contamination == [("1:1:0", "equal", 0, 0), ("1:3:0", "13-gram", 0, 1)]


def test_split_by_page_keeps_its_share():
    rows = [document(i, [f"One [NY] {i}.", f"Two [NY] {i}."]) for i in range(3000)]
    examples, selection, _ = select(batch_of(*rows), {"NY": "A"}, validation_share=0.1)
    assert selection.sentences["validation"] % 2 == 0
    assert stats.binomtest(selection.sentences["validation"] // 2, 3000, 0.1).pvalue > 1e-3
    assert {e["page_id"] for e in examples}.isdisjoint(
        set(range(3000)) - {e["page_id"] for e in examples}
    )


def test_split_by_example_keeps_its_share():
    rows = [document(i, [f"One [NY] {i}.", f"Two [NY] {i}."]) for i in range(3000)]
    settings = {"validation_share": 0.1, "split": "examples"}
    _, selection, _ = select(batch_of(*rows), {"NY": "A"}, **settings)
    assert stats.binomtest(selection.sentences["validation"], 6000, 0.1).pvalue > 1e-3
    table = table_of({"NY": "A"})
    selector = Selector(
        table,
        Labelling.of(table, _Specific(), TREE),
        [],
        CorpusSettings(min_entities=0, min_tokens=1, **settings),
        SentenceIndex([]),
    )
    found = selector.select(batch_of(*rows), SelectionReport())
    pages = {split: set(part.column("page_id").to_pylist()) for split, part in found.items()}
    # Examples are drawn without regard to each other: a page has both with 2 * 0.1 * 0.9.
    both = len(pages["train"] & pages["validation"])
    assert stats.binomtest(both, 3000, 0.18).pvalue > 1e-3


def test_repeat_numbers_the_copies():
    row = document(7, ["Visit [NY] now.", "See [NY] and [Met].", "Leave [NY] again."])
    table = table_of({"NY": "A", "Met": "B"})
    labelling = Labelling.of(table, _Specific(), TREE)
    selector = Selector(
        table, labelling, [], CorpusSettings(min_tokens=1, validation_share=0.0), SentenceIndex([])
    )
    batch = selector.select(batch_of(row), SelectionReport())["train"]
    weights = Weights("category-first", (0.0, 2.0, 1.0))
    repeated, _, copies = repeat(batch, weights, 3, 0)
    assert copies.tolist() == [2, 3, 2]
    expected = [f"7:{row}:{copy}" for row, n in enumerate(copies) for copy in range(n)]
    assert repeated.column("id").to_pylist() == expected
    assert repeated.column("copy").to_pylist() == [0, 1, 0, 1, 2, 0, 1]
    assert repeated.schema == batch.schema


def selected_in(language, *rows, classes=None):
    classes = {"A": "A", "B": "B", "C": "C"} if classes is None else classes
    return select(batch_of(*rows), classes, language=language)


def marked(example, labels):
    """Words with their tags and masks, such as `l' Rome/B-A ~Ulm`."""
    words = zip(example["tokens"], example["ner_tags"], example["unlinked"], strict=True)
    return " ".join(
        f"{'~' * mask}{word}{'/' * bool(tag)}{labels.tags[tag] * bool(tag)}"
        for word, tag, mask in words
    )


@pytest.mark.parametrize(
    ("language", "text", "expected", "dropped", "extended"),
    [
        # A mention begins at a word inside of NLTK's token.
        ("it", "oggi l'[Austria|A] e l'Italia", "oggi l' Austria/B-A e l' ~Italia", 0, 0),
        ("fr", "l’[Allier|A] et l’autre", "l’ Allier/B-A et l’ autre", 0, 0),
        ("en", "the [Soviet|A]-era [map|B]", "the Soviet/B-A - era map/B-B", 0, 0),
        ("en", "in [Persian|A]/[Dari|B] now", "in Persian/B-A / Dari/B-B now", 0, 0),
        # The rest of the token is an ending, or punctuation.
        ("et", "see [Voltaire|A]'i [B] ja", "see Voltaire'i/B-A B/B-B ja", 0, 1),
        ("fr", "de [Prolog|A]… et [B] ici", "de Prolog…/B-A et B/B-B ici", 0, 1),
        # It is another word: no mention, and no O that is taught, also where capitals say nothing.
        ("de", "die [Puccini|A]-Oper in [Rom|B] ist", "die ~Puccini-Oper in Rom/B-B ist", 1, 0),
        ("de", "das [Thorium|A]isotop in [B] ist", "das ~Thoriumisotop in B/B-B ist", 1, 0),
        ("en", "x Urbana-[Champaign|A] and [B] y", "x ~Urbana-Champaign and B/B-B y", 1, 0),
    ],
)
def test_mentions_and_tokens(language, text, expected, dropped, extended):
    examples, selection, labels = selected_in(language, document(1, [text]))
    assert [marked(example, labels) for example in examples] == [expected]
    assert selection.dropped_mentions["cuts-a-token"] == dropped
    assert selection.mentions_extended == extended
    assert selection.mentions_in == text.count("[")


@pytest.mark.parametrize("language", ["", "de", "en", "et", "fr", "it"])
def test_tokens_do_not_depend_on_mentions(language):
    """As those of the text alone, wherever mentions begin and end."""
    draw = random.Random(3)
    words = "l'Austria Soviet-era Puccini-Oper Voltaire'i d’un U.S.-led A/B Prolog… Ulm, I. km/h".split()
    for number in range(60):
        text = f"Ulm {' '.join(draw.choices(words, k=8))} end."
        edges = sorted(draw.sample(range(4, len(text)), 4))
        row = document(number, [text])
        row["anchors"] = [
            {"start": start, "end": end, "target": "A", "name": True, "doubt": SURE}
            for start, end in (edges[:2], edges[2:], (0, 3))
            if text[start:end] == text[start:end].strip()
        ]
        examples, selection, _ = selected_in(language, row)
        for example in examples:
            assert example["tokens"] == [text[a:b] for a, b in tokenize(text, language)]
            assert sum(selection.mentions.values()) == len(example["targets"])
        assert selection.mentions_in == len(row["anchors"])


def test_a_sentence_whose_only_mention_cuts_a_token_has_no_category():
    row = document(1, ["die [Puccini|A]-Oper ist neu", "in [Rom|B] ist es"])
    examples, selection, _ = selected_in("de", row)
    assert [example["targets"] for example in examples] == [["B"]]
    assert selection.dropped_sentences == {"no-category": 1}
    assert selection.dropped_mentions == {"cuts-a-token": 1, "no-category": 0}
