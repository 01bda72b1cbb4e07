import bz2
import html
import re
from collections import Counter
from itertools import islice

import pytest

from nerbert.text.sentences import SentenceModel
from ontology.classes import ClassTree, lines_of
from ontology.sources.infobox import mapped_languages
from ontology.sources.nouns import Nouns, names_by_class

SENTENCES = """
am | አዲስ አበባ | አዲስ አበባ የኢትዮጵያ ዋና ከተማ ናት። | City
ar | باريس | باريس هي مدينة في فرنسا. | City
az | Gəncə | Gəncə — Azərbaycanda şəhər. | City
be | Гродна | Гро́дна — горад на захадзе Беларусі. | City
bg | Пловдив | Пловдив е град в Южна България. | City
bn | ঢাকা | ঢাকা বাংলাদেশের একটি শহর। | City
ca | Josep Pla | Josep Pla i Casadevall (Palafrugell, 1897) fou un escriptor i periodista català. | Writer
cs | Vltava | Vltava je nejdelší řeka v Česku. | River
cy | Bala | Mae Bala yn dref yng Ngwynedd. | Town
de | Marie Curie | Marie Curie (geborene Skłodowska) war eine Physikerin und Chemikerin. | Scientist
de | Ulm | Ulm ist eine Universitätsstadt in Baden-Württemberg. | City
de | Emil Kunz | Emil Kunz war ein deutscher Kommunalpolitiker. | Politician
de | Emil Kunz | Emil Kunz ist ein CDU-Politiker. | Politician
de | Istrien | Istrien ist eine Halbinsel. | -
da | Gudenå | Gudenå er en å i Danmark. | River
el | Λάρισα | Η Λάρισα είναι πόλη της Ελλάδας. | City
el | Γιώργος Σεφέρης | Ο Γιώργος Σεφέρης (1900 – 1971) ήταν Έλληνας ποιητής και διπλωμάτης. | Poet
en | Ulm | Ulm is a city in Germany. | City
en | Werder Bremen | SV Werder Bremen is a German football club. | SoccerClub
en | Akira Kurosawa | Akira Kurosawa was a Japanese film director and painter. | MovieDirector
eo | Parizo | Parizo estas urbo en Francio. | City
es | Ebro | El Ebro es un río de España. | River
et | Andong | Andong on linn Lõuna-Koreas. | City
et | Annie Dillard | Annie Dillard on USA naiskirjanik. | Writer
eu | Ordizia | Ordizia Gipuzkoako udalerri bat da. | Municipality
fi | Aleksis Kivi | Aleksis Kivi oli suomalainen kirjailija. | Writer
fr | Loire | La Loire est le plus long fleuve de France. | River
ga | Gaillimh | Is cathair in iarthar na hÉireann í Gaillimh. | City
gl | Lugo | Lugo é unha cidade de Galicia. | City
hi | भोपाल | भोपाल भारत का एक नगर है। | City
hr | Osijek | Osijek je grad u istočnoj Hrvatskoj. | City
hu | Tisza | A Tisza egy folyó Közép-Európában. | River
hy | Գյումրի | Գյումրին Հայաստանի երկրորդ քաղաքն է։ | -
hy | Սևան | Սևանը Հայաստանի ամենամեծ լիճ է։ | Lake
id | Bandung | Bandung adalah kota terbesar di Jawa Barat. | City
it | Metodo | Il metodo è un termine della scienza. | -
it | Pisa | Pisa è un comune italiano capoluogo dell'omonima provincia. | Municipality
it | Dario Fo | Dario Fo (Sangiano, 1926) è stato un drammaturgo e attore italiano. | Writer
ja | ウルム | ウルム（Ulm）は、ドイツ南部の都市である。 | City
ja | 夏目漱石 | 夏目漱石（なつめ そうせき）は、日本の小説家、評論家。 | Writer
ja | 日本銀行 | 日本銀行は、千葉県、埼玉県にもある。 | -
ko | 부산 | 부산은 대한민국의 도시이다. | City
lt | Kaunas | Kaunas – miestas Lietuvoje. | City
ltg | Daugpiļs | Daugpiļs — mīsts Latvejā. | City
lv | Gauja | Gauja ir upe Latvijā. | River
mk | Охрид | Охрид е град во Македонија. | City
nl | Maas | De Maas is een rivier in Europa. | River
nb | Glomma | Glomma er en elv i Norge. | River
no | Glomma | Glomma er en elv i Norge. | River
nl | Jan Vos | Jan Vos is een stripauteur. | Writer
pl | Wisła | Wisła – rzeka w Polsce. | River
pt | Douro | O Douro é um rio da Península Ibérica. | River
ro | Cluj-Napoca | Cluj-Napoca este un oraș din Transilvania. | City
ru | Казань | Каза́нь — крупный город в России. | City
sk | Váh | Váh je najdlhšia rieka Slovenska. | River
sl | Maribor | Maribor je drugo največje mesto v Sloveniji. | City
sr | Ниш | Ниш је град у Србији. | City
sv | Umeå | Umeå är en tätort i Västerbotten. | Town
tr | Konya | Konya, Türkiye'nin büyük bir şehridir. | City
uk | Чернівці | Чернівці́ — місто на заході України. | City
uk | Ольга Кобилянська | О́льга Кобиля́нська (1863, Гура-Гумора — 1942) — українська письменниця. | Writer
ur | لاہور | لاہور پاکستان کا ایک شہر ہے۔ | City
vi | Hà Giang | Hà Giang là một tỉnh thuộc vùng Đông Bắc Bộ. | Province
vi | Alberta | Alberta là một trong 13 tỉnh bang và lãnh thổ của Canada. | AdministrativeRegion
vi | Hồ Biểu Chánh | Hồ Biểu Chánh, tên thật là Hồ Văn Trung, là một nhà văn. | Writer
zh | 乌尔姆 | 乌尔姆（Ulm）是德国南部的城市。 | City
"""
CASES = [tuple(row.split(" | ")) for row in SENTENCES.strip().split("\n")]


