"""What two runs were made with, and in what they differ."""

import pytest

from nerbert.storage.records import difference

NOW = {"corpus": "1f", "settings": {"head": "open", "chains": 0.25, "teacher": None}}


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        ({}, ""),
        ({"settings": {"head": "closed"}}, "head 'closed', not 'open'"),
        ({"settings": {"teacher": "a"}}, "teacher 'a', not None"),
        ({"settings": {"other": 1}}, "other 1, not None"),
        ({"corpus": "2e"}, "other corpus"),
        # The first difference, and none of a table that only lacks what is None.
        ({"corpus": "2e", "settings": {"head": "closed"}}, "other corpus"),
    ],
)
def test_what_differs_is_named(earlier, expected):
    record = {**NOW, **earlier, "settings": {**NOW["settings"], **earlier.get("settings", {})}}
    assert difference(record, NOW) == expected


def test_an_option_that_a_version_before_did_not_have_is_none():
    before = {**NOW, "settings": {"head": "open", "chains": 0.25}}
    assert difference(before, NOW) == difference(NOW, before) == ""
    before["settings"]["chains"] = 0.5
    assert difference(before, NOW) == "chains 0.5, not 0.25"
