from nerbert.text.common_nouns import NO_NOUNS, CommonNouns
from pipeline.documents.sentences import with_doubts
from pipeline.wikitext.names import NO_ENTITY, SURE


def test_a_title_behind_a_common_noun_is_the_mention():
    text = "De la mer Noire au tennis, puis à la principauté de Monaco, puis à Rome."
    links = {
        "mer Noire": "Mer Noire",
        "tennis": "Tennis",
        "principauté de Monaco": "Monaco",
        "Rome": "Rome",
    }
    places = [(text.index(link), text.index(link) + len(link), links[link]) for link in links]
    found = with_doubts(places, text, "fr", lexicon=False, nouns=NO_NOUNS)
    assert [(text[start:end], *rest) for start, end, _, *rest in found] == [
        ("mer Noire", True, NO_ENTITY),
        ("tennis", False, SURE),
        ("Monaco", True, NO_ENTITY),
        ("Rome", True, SURE),
    ]


def test_judged_again_the_anchors_of_a_german_text_stay():
    """As `--previous` does with the documents of an earlier dump."""
    text = "Die deutsche Kanzlerin Angela Merkel und das chemische Element Arsen, der Stoff."
    links = {
        "deutsche Kanzlerin Angela Merkel": "Angela Merkel",
        "chemische Element Arsen": "Arsen",
        "Stoff": "Materie",
    }
    places = [(text.index(link), text.index(link) + len(link), links[link]) for link in links]
    nouns = CommonNouns(frozenset(["Stoff"]))
    judged = with_doubts(places, text, "de", lexicon=False, nouns=nouns)
    assert [text[start:end] for start, end, *_ in judged] == ["Angela Merkel", "Arsen", "Stoff"]
    assert with_doubts(judged, text, "de", lexicon=False, nouns=nouns) == judged