@pytest.mark.parametrize(("language", "title", "sentence", "expected"), CASES)
def test_the_noun_of_a_first_sentence(language, title, sentence, expected):
    found = Nouns.shipped(language).class_of(title, sentence)
    assert found == (None if expected == "-" else expected)


def test_every_mapped_language_has_nouns_and_a_case():
    assert {*mapped_languages()} <= {language for language, *_ in CASES}


def test_the_table_has_classes_of_the_ontology_and_each_noun_once():
    tree = ClassTree.shipped()
    seen = set()
    for line in lines_of("nouns.tsv"):
        language, name, nouns = line.split("\t")
        assert name in set("$-:=<!^&~+") or tree.kind(name), line
        for noun in nouns.split("|"):
            assert noun == noun.strip() != ""
            assert name in set("$:=<!^&~+") or (language, noun) not in seen, (language, noun)
            if name not in set("<!^&~+"):
                seen.add((language, noun))


def test_names_of_classes_in_languages():
    labels = [line.split("\t") for line in lines_of("labels.tsv")]
    assert {name for _, name, _ in labels} <= {*ClassTree.shipped().names}
    once = [(language, label.lower()) for language, _, cell in labels for label in cell.split("|")]
    assert len(once) == len(set(once))
    names = names_by_class(["uk", "de", "no", "en"])
    assert {"політик", "Politiker", "politiker"} <= {*names["Politician"]}
    assert {"особа", "Person", "person"} <= {*names["Person"]}
    assert "Ort" in names["Place"]
    assert not [name for name, words in names.items() if name != "Place" and "Ort" in words]
    assert names_by_class(["en", "simple", "xx"]) == {}
    for language in ("ar", "cs", "es", "fi", "ja", "nl", "pl", "ru", "tr", "vi", "zh"):
        assert {"Person", "Place", "Organisation", "City"} <= {*names_by_class([language])}


@pytest.mark.parametrize(
    ("language", "sentence", "expected"),
    [
        ("en", "X is a species of sea slug in the family Y.", None),
        ("en", "X was an English theatre, film and television actor.", "Actor"),
        ("en", "X is an American film producer.", None),
        ("en", "X is an American video game developer and publisher in Irvine.", None),
        ("en", "X was an American minister, writer, and teacher.", "Writer"),
        ("en", "X is a 2016 drama film co-written and directed by Y.", "Film"),
        ("en", "X is a Croatian footballer currently playing for Y.", "SoccerPlayer"),
        ("en", "X is the capital and most populous city of Y.", "City"),
        ("en", "X is the state capital of Y.", "City"),
        ("en", "X is a venture capital group.", None),
        ("en", "X is a single-decker bus.", None),
        ("en", "X is a Tamil language soap opera.", None),
        ("en", "X is a science fiction short story by the writer Y.", None),
        ("de", "X ist das kleinste Stück Materie, das als chemisches Element vorliegt.", None),
        ("de", "X ist ein Ort und eine ehemalige Gemeinde.", None),
        ("de", "X ist ein in Berlin geborener US-amerikanischer Maler.", None),
        ("de", "X ist ein US-amerikanischer Maler.", "Painter"),
        ("de", "X war ein Hamburger Maler.", "Painter"),
        ("de", "X ist eine Große Kreisstadt in Y.", "City"),
        ("it", "X è un periodo storico.", None),
        ("it", "X è uno storico italiano.", "Historian"),
        ("it", "X è un linguaggio di programmazione.", "ProgrammingLanguage"),
        ("it", "X è un cavallo di battaglia.", None),
        ("fr", "X est un État fédéral, sans accès à la mer.", None),
        ("fr", "X est un langage de programmation objet.", "ProgrammingLanguage"),
        ("de", "X ist seit 1997 die Hauptstadt Kasachstans.", "City"),
        ("de", "X ist eine nach dem Physiker Y benannte Einheit.", None),
        ("uk", "X — універсальна, процедурна мова програмування.", "ProgrammingLanguage"),
        ("uk", "X — літак у складі міста.", None),
    ],
)
def test_the_head_of_the_first_noun_phrase(language, sentence, expected):
    assert Nouns.shipped(language).class_of("X", sentence) == expected


