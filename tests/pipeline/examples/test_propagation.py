import re
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerbert.text.common_nouns import CommonNouns
from ontology.categories import CategorySet
from ontology.classes import ClassTree
from ontology.dictionary import Dictionary
from pipeline.documents.rows import empty_row, to_batch
from pipeline.examples.dictionary import counted
from pipeline.examples.mentions import SOURCES, Labelling, sentences_of
from pipeline.examples.name_search import Capitals
from pipeline.examples.propagation import Propagation
from pipeline.examples.unlinked import PageWords
from pipeline.language import NO_WORDS, CommonWords
from pipeline.wikitext.names import NO_ENTITY, SURE, shares_word
from tests.helpers.entities import table_of

TREE = ClassTree.shipped()
CLASSES = {
    "Ulm": "City",
    "Ulm, Montana": "City",
    "Battle of Ulm": "MilitaryConflict",
    "SSV Ulm": "SoccerClub",
    "Ulm F.C.": "SoccerClub",
    "Ada Lovelace": "Scientist",
    "Ada Lovelace Ulm": "Scientist",
    "Grace Hopper": "Scientist",
    "Angela Davis": "Scientist",
    "Edward German": "Scientist",
    "Robert Downey Jr.": "Scientist",
    "Louis de Broglie": "Scientist",
    "Bartel van der Waerden": "Scientist",
    "Tennis": "Company",
    "Mercury (planet)": "Planet",
    "2 Pallas": "Planet",
    "146 BC": "Event",
    "1916 Ulm census": "Event",
}


def table():
    return table_of(CLASSES)


def document(title, text):
    """A document of a text with links [text|target] and a sentence per line."""
    anchors, plain = [], ""
    for index, piece in enumerate(re.split(r"[\[\]]", text)):
        shown, _, target = piece.partition("|")
        if index % 2:
            doubt = NO_ENTITY if target == "a concept" else SURE
            anchors.append((len(plain), len(plain) + len(shown), target or shown, True, doubt))
        plain += shown
    ends = [match.end() for match in re.finditer(r"[^\n]+", plain)]
    starts = [match.start() for match in re.finditer(r"[^\n]+", plain)]
    return empty_row(
        title=title,
        text=plain,
        sentence_starts=starts,
        sentence_ends=ends,
        sentence_holes=[False] * len(starts),
        sentence_markup=[False] * len(starts),
        anchors=anchors,
    )


def capitals(text, starts, ends):
    """The capitalised words of one document."""
    documents = np.zeros(len(starts), np.int64)
    return Capitals(PageWords([text]), documents, np.array(starts), np.array(ends))


def whole_names(text, taken, starts, ends, common=()):
    """Sentence, start and end of the runs of capitals of one document."""
    spans = np.array(taken, np.int64).reshape(-1, 2)
    rows = np.searchsorted(starts, spans[:, 0], "right") - 1
    found = capitals(text, starts, ends).whole_names(rows, *spans.T, common)
    return [(row, start, end) for _, row, start, end in found]


def found(*pages, dictionary=None, least=0, contexts=None, language="en"):
    """(text, target, source) of all mentions, by page; each text of the dictionary has one link."""
    entities = table()
    if dictionary is not None:
        titles = list(dictionary.values())
        rows = counted(list(dictionary), entities.lookup(titles), pa.array(titles))
        dictionary = Dictionary(rows.replace_schema_metadata({"least": str(least)}))
    batch = to_batch([page if isinstance(page, dict) else document(*page) for page in pages])
    sentences = sentences_of(batch, entities)
    labels = Labelling.of(entities, CategorySet.load("specific"), TREE).label(sentences.entities)
    common = CommonWords(frozenset({"the", "here", "new"}), 0.0)
    more = Propagation(entities, dictionary, common, language, contexts).extended(
        batch, PageWords(batch.column("text").to_pylist()), sentences, labels
    )
    by_page = [[] for _ in pages]
    for place, start, end, target, source in zip(
        more.anchor_sentences.tolist(),
        more.anchor_starts.tolist(),
        more.anchor_ends.tolist(),
        more.targets.to_pylist(),
        more.sources.tolist(),
        strict=True,
    ):
        page = int(more.documents[place])
        text = batch.column("text")[page].as_py()
        assert more.starts[place] <= start < end <= more.ends[place]
        by_page[page].append((text[start:end], target, SOURCES[source]))
    return by_page


