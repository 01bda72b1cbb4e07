"""Small wikis in the real format: scripts without case, without spaces, from right to left, or two."""

import json

import pyarrow.parquet as pq
import pytest

from ontology.entity_table import EntityTable
from tests.helpers.runs import run

RDF = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
# language -> pages: title, text; and the classes that the types state.
WIKIS = {
    "zh": (
        [
            ("台湾", "'''台湾'''是位于东亚的岛屿，首府是[[臺北市]]，附近有[[香港]]等城市。"),
            ("臺北市", "'''臺北市'''是[[臺灣]]的首府，與[[香港]]相距不遠，人口眾多。"),
            ("香港", "'''香港'''位于[[台湾|台湾岛]]的西南方，是著名的国际大都会。"),
        ],
        {"台湾": "Island", "臺北市": "City", "香港": "City"},
    ),
    "ja": (
        [
            ("東京", "'''東京'''は[[日本]]の首都であり、[[大阪]]と並ぶ大きな都市である。"),
            ("日本", "'''日本'''は[[東京]]を首都とするアジアの島国である。"),
            ("大阪", "'''大阪'''は[[日本]]の西にある大きな都市として知られている。"),
        ],
        {"東京": "City", "日本": "Country", "大阪": "City"},
    ),
    "ar": (
        [
            ("القاهرة", "'''القاهرة''' هي عاصمة [[مصر]] وتقع على نهر [[النيل]] في شمال البلاد."),
            (
                "مصر",
                "'''مصر''' دولة في أفريقيا وعاصمتها [[القاهرة]] ويمر بها نهر [[النيل]] العظيم.",
            ),
            ("النيل", "'''النيل''' نهر طويل يمر في [[مصر]] قرب مدينة [[القاهرة|القاهره]] الكبيرة."),
        ],
        {"القاهرة": "City", "مصر": "Country", "النيل": "River"},
    ),
    "he": (
        [
            (
                "ירושלים",
                "'''ירושלים''' היא עיר הבירה של [[ישראל]] והיא שוכנת ליד [[תל אביב]] בהרים.",
            ),
            ("ישראל", "'''ישראל''' היא מדינה באסיה ובירתה [[ירושלים]] נמצאת במרכז הארץ היפה."),
            ("תל אביב", "'''תל אביב''' היא עיר גדולה מאוד לחוף הים בארץ [[ישראל]] הקטנה."),
        ],
        {"ירושלים": "City", "ישראל": "Country", "תל אביב": "City"},
    ),
    "sr": (
        [
            (
                "Београд",
                "'''Београд''' је главни град и лежи на реци [[Dunav]] у земљи [[Srbija|Србији]].",
            ),
            (
                "Дунав",
                "'''Дунав''' је велика река која пролази кроз град [[Beograd]] и друге градове.",
            ),
            (
                "Srbija",
                "'''Srbija''' je zemlja u Evropi, a njen glavni grad je [[Београд|Beograd]] odavno.",
            ),
        ],
        {"Београд": "City", "Дунав": "River", "Srbija": "Country"},
    ),
}


# Pages with infoboxes, and their classes by DBpedia's mapping of the language.
BOXED = {
    "it": {
        "Roma": ("{{Divisione amministrativa|Nome=Roma}}", "è la capitale dell'", "PopulatedPlace"),
        "Italia": ("{{Stato|nomeCorrente=Italia}}", "è uno stato in cui scorre il", "Country"),
        "Tevere": ("{{Fiume|nome=Tevere}}", "è un fiume che bagna", "River"),
    },
    "el": {
        "Αθήνα": ("{{Πόλη (Ελλάδα)|όνομα=Αθήνα}}", "είναι πόλη και πρωτεύουσα στην", "City"),
        "Ελλάδα": ("{{Πληροφορίες Χώρας|όνομα=Ελλάδα}}", "είναι χώρα όπου έζησε ο", "Country"),
        "Περικλής": ("{{Πληροφορίες πολιτικού}}", "ήταν πολιτικός που έζησε στην", "Politician"),
    },
    "ru": {
        "Москва": ("{{НП-Россия|русское название=Москва}}", "город и столица", "PopulatedPlace"),
        "Россия": ("{{Государство|название=Россия}}", "государство, где родился", "Country"),
        "Толстой": ("{{Писатель|имя=Лев}}", "писатель, который жил в городе", "Writer"),
    },
}

# Pages without infoboxes, and their classes by the nouns of their first sentences.
DEFINED = {
    "it": {
        "Roma": ("è la capitale d'Italia, e ne parla", "City"),
        "Dante": ("è stato un poeta che vide il", "Poet"),
        "Tevere": ("è un fiume che bagna", "River"),
    },
    "el": {
        "Αθήνα": ("είναι πόλη και πρωτεύουσα, όπου έζησε ο", "City"),
        "Περικλής": ("ήταν πολιτικός που δεν είδε τον", "Politician"),
        "Έβρος": ("είναι ποταμός μακριά από την", "River"),
    },
    "ltg": {
        "Reiga": ("— mīsts Latvejā, kur ira", "City"),
        "Daugova": ("— upe, kas tak caur", "River"),
        "Rainis": ("— poets nu vaļsteibys, kur ir", "Poet"),
    },
}


