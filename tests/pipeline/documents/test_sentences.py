from nerbert.text.common_nouns import NO_NOUNS
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