LINK = ("Ulm", "Ulm", "link")


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("X", "From [Ulm] he went.\nHe saw Ulm again.", [LINK, ("Ulm", "Ulm", "repeat")]),
        ("X", "He saw Ulm first.\nThen [Ulm] again.", [("Ulm", "Ulm", "repeat"), LINK]),
        ("Ulm", "Ulm is old.\nSo is old Ulm.", [("Ulm", "Ulm", "title")] * 2),
        (
            "Mercury (planet)",
            "The planet Mercury is small.",
            [("Mercury", "Mercury (planet)", "title")],
        ),
        (
            "X",
            "[Ada Lovelace] wrote.\nLovelace counted.",
            [("Ada Lovelace", "Ada Lovelace", "link"), ("Lovelace", "Ada Lovelace", "surname")],
        ),
        (
            "X",
            "[Ada Lovelace's|Ada Lovelace] works.\nLovelace's works.",
            [("Ada Lovelace's", "Ada Lovelace", "link"), ("Lovelace", "Ada Lovelace", "surname")],
        ),
        (  # a link that is no name
            "Ada Lovelace",
            "A [Lovelace machine|a concept].\nOne Lovelace machine. He saw Lovelace.",
            [("Lovelace", "Ada Lovelace", "surname")],
        ),
        (  # two persons of one name, and one of them is the page's own
            "X",
            "[Ada Lovelace] met [Jo Lovelace|Grace Hopper].\nThere Lovelace wrote.",
            [("Ada Lovelace", "Ada Lovelace", "link"), ("Jo Lovelace", "Grace Hopper", "link")],
        ),
        (
            "Ada Lovelace",
            "She met [Jo Lovelace|Grace Hopper].\nLater, Lovelace wrote.",
            [("Jo Lovelace", "Grace Hopper", "link"), ("Lovelace", "Ada Lovelace", "surname")],
        ),
        (
            "X",
            "[Ada Lovelace] left [Lovelace, D.C.|Nowhere].\nShe was born in Lovelace, D.C.",
            [("Ada Lovelace", "Ada Lovelace", "link"), ("Lovelace, D.C.", "Nowhere", "link")],
        ),
        # A part of a longer name is none.
        ("X", "[Ulm] is far.\nThe Ulm Museum, New Ulm, Ulm-Neu, Ulmer, Ulm 2.", [LINK]),
        ("X", "[Ulm] is far.\nCarl M. Ulm came.", [LINK]),
        ("Ulm", "Old Ulm is old.", []),
        (
            "X",
            "[Ulm] is far.\nThe Bank of Ulm, the Art Museum of the Ulm, Neu–Ulm, Ulm–Neu.",
            [LINK],
        ),
        ("X", "[Ulm] is far.\nMost of Ulm is most of it.", [LINK, ("Ulm", "Ulm", "repeat")]),
        ("The Ulm in May", "[Ulm] is far.\nHe wrote The Ulm in May.", [LINK]),
        (
            "X",
            "[Ulm] is far.\n[Club 1 Ulm|Nowhere] won.\nAnd so Club 1 Ulm lost.",
            [LINK, ("Club 1 Ulm", "Nowhere", "link")],
        ),
        ("Ulm", "In Ulm it rained, in spring.", [("Ulm", "Ulm", "title")]),
        # A text with two meanings has none.
        (
            "X",
            "[Ulm] is not [Ulm|Ulm, Montana].\nUlm is both.",
            [LINK, ("Ulm", "Ulm, Montana", "link")],
        ),
        # So has the title of a page of another kind.
        ("X", "[Ulm|Ada Lovelace Ulm] wrote.\nUlm read.", [("Ulm", "Ada Lovelace Ulm", "link")]),
        # Names begin with numbers, too, and are none if another number goes on with them.
        (
            "2 Pallas",
            "It is 2 Pallas, not 12 Pallas or 2 Pallass.",
            [("2 Pallas", "2 Pallas", "title")],
        ),
        (
            "X",
            "After the [1916 Ulm census] [Ulm] grew.\nThe 1916 Ulm census was in Ulm.",
            [
                ("1916 Ulm census", "1916 Ulm census", "link"),
                LINK,
                ("1916 Ulm census", "1916 Ulm census", "repeat"),
                ("Ulm", "Ulm", "repeat"),
            ],
        ),
        ("146 BC", "In 146 BC and before 146 BC it was so.", []),
        (  # no class says what it is, but it holds no city
            "1918 Ulm vote",
            "[Ulm] is far.\nThe 1918 Ulm vote was in Ulm.",
            [LINK, ("Ulm", "Ulm", "repeat")],
        ),
        # A page on a thing writes it in lower case.
        ("Tennis", "Tennis is a sport.\nMany play tennis.", []),
        # Repeats of a link to a page without class are the same, if they are its title.
        (
            "X",
            "[Nowhere] is far.\nNowhere is near.",
            [("Nowhere", "Nowhere", "link"), ("Nowhere", "Nowhere", "repeat")],
        ),
        ("X", "[the Moor|Nowhere] is far.\nMoor is near.", [("the Moor", "Nowhere", "link")]),
        ("X", "[Muslims] came.\nMuslims went.", [("Muslims", "Muslims", "link")]),
        (
            "X",
            "[Nowhere] is far.\n[Nowhere|Nowhere (song)] is not.\nNowhere is both.",
            [("Nowhere", "Nowhere", "link"), ("Nowhere", "Nowhere (song)", "link")],
        ),
        # A page about a part of it is no other meaning of a name.
        (
            "X",
            "[Ulm] is old, and [Ulm|Geography of Ulm] is flat.\nUlm is both.",
            [LINK, ("Ulm", "Geography of Ulm", "link"), ("Ulm", "Ulm", "repeat")],
        ),
        # Surnames may look like demonyms; "Jr." is none.
        (
            "X",
            "[Angela Davis] spoke.\nDavis spoke.",
            [("Angela Davis", "Angela Davis", "link"), ("Davis", "Angela Davis", "surname")],
        ),
        (
            "X",
            "[Edward German] wrote.\nGerman wrote.",
            [("Edward German", "Edward German", "link")],
        ),
        (
            "X",
            "[Robert Downey Jr.] spoke.\nDowney spoke. Jr. did, too.",
            [
                ("Robert Downey Jr.", "Robert Downey Jr.", "link"),
                ("Downey", "Robert Downey Jr.", "surname"),
            ],
        ),
        # The particle belongs to the surname.
        (
            "X",
            "[Louis de Broglie] and [Bartel van der Waerden] met.\nDe Broglie saw Van der Waerden, "
            "and de Broglie left Waerden's grande Broglie.",
            [
                ("Louis de Broglie", "Louis de Broglie", "link"),
                ("Bartel van der Waerden", "Bartel van der Waerden", "link"),
                ("De Broglie", "Louis de Broglie", "surname"),
                ("Van der Waerden", "Bartel van der Waerden", "surname"),
                ("de Broglie", "Louis de Broglie", "surname"),
                ("Waerden", "Bartel van der Waerden", "surname"),
                ("Broglie", "Louis de Broglie", "surname"),
            ],
        ),
        # Initials in a bracket; others may be those of something else.
        (
            "X",
            "[SSV Ulm] (SU) and [Battle of Ulm] (1805), [Ada Lovelace] (ALO) came.\nSU and ALO won.",
            [
                ("SSV Ulm", "SSV Ulm", "link"),
                ("SU", "SSV Ulm", "repeat"),
                ("Battle of Ulm", "Battle of Ulm", "link"),
                ("Ada Lovelace", "Ada Lovelace", "link"),
                ("SU", "SSV Ulm", "repeat"),
            ],
        ),
        (
            "X",
            "[Battle of Ulm] (BU), [Nowhere in Far Land] (NFL, 1950), [Band of Ulm|Ulm] (BU).\n"
            "BU is two. NFL. [SSV Ulm] (SU) or [SU|SSV Ulm, Ulm].",
            [
                ("Battle of Ulm", "Battle of Ulm", "link"),
                ("Nowhere in Far Land", "Nowhere in Far Land", "link"),
                ("NFL", "Nowhere in Far Land", "repeat"),
                ("Band of Ulm", "Ulm", "link"),
                ("NFL", "Nowhere in Far Land", "repeat"),
                ("SSV Ulm", "SSV Ulm", "link"),
                ("SU", "SSV Ulm, Ulm", "link"),
            ],
        ),
        ("Nowhere", "Nowhere is far.", []),
        (
            "Ulm F.C.",
            "Ulm F.C. and Ulm won.",
            [("Ulm F.C.", "Ulm F.C.", "title"), ("Ulm", "Ulm F.C.", "title")],
        ),
        ("Ulm (district)", "Ulm is one.\nIt has [Ulm].\nUlm voted.", [("Ulm", "Ulm", "link")]),
    ],
)
def test_mentions(title, text, expected):
    assert found((title, text)) == [expected]


