"""Which sentences other parameters may change: texts that none touches are split as before."""

import random

from nerbert.text.punkt import LOWER, MIDDLE_UPPER, NUMBER, Difference, Parameters, SentenceSplitter

WORDS = (
    "Dr dr. U.S. u.s. St. J. Š. 5. 1,000. ΟΔΟΣ. ΟΔΟΣ.α p.m.) ... In in-depth Straße 's (The The-Foo"
)
MARKS = '. .) ." ? ! .[1] . . . ; ,'
STEMS = ["dr", "u.s", "st", "p.m", "οδος", "οδοσ", "depth", "5"]
KINDS = [
    "in", "in-depth", "the", "the-foo", "straße", "š.", "οδος", "οδοσ.α", "'s", "##number##", "dr",
    "...", "(",
]  # fmt: skip


def parameters(draw):
    return Parameters(
        frozenset(draw.sample(STEMS, 4)),
        frozenset((draw.choice(STEMS), draw.choice(KINDS)) for _ in range(3)),
        frozenset(draw.sample(KINDS, 3)),
        {kind: draw.randrange(64) * 2 for kind in draw.sample(KINDS, 9)},
    )


def changed(old, draw):
    """Parameters that differ by one or two facts."""
    new = Parameters(old.abbreviations, old.collocations, old.starters, dict(old.contexts))
    for _ in range(draw.randint(1, 2)):
        new.contexts[draw.choice(KINDS)] = draw.randrange(64) * 2
        if draw.random() < 0.5:
            pair = draw.choice(STEMS), draw.choice(KINDS)
            new = Parameters(
                new.abbreviations ^ {draw.choice(STEMS)},
                new.collocations ^ ({pair} if draw.random() < 0.5 else set()),
                new.starters ^ {draw.choice(KINDS)},
                new.contexts,
            )
    return new


def test_texts_that_are_not_touched_have_the_same_sentences():
    draw = random.Random(0)
    touched = moved = 0
    for _ in range(3000):
        old = parameters(draw)
        new = changed(old, draw)
        difference = Difference(old, new)
        words = draw.choices([*WORDS.split(), "wort", "Wort"], k=12)
        text = " ".join(word + draw.choice([*MARKS.split(), "", "."]) for word in words)
        same = SentenceSplitter(old).spans(text) == SentenceSplitter(new).spans(text)
        assert same or difference.touches(text), (text, old, new)
        touched += difference.touches(text)
        moved += not same
    assert 100 < moved < touched < 2500


def test_all_texts_are_touched_where_numbers_are_decided_in_another_way():
    new = Parameters(collocations=frozenset({("wort", NUMBER)}))
    text = "Ein Wort. 5 Leute."
    assert SentenceSplitter(Parameters()).spans(text) != SentenceSplitter(new).spans(text)
    assert Difference(Parameters(), new).touches(text)


def test_a_word_counts_behind_a_full_stop_only_and_by_what_its_contexts_decide():
    old = Parameters(contexts={"in-depth": LOWER, "the": LOWER})
    new = Parameters(contexts={"in-depth": LOWER | MIDDLE_UPPER, "the": LOWER, "#": 2})
    difference = Difference(old, new)
    assert difference
    assert difference.touches("Born in 5. In-depth studies")
    assert not difference.touches("Born in 5. The in-depth studies")
    assert not difference.touches("Born in 5. In 6. The studies")
    assert not Difference(new, Parameters(contexts={**new.contexts, "the": 16}))
