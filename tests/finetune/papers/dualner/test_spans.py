import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerbert.text.tags import LabelSet, spans_to_tags, tags_to_spans
from tests.helpers.lazy import lazy

spans = lazy("finetune.papers.dualner.spans")
torch = lazy("torch")

LABELS = LabelSet(("A", "B"))
TAGS = LABELS.tags
ANY_TAGS = st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=1, max_size=5)


@given(ANY_TAGS)
def test_starts_and_ends_are_those_of_the_strict_mentions(rows):
    starts, ends = spans.starts_and_ends(torch.tensor(rows))
    for row, one, other in zip(rows, starts.tolist(), ends.tolist(), strict=True):
        wanted = tags_to_spans([TAGS[tag] for tag in row])
        firsts = {first: "?AB".index(kind) for first, _, kind in wanted}
        lasts = {stop - 1: "?AB".index(kind) for _, stop, kind in wanted}
        real = {place: kind for place, kind in enumerate(one) if kind}
        assert {place: kind for place, kind in real.items() if place in firsts} == firsts
        assert set(real) == set(firsts)
        assert {place: kind for place, kind in enumerate(other) if kind} == lasts


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=6))
def test_round_trip_of_well_formed_tags(mentions):
    row = []
    for kind, length in mentions:
        row += [0] if not kind else [2 * kind - 1, *[2 * kind] * (length - 1)]
    tags = torch.tensor([row, row], dtype=torch.long).reshape(2, len(row))
    assert spans.tag_ids(*spans.starts_and_ends(tags), 2).tolist() == tags.tolist()
    words = [TAGS[tag] for tag in row]
    assert spans_to_tags(tags_to_spans(words), len(words)) == words


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(
            st.tuples(*[st.lists(st.integers(0, 2), min_size=n, max_size=n)] * 2),
            min_size=1,
            max_size=4,
        )
    )
)
def test_pairs_against_brute_force(rows):
    starts, ends = (torch.tensor([row[side] for row in rows]) for side in (0, 1))
    scores = [torch.nn.functional.one_hot(side, 3).float() for side in (starts, ends)]
    found = spans.pair_spans(*scores)
    tags = spans.tag_ids(starts, ends, 2).tolist()
    for row, pairs, ids in zip(rows, found, tags, strict=True):
        wanted = []
        for first, kind in enumerate(row[0]):
            if not kind:
                continue
            after = [p for p in range(first + 1, len(row[0])) if row[0][p]]
            room = range(first, min(after, default=len(row[0])))
            if (last := next((p for p in room if row[1][p] == kind), None)) is not None:
                wanted.append((first, last + 1, kind))
        assert pairs == wanted
        assert [(a, b, "?AB"[k]) for a, b, k in pairs] == tags_to_spans([TAGS[t] for t in ids])
    assert spans.pair_spans(scores[0][0], scores[1][0]) == found[0]


def test_shapes():
    assert spans.pair_spans(torch.zeros(0, 3), torch.zeros(0, 3)) == []
    assert spans.pair_spans(torch.zeros(2, 0, 3), torch.zeros(2, 0, 3)) == [[], []]
    with pytest.raises(ValueError, match="start scores"):
        spans.pair_spans(torch.zeros(2, 3), torch.zeros(3, 3))