def test_bold_names_of_a_page():
    row = document("Ulm", "Ulm, or Ulma, is old.\nUlma has a right to Recht.\nA good Recht.")
    row["names"] = ["Ulma", "Right", "Recht"]
    assert found(row)[0] == [
        ("Ulm", "Ulm", "title"),
        ("Ulma", "Ulm", "own-name"),
        ("Ulma", "Ulm", "own-name"),
        ("Recht", "Ulm", "own-name"),
        ("Recht", "Ulm", "own-name"),
    ]
    row["title"] = "Nowhere"
    assert found(row)[0] == []


def test_marks_of_stress_are_in_the_first_sentence_only():
    row = document("Ulm", "U\u0301lma is old.\nUlma is new.")
    row["names"] = ["U\u0301lma"]
    assert [text for text, *_ in found(row)[0]] == ["U\u0301lma", "Ulma"]


def test_a_page_without_names_between_pages_with_names():
    pages = [
        ("Ulm", "He saw Ulm."),
        ("X", "Nothing at all."),
        ("Y", ""),
        ("X", "[Ulm] and then Ulm."),
        ("Z", "Nothing here.\nNor here.\nBut to Lovelace he went."),
    ]
    assert found(*pages, dictionary=DICTIONARY) == [
        [("Ulm", "Ulm", "title")],
        [],
        [],
        [LINK, ("Ulm", "Ulm", "repeat")],
        [("Lovelace", "Ada Lovelace", "dictionary")],
    ]


