import pytest

from nerbert.text.words import spans_in_text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Born in Ulm. He left.", "Born|in|Ulm|.|He|left|."),
        (
            "Dr. Smith and J. Doe of Acme Inc. (Ulm) met.",
            "Dr.|Smith|and|J.|Doe|of|Acme|Inc.|(|Ulm|)|met|.",
        ),
        ('He said "Go." Then he left.', 'He|said|"|Go|.|"|Then|he|left|.'),
        ("In 1969. Then U.S. Army came.", "In|1969|.|Then|U.S.|Army|came|."),
        ("approx. 5 km. no more", "approx.|5|km.|no|more"),
        ("one. Two.\nThree.", "one|.|Two|.|Three|."),
        ("", ""),
    ],
)
def test_a_full_stop_that_ends_a_sentence_is_a_word(text, words):
    found = [text[start:end] for start, end in spans_in_text(text)]
    assert found == (words.split("|") if words else [])