KINDS = {
    "Person": r"\d{3,4}s? births|Living people|\d{4}s? deaths|.* (alumni|footballers|politicians|actors|writers)",
    "Work": r"(.* )?(albums|films|songs|singles|novels|video games|television series|television shows|books|paintings|plays|magazines|newspapers)( .*)?",
    "Place": r"(Villages|Towns|Cities|Populated places|Rivers|Mountains|Lakes|Municipalities|Islands|Townships|Railway stations|Geography|Suburbs|Neighbou?rhoods)\b.* (in|of)\b.*",
    "Species": r".*(Moths|Beetles|Fauna|Flora|Plants|Birds|Fish|Mammals|Insects|Spiders|Butterflies) (of|described in)\b.*|.*(idae|inae|aceae)|.* described in \d{4}",
    "Organisation": r"(Companies|.* companies|.* clubs|.*political parties|Organizations|.*universities|.*schools|Universities|Schools|.* football clubs)\b.*",
}
"""Kind of a page -> categories that say so."""


def kind_by_categories(categories):
    counts = Counter(
        kind
        for name in categories
        for kind, pattern in KINDS.items()
        if re.fullmatch(pattern, name)
    ).most_common(2)
    is_clear = len(counts) == 1 or (len(counts) > 1 and counts[1][1] < counts[0][1] / 2)
    return counts[0][0] if is_clear else None


def leads(shared):
    """Title, beginning and categories of English articles."""
    for path in sorted((shared / "leads").glob("enwiki-201907-plain-leads-*.xml.bz2")):
        xml = bz2.decompress(path.read_bytes()).decode()
        for title, text in re.findall(r"<title>(.*?)</title>.*?<text[^>]*>(.*?)</text>", xml, re.S):
            text = html.unescape(text)
            body = re.sub("'{2,}", "", text.partition("\n\n[[Category")[0]).strip()
            yield html.unescape(title), body, re.findall(r"\[\[Category:([^\]|]*)", text)


@pytest.mark.slow
def test_kinds_agree_with_categories(shared):
    """Of the pages whose categories say a kind, three in a thousand have another one by the noun."""
    nouns, tree = Nouns.shipped("en"), ClassTree.shipped()
    model = SentenceModel.train(text for _, text, _ in islice(leads(shared), 3000))
    right = wrong = 0
    for title, text, categories in leads(shared):
        if (kind := kind_by_categories(categories)) is None or not text:
            continue
        line = text.partition("\n")[0][:500]
        first, last = (model.split(line) or [(0, 0)])[0]
        if (name := nouns.class_of(title, line[first:last])) is not None:
            right += tree.kind(name) == kind
            wrong += tree.kind(name) != kind
    assert right > 13_000
    assert wrong < 0.003 * right


@pytest.mark.parametrize(
    ("title", "sentence", "expected"),
    [
        ("Ulm", "", None),
        ("Ulm", "Ulm is.", None),
        ("Ulm", "In 1899 the station was a river port.", None),  # another subject
        ("Ulm (Texas)", "Ulm (pop. 9 (a city)) is a town in Texas.", "Town"),
        ("Mill Lake", "Mill Lake is part of a lake district.", None),
        ("Is", "Is is a town.", "Town"),
        ("A", "A is " + "very " * 30 + "a city.", None),  # too far
    ],
)
def test_sentences_that_say_little(title, sentence, expected):
    assert Nouns.shipped("en").class_of(title, sentence) == expected


def test_a_language_without_nouns():
    assert Nouns.shipped("xx").class_of("Ulm", "Ulm is a city.") is None