def by_hand(text, names, taken):
    """Every place where a name stands as a whole, the longest first; the rest of the rule is above."""
    places, free = [], 0
    for start in range(len(text)):
        for name in sorted(names, key=len, reverse=True):
            stop = start + len(name)
            whole = re.match(rf"\b{re.escape(name)}(?![\w])", text[start:]) and (
                start == 0 or not (text[start - 1].isalnum() or text[start - 1] == "_")
            )
            clear = not any(a < stop and start < b for a, b in taken)
            longer = re.match(r"[ -][A-Z0-9]", text[stop:]) or re.search(
                r"[A-Za-z]\w*[ -]$", text[:start]
            )
            if start >= free and whole and clear and not longer:
                places.append((start, stop, name))
                free = stop
                break
    return places


@given(
    st.lists(st.sampled_from(["Ulm", "New", "New Ulm", ",", ";", "Bern"]), max_size=12),
    st.randoms(),
)
def test_occurrences_against_brute_force(words, draw):
    text = "".join(word + draw.choice([" ", ", ", "; ", "-"]) for word in words)
    names = ["Ulm", "New Ulm", "Bern"]
    got = [(s, e, n) for _, s, e, n in capitals(text, [0], [len(text)]).occurrences(0, names, [])]
    assert got == by_hand(text, names, [])


def test_occurrences_end_with_their_sentence():
    text = "He saw New Ulm. And so New Ulm"
    at = text.rindex("Ulm")
    found = capitals(text, [0, 16], [15, len(text)]).occurrences(0, ["New Ulm"], [])
    assert [text[start:end] for _, start, end, _ in found] == ["New Ulm"] * 2
    parted = capitals(text, [16, at], [at - 1, len(text)])
    assert list(parted.occurrences(0, ["New Ulm"], [])) == []


def test_a_name_that_hides_others_is_found_before_a_capital():
    text = "Ulm heute Bern, Ulm Bern"
    names = ["Ulm", "Ulm heute"]
    words = capitals(text, [0], [len(text)])
    for hiding, expected in (([], ["Ulm"]), (["Ulm heute"], ["Ulm heute"])):
        found = words.occurrences(0, names, [], hiding=hiding)
        assert [name for *_, name in found] == expected


