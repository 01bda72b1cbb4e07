"""Views of a corpus's categories."""

import pytest

from nerbert.errors import UserError
from nerbert.text.tags import LabelSet
from tests.helpers.corpora import LABELS
from tests.helpers.lazy import lazy

features = lazy("pretrain.training.features")


def test_views():
    labels, ids = features.category_view(LABELS, "corpus")
    assert labels == LABELS
    assert ids.tolist() == list(range(7))
    labels, ids = features.category_view(LABELS, "coarse4")
    assert labels.categories == ("ENTITY", "location", "person")
    assert ids.tolist() == [0, 1, 2, 3, 4, 5, 6]
    labels, ids = features.category_view(
        LabelSet(("ENTITY", "album", "scientist", "town")), "coarse4"
    )
    assert labels.categories == ("ENTITY", "location", "person")
    assert [labels.tags[i] for i in ids] == [
        "O",
        "B-ENTITY",
        "I-ENTITY",
        "B-ENTITY",
        "I-ENTITY",
        "B-person",
        "I-person",
        "B-location",
        "I-location",
    ]


def test_views_by_a_table_of_ones_own(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("place\tPlace\nScientist\tPerson\n")
    labels, ids = features.category_view(LabelSet(("ENTITY", "Scientist", "place")), str(table))
    assert labels.categories == ("ENTITY", "Person", "Place")
    assert ids.tolist() == list(range(7))
    with pytest.raises(UserError, match="category 'thing' of the corpus is neither a class"):
        features.category_view(LabelSet(("ENTITY", "thing")), str(table))
    with pytest.raises(UserError, match="'wintersportplayer' of the corpus would become several"):
        features.category_view(LabelSet(("ENTITY", "wintersportplayer")), "nerbert315")