def write(folder, language):
    pages, types = WIKIS[language]
    xml = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{n}</id><revision><id>{n}</id>"
        f"<timestamp>2023-05-01T00:00:00Z</timestamp><text>{text}</text></revision></page>\n"
        for n, (title, text) in enumerate(pages, 1)
    )
    (folder / f"{language}wiki-20230501-pages-articles.xml").write_text(
        f'<mediawiki xml:lang="{language}">\n{xml}</mediawiki>\n', encoding="utf-8"
    )
    lines = "".join(
        f"<http://{language}.dbpedia.org/resource/{title.replace(' ', '_')}> {RDF} "
        f"<http://dbpedia.org/ontology/{name}> .\n"
        for title, name in types.items()
    )
    (folder / "types.nt").write_text(lines, encoding="utf-8")


@pytest.mark.parametrize("language", WIKIS)
def test_every_link_finds_its_page(tmp_path, language):
    if language == "zh":
        pytest.importorskip("opencc", reason="the extra `zh` is not installed")
    write(tmp_path, language)
    flags = [
        "--min-entities",
        "1",
        "--validation-share",
        "0",
        "--no-page-typer",
        "--min-tokens",
        "3",
        "--balance",
        "none",
    ]
    code, out, err = run(
        "--dump", ".", "--types", "types.nt", "--output", "out", *flags, cwd=tmp_path
    )
    assert code == 0, err
    assert "100.0 % of the others with a class" in out
    rows = pq.read_table(tmp_path / "out" / "corpus" / "train").to_pylist()
    assert {row["page_id"] for row in rows} == {1, 2, 3}
    tags = json.loads((tmp_path / "out" / "corpus" / "labels.json").read_text())["tags"]
    types = WIKIS[language][1]
    table = EntityTable.open(tmp_path / "out" / "entities")
    for row in rows:
        found = [tags[label][2:] for label in row["ner_tags"] if tags[label].startswith("B-")]
        assert found == [table.class_of(target) for target in row["targets"]]
        assert set(found) <= set(types.values())


def test_a_page_wins_over_a_title_in_the_other_script(tmp_path):
    """A redirect or a page that has the converted title itself leads where it says."""
    pages, _ = WIKIS["sr"]
    extra = [("Beograd", "'''Beograd''' je naziv jednog sela u kome žive mnogi ljudi danas.")]
    WIKIS["sr+"] = ([*pages, *extra], {"Београд": "City", "Beograd": "Village"})
    try:
        write(tmp_path, "sr+")
    finally:
        del WIKIS["sr+"]
    dump = next(tmp_path.glob("*.xml"))
    dump.write_text(dump.read_text(encoding="utf-8").replace("sr+", "sr"), encoding="utf-8")
    types = tmp_path / "types.nt"
    types.write_text(types.read_text(encoding="utf-8").replace("sr+", "sr"), encoding="utf-8")
    flags = [
        "--dump",
        dump,
        "--types",
        types,
        "--output",
        "out",
        "--stage",
        "resolve",
        "--no-page-typer",
    ]
    code, _, err = run(*flags, cwd=tmp_path)
    assert code == 0, err
    table = EntityTable.open(tmp_path / "out" / "entities")
    assert (table.class_of("Beograd"), table.class_of("Београд")) == ("Village", "City")
    assert table.class_of("Dunav") is None
    assert table.lookup(["Dunav"]) == table.lookup(["Дунав"])


def type_alone(tmp_path, monkeypatch, language, rows, *flags):
    """Makes a corpus of pages (infobox, words before a link, class), and checks their classes."""
    titles = [*rows]
    pages = []
    for title, linked in zip(titles, [*titles[1:], titles[0]], strict=True):
        box, words, _ = rows[title]
        pages.append((title, f"{box}\n'''{title}''' {words} [[{linked}]] 1 2 3."))
    monkeypatch.setitem(WIKIS, language, (pages, {}))
    write(tmp_path, language)
    flags = ["--min-entities", "1", "--min-tokens", "3", "--balance", "none", *flags]
    code, out, err = run("--dump", "*.xml", "--output", "out", *flags, cwd=tmp_path)
    assert code == 0, err
    assert "100.0 % of the others with a class" in out
    table = EntityTable.open(tmp_path / "out" / "entities")
    assert {title: table.class_of(title) for title in titles} == {
        title: class_name for title, (_, _, class_name) in rows.items()
    }


@pytest.mark.parametrize("language", BOXED)
def test_infoboxes_type_a_dump_alone(tmp_path, monkeypatch, language):
    type_alone(tmp_path, monkeypatch, language, BOXED[language], "--no-page-typer")


@pytest.mark.parametrize("language", DEFINED)
def test_first_sentences_type_a_dump_alone(tmp_path, monkeypatch, language):
    rows = {title: ("", *row) for title, row in DEFINED[language].items()}
    type_alone(tmp_path, monkeypatch, language, rows)