DICTIONARY = {"Ulm": "Ulm", "Bank of Ulm": "Ulm, Montana", "Lovelace": "Ada Lovelace"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They came to Ulm in May.", [("Ulm", "Ulm", "dictionary")]),
        ("The Bank of Ulm failed.", [("Bank of Ulm", "Ulm, Montana", "dictionary")]),
        ("The Duke of Ulm died.", []),
        ("At Ulm Minster it rang.", []),
        ("He saw New Ulm there.", []),
        ("A St. Ulm is unknown.", []),
        ("It was Ulm-based.", [("Ulm", "Ulm", "dictionary")]),
        ("It is Ulm 2 now.", []),
        ("In [Ulm, Montana] and [Ulm] one knows Ulm.", None),
        ("The [Ulm|Ulm, Montana] is not Ulm.", None),
        ("Visit ulm now.", []),
        ("New Ulm is far.\nHe saw New Ulm.", []),
        ("Ms Lovelace came.", []),
        ("Here Lovelace came.", [("Lovelace", "Ada Lovelace", "dictionary")]),
    ],
)
def test_names_of_the_dictionary(text, expected):
    (mentions,) = found(("X", text), dictionary=DICTIONARY)
    if expected is None:  # what the page links wins
        assert all(source != "dictionary" for _, _, source in mentions)
    else:
        assert mentions == expected


DISTRICT = ("district", "Tennis", "link")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Ulm district grew.", [("Ulm district", "Ulm, Montana", "dictionary")]),
        ("The Ulm district.", [("Ulm district", "Ulm, Montana", "dictionary")]),
        ("The Ulm districts grew.", [("Ulm", "Ulm", "dictionary")]),
        ("The Ulm District grew.", []),
        ("The [Ulm] district grew.", [LINK]),
        ("[Ulm].\nat Ulm [district|Tennis].", [LINK, ("Ulm", "Ulm", "repeat"), DISTRICT]),
        ("The Ulm\ndistrict grew.", [("Ulm", "Ulm", "dictionary")]),
        ("See [Ulm].\nat Ulm district.", [LINK, ("Ulm district", "Ulm, Montana", "dictionary")]),
    ],
)
def test_a_name_goes_on_in_lower_case_where_the_dictionary_has_it_so(text, expected):
    dictionary = {"Ulm": "Ulm", "Ulm district": "Ulm, Montana"}
    assert found(("X", text), dictionary=dictionary, language="lt") == [expected]
    in_english = [name for name, *_ in found(("X", text), dictionary=dictionary)[0]]
    assert "Ulm district" not in in_english


def test_whole_names_touch_no_mention_and_leave_sentences_alone():
    text = "Then New York State won. Later York lost to Bath."
    starts, ends = [0, 25], [24, len(text)]
    taken = [(text.index("York"), text.index("York") + 4)]
    spans = [(row, text[a:b]) for row, a, b in whole_names(text, taken, starts, ends)]
    assert spans == [(1, "Later York"), (1, "Bath")]


def test_whole_names_beside_a_mention_and_of_one_letter():
    text = "Old York Ulm fell, but Bath stood."
    taken = [(text.index("Ulm"), text.index("Ulm") + 3)]
    assert [text[a:b] for _, a, b in whole_names(text, taken, [0], [len(text)])] == ["Bath"]
    text = "The B fell, and the C and Bath."
    assert [text[a:b] for _, a, b in whole_names(text, [], [0], [len(text)])] == ["Bath"]


@given(st.lists(st.sampled_from(["New", "new", "Newer", "a", "A", "a,", "A,", ",", "7"])))
def test_a_common_word_inside_a_sentence_against_an_expression(words):
    """ "New Ulm" is one name if "New" stands after a word in lower case; else "Ulm" may be one."""
    text = "New Ulm fell. " + " ".join(words)
    found = [text[a:b] for _, a, b in whole_names(text, [], [0], [13], {"new"})]
    if "new" in words:
        assert found == ["Ulm"]
    else:
        inside = re.search(r"[a-z],? New(?!\w)", text)
        assert found == (["New Ulm"] if inside else ["New Ulm", "Ulm"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Albanian|Ulm] is old.\nThe Albanian court.", [("Albanian", "Ulm", "link")]),
        (
            "[Ada of Ulm|Ada Lovelace] came.\nShe left Ulm.",
            [("Ada of Ulm", "Ada Lovelace", "link")],
        ),
    ],
)
def test_words_that_depend_on_the_sentence_are_not_repeated(text, expected):
    assert found(("X", text)) == [expected]


@pytest.mark.parametrize(
    ("surface", "title", "expected"),
    [
        ("Mobile", "Mobile, Alabama", True),
        ("Democrats", "Democratic Party (United States)", True),
        ("U.S.", "United States", True),
        ("the South", "Southern United States", True),
        ("North America", "American Jews", True),
        ("Ireland", "Irish Canadian", False),
        ("England", "United Kingdom", False),
    ],
)
def test_shares_word(surface, title, expected):
    assert shares_word(surface, title) is expected


def test_links_of_the_dump_make_a_name_ambiguous():
    text = "The [Ulm|Ulm, Montana] is wide.\nSo then Ulm fell."
    assert ("Ulm", "Ulm, Montana", "repeat") in found(("X", text))[0]
    assert found(("X", text), dictionary={"Ulm": "Ulm"})[0] == [("Ulm", "Ulm, Montana", "link")]


def test_overlaps_of_names_one_by_one(monkeypatch):
    """Brute force over names in any places: of two that overlap in a sentence, the first stays."""

    class Everything:
        def lookup(self, names):
            return [(place, 0, "Ulm", True) for place in range(len(names))]

    entities = table()
    propagation = Propagation(entities, Everything(), language="en")
    page = SimpleNamespace(text="Ulm" * 9)
    random = np.random.default_rng(0)
    for _ in range(300):
        free = sorted(
            (int(row), int(start), int(start + size), page)
            for row, start, size in random.integers((0, 0, 1), (3, 12, 6), (6, 3))
        )
        kept = []
        for row, start, end, *_ in free:
            if not any(row == r and start < e and s < end for r, s, e in kept):
                kept.append((row, start, end))
        assert [mention[:3] for mention in propagation._elsewhere(free)] == kept


@pytest.mark.parametrize(
    ("text", "target", "kept"),
    [("Ulm", "Battle of Ulm", False), ("Ulm", "SSV Ulm", False), ("SSV Ulm", "SSV Ulm", True)],
)
def test_a_place_that_stands_for_a_war_or_a_team_is_no_mention(text, target, kept):
    page = ("X", f"A goal for [{text}|{target}].")
    assert found(page) == [[(text, target, "link")] if kept else []]


TENNIS, IT = ("Tennis", "Tennis", "link"), ("it", "Tennis", "link")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("By [Tennis].\nThe Tennises pay.", [TENNIS, ("Tennises", "Tennis", "repeat")]),
        ("The Tennises pay.\nBy [Tennis].", [("Tennises", "Tennis", "repeat"), TENNIS]),
        ("By [it|Tennis].\nThe Tennises.", [IT, ("Tennises", "Tennis", "repeat")]),
        ("The Tennises pay.", []),  # the page does not link it
        ("By [Tennis].\nThen Old Tennises pay.", [TENNIS]),  # a longer name
        ("By [Tennis].\nThe Racket pays.", [TENNIS]),  # not a form of its name
    ],
)
def test_other_forms_of_names_that_the_page_links(text, expected):
    forms = {"Tennises": "Tennis", "Racket": "Tennis"}
    assert found(("X", text), dictionary=forms, least=5) == [expected]


@pytest.mark.parametrize(
    ("title", "name", "others", "times", "n_mentions"),
    [
        ("Ulm", "Ulm", "", 1, 1),
        ("Ulm", "Ulm", "[Ulm|Ulm, Montana]\n", 9, 0),
        ("Ulm", "Ulm", "[Ulm|Ulm, Montana]\n", 10, 10),
        ("Ulm", "Ulm", "[Ulm|Nowhere (song)]\n", 10, 10),
        ("Ada Lovelace", "Lovelace", "[Lovelace|Nowhere (film)]\n", 10, 10),
        ("Ada Lovelace", "Lovelace", "[Lovelace|Nowhere (film)]\n" * 2, 10, 0),
    ],
)
def test_names_of_the_page_itself_that_links_hardly_ever_mean_otherwise(
    title, name, others, times, n_mentions
):
    (mentions,) = found((title, others + f"so {name} paid.\n" * times))
    assert len([source for *_, source in mentions if source != "link"]) == n_mentions


@pytest.mark.parametrize(("times", "n_mentions"), [(9, 0), (10, 10)])
def test_a_title_that_is_hardly_ever_in_lower_case(times, n_mentions):
    """ "audi" is Latin once on the page of Audi; on the page of tennis "tennis" is the game."""
    (mentions,) = found(("Tennis", "They play tennis.\n" + "so Tennis paid.\n" * times))
    assert len(mentions) == n_mentions


def test_other_forms_of_the_title_of_the_page():
    forms = {"Ulmer": "Ulm", "Hopper": "Grace Hopper"}
    text = "They saw Ulmer and Hopper.\nUlm is old."
    assert found(("Ulm", text), dictionary=forms, least=5) == [
        [("Ulmer", "Ulm", "title"), ("Ulm", "Ulm", "title")]
    ]
    assert found(("X", text), dictionary=forms, least=5) == [[]]
    low = found(("Ulm", f"{text}\nThe ulmer of it."), dictionary=forms, least=5)
    assert low == [[("Ulm", "Ulm", "title")]]


class OfKinds:
    """Bears out the names of some kinds; remembers what it was asked."""

    def __init__(self, *kinds):
        self.kinds, self.asked = kinds, []

    def bear_out(self, kinds, features, pages):
        assert len(kinds) == len(features) == len(pages)
        self.asked += zip(kinds, features, pages, strict=True)
        return np.array([kind in self.kinds for kind in kinds], bool)


def test_titles_of_other_pages():
    text = "They met Ada Lovelace in Ulm, and saw Tennis and Unknown City."
    places = OfKinds("Place")
    assert found(("X", text), contexts=places) == [[("Ulm", "Ulm", "other-title")]]
    assert [kind for kind, *_ in places.asked] == ["Person", "Place", "Organisation"]
    assert {page for *_, page in places.asked} == {"X"}
    assert {"title:ulm", "before:lovelace in", "after:and saw"} <= places.asked[1][1]
    assert found(("X", text), contexts=OfKinds("Person", "Place")) == [
        [("Ada Lovelace", "Ada Lovelace", "other-title"), ("Ulm", "Ulm", "other-title")]
    ]
    assert found(("X", text)) == [[]]


@pytest.mark.parametrize(
    ("text", "dictionary", "expected"),
    [
        pytest.param("Old Ulm and Ulm.", {}, ["Ulm"], id="not in a longer name"),
        pytest.param("[Ulm|Ulm, Montana] and Ulm.", {}, [], id="the page means another one"),
        pytest.param("He saw Ulm.", {"Ulm": "Ulm, Montana"}, [], id="the dump means another one"),
        pytest.param("He saw Ulm.", {"Ulm": "Ulm"}, ["Ulm"], id="the dump means the same one"),
    ],
)
def test_titles_of_other_pages_with_doubts(text, dictionary, expected):
    """A text of the dictionary has fewer links than it needs, so it only says what is doubtful."""
    (mentions,) = found(("X", text), dictionary=dictionary, least=2, contexts=OfKinds("Place"))
    assert [name for name, _, source in mentions if source == "other-title"] == expected


def test_the_dictionary_goes_before_titles():
    (mentions,) = found(
        ("X", "He saw Ulm."), dictionary={"Ulm": "Ulm, Montana"}, contexts=OfKinds("Place")
    )
    assert mentions == [("Ulm", "Ulm, Montana", "dictionary")]


def in_language(language, text, title, common=NO_WORDS):
    """The mentions of a page without capitals as signs: text and title of each."""
    batch = to_batch([document(title, text)])
    entities = table()
    sentences = sentences_of(batch, entities)
    labels = Labelling.of(entities, CategorySet.load("specific"), TREE).label(sentences.entities)
    texts = batch.column("text").to_pylist()
    more = Propagation(entities, common=common, language=language).extended(
        batch, PageWords(texts), sentences, labels
    )
    spans = zip(more.anchor_starts.tolist(), more.anchor_ends.tolist(), strict=True)
    return [texts[0][start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("language", "title", "text", "expected"),
    [
        ("ja", "日本", "日本では\n日本海\n南日本の\n（日本）", ["日本", "日本"]),
        ("ja", "日本", "[日本海|tea]の日本は", ["日本海", "日本"]),
        ("ja", "さいたま", "さいたま、\nさいたまの", ["さいたま"]),
        ("ja", "日本", "[日本国|日本]は日本国の日本を", ["日本国", "日本国", "日本"]),
        ("zh", "北京", "在北京的\n北京人\n、北京。\n东北京", ["北京", "北京"]),
        ("ar", "مصر", "مصر، في مصر. المصرية", ["مصر", "مصر"]),
        ("hi", "भारत", "भारत की\nभारती है।", ["भारत"]),
        ("ko", "서울", "서울은 서울대학교\n서울에서 서울", ["서울", "서울", "서울"]),
        ("th", "ไทย", "ไทย เป็น\nภาษาไทย", ["ไทย"]),
        ("ja", "秦", "秦は", []),
    ],
)
def test_names_in_scripts_without_capitals(language, title, text, expected, monkeypatch):
    monkeypatch.setitem(CLASSES, title, "Country")
    assert in_language(language, text, title) == expected


def test_names_where_all_nouns_have_a_capital(monkeypatch):
    nouns = CommonNouns(frozenset(["Stadt", "Philosoph", "Universität", "Jahr"]))
    common = CommonWords(frozenset(), 0.0, nouns)
    monkeypatch.setitem(CLASSES, "Immanuel Kant", "Philosopher")
    text = "der Philosoph Kant\nKants Jahr\nwie Kant Bonn\nHerr Kant\nbei Immanuel Kant"
    assert in_language("de", text, "Immanuel Kant", common) == ["Kant", "Kants", "Immanuel Kant"]
    text = "in Ulm\nUniversität Ulm\ndie Stadt Ulm\nUlms Jahr"
    assert in_language("de", text, "Ulm", common) == ["Ulm"]


def test_what_makes_a_language_a_people_or_a_currency_of_a_country():
    """ "tiếng Anh" is English, "người Mỹ" an American, "US$" money."""
    text = "nói cả tiếng Ulm.\n145 người Ulm.\nchâu Ulm.\nở Ulm.\nUlm$5."
    batch = to_batch([document("Ulm", text)])
    words = PageWords(batch.column("text").to_pylist())
    sentences = sentences_of(batch, table())
    labels = np.zeros(0, np.int64)
    for language, expected in (("vi", ["ở Ulm."]), ("fr", text.split("\n")[:4])):
        more = Propagation(table(), None, NO_WORDS, language).extended(
            batch, words, sentences, labels
        )
        lines = [text.split("\n")[row] for row in more.anchor_sentences.tolist()]
        assert lines == expected


def test_the_end_of_an_ambiguous_name_is_no_name():
    """Where "New Ulm" may be the city or the battle, "Ulm" in it is neither."""
    text = "[New Ulm|Ulm, Montana].\n[New Ulm|Battle of Ulm].\nNew Ulm grew.\nIt saw Ulm."
    (mentions,) = found(("X", text), contexts=OfKinds("Place"))
    assert mentions == [
        ("New Ulm", "Ulm, Montana", "link"),
        ("New Ulm", "Battle of Ulm", "link"),
        ("Ulm", "Ulm", "other-title"),
    ]


def test_names_that_begin_with_a_common_noun_are_repeated(monkeypatch):
    """ "mer Noire" is the page's title; no other name is sought in it."""
    monkeypatch.setitem(CLASSES, "Mer Noire", "Sea")
    monkeypatch.setitem(CLASSES, "Noire", "City")
    text = "[Noire] et la mer Noire.\nla mer Noire et Noire.\nune mer Noire Morte.\nMer Noire."
    expected = ["Noire", "mer Noire", "mer Noire", "Noire", "Mer Noire"]
    assert in_language("fr", text, "Mer Noire") == expected
    assert in_language("en", text, "Mer Noire") == ["Noire"] * 5
