from dataclasses import replace

import pytest

from nerbert.storage.places import Place
from ontology.classes import ROOT, ClassTree, rows_of
from ontology.sources.infobox import InfoboxMapping, mapped_languages, resolve_redirect

XML = """<mediawiki><page><title>Mapping en:Infobox band_or_singer</title><revision><text>
{{ConditionalMapping | cases =
 {{Condition | templateProperty = members | operator = isSet | mapping = {{TemplateMapping | mapToClass = Band}} }}
 {{Condition | templateProperty = job | operator = contains | value = Singer | mapping = {{TemplateMapping | mapToClass = MusicalArtist }} }}
 {{Condition | templateProperty = job | operator = equals | value = king | mapping = {{TemplateMapping | mapToClass = Royalty }} }}
 {{Condition | operator = otherwise | mapping = {{TemplateMapping | mapToClass = Artist
   | mappings = {{PropertyMapping | templateProperty = x | ontologyProperty = y}} }} }}
}}</text></revision></page>
<page><title>Mapping en:Authority control</title><revision><text>{{TemplateMapping | mapToClass = owl:Thing}}</text></revision></page>
<page><title>Mapping en:Infobox town</title><revision><text>{{TemplateMapping | mapToClass = Town}}</text></revision></page>
<page><title>Mapping en:Town box</title><revision><text>#REDIRECT [[Mapping en:Infobox town]]</text></revision></page>
</mediawiki>"""


@pytest.fixture
def mapping(tmp_path):
    path = tmp_path / "Mapping_en.xml"
    path.write_text(XML)
    return InfoboxMapping.from_xml(Place(path))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["members=A, B"], "Band"),
        (["members= ", "job=a singer"], "MusicalArtist"),
        (["job=King"], "Royalty"),
        (["job=king of x"], "Artist"),
        ([], "Artist"),
    ],
)
def test_conditions_in_order(mapping, arguments, expected):
    assert mapping.class_of([("Infobox band or singer", arguments)]) == expected


def test_first_mapped_template_decides(mapping):
    templates = [
        ("Cite web", []),
        ("Authority control", []),
        ("Infobox town", []),
        ("Infobox band or singer", []),
    ]
    assert mapping.class_of(templates) == "Town"
    assert mapping.class_of(templates[:2]) is None


def test_redirects_of_templates(mapping):
    redirects = {"Stadt": "Infobox Stadt", "Infobox Stadt": "Infobox town", "A": "B", "B": "A"}
    assert mapping.class_of([("Stadt", [])], redirects) == "Town"
    assert mapping.class_of([("Town box", [])]) == "Town"
    assert mapping.class_of([("A", [])], redirects) is None
    assert resolve_redirect("A", redirects) == "B"


def test_no_mapping_in_file(tmp_path):
    path = tmp_path / "empty.xml"
    path.write_text("<mediawiki/>")
    with pytest.raises(ValueError, match=r"empty\.xml: it has no TemplateMapping"):
        InfoboxMapping.from_xml(Place(path))


@pytest.mark.parametrize("language", mapped_languages())
def test_shipped_table_is_that_of_the_export(shared, language):
    path = shared / "dbpedia" / "mappings" / f"Mapping_{language}.xml.xz"
    exported, tree = InfoboxMapping.from_xml(Place(path)).cases, ClassTree.shipped()
    shipped = InfoboxMapping.shipped(language).cases
    corrected = {name for name, *_ in rows_of("infobox_more.tsv")}
    for name in exported.keys() - corrected:
        known = [
            replace(c, class_name=tree.known_name(c.class_name) or ROOT) for c in exported[name]
        ]
        assert [*shipped[name]] == known, name


@pytest.mark.parametrize("language", mapped_languages())
def test_shipped_classes_are_known(language):
    tree = ClassTree.shipped()
    cases = InfoboxMapping.shipped(language).cases.values()
    classes = {case.class_name for of_template in cases for case in of_template}
    assert {name for name in classes if tree.known_name(name) is None} <= {"owl:Thing"}


def test_other_languages_have_their_own_names_and_the_english_ones():
    ukrainian = InfoboxMapping.shipped("uk")
    assert ukrainian.class_of([("Картка Країна", [])]) == "Country"
    assert ukrainian.class_of([("Infobox anatomy", [])]) == "AnatomicalStructure"
    latgalian = InfoboxMapping.shipped("ltg")
    assert latgalian.class_of([("Infoskreine Latvejis mīsts", [])]) == "City"


def test_names_in_another_case_and_templates_without_a_mapping(mapping):
    assert mapping.class_of([("Infobox Town", [])]) == "Town"
    assert mapping.class_of([("INFOBOX BAND OR SINGER", ["members=A"])]) == "Band"
    assert mapping.class_of([("Speciesbox", [])]) == "Species"
    assert mapping.class_of([("Automatic Taxobox", [])]) == "Species"
    assert "infobox town" in mapping
    assert "Infobox" not in mapping
    assert "Speciesbox" not in InfoboxMapping.empty()


def test_the_mapping_of_a_template_wins_against_ours():
    shipped = InfoboxMapping.shipped()
    assert shipped.class_of([("Taxobox", ["divisio=Bryophyta"])]) == "Moss"
    assert shipped.class_of([("Infobox Officeholder", [])]) == "Politician"
    assert shipped.class_of([("Infobox Software", [])]) == "Software"
    assert shipped.class_of([("Infobox language family", [])]) == "Language"


@pytest.mark.parametrize(
    ("language", "template", "expected"),
    [
        ("am", "የሀገር መረጃ", "Country"),
        ("ar", "تجمع سكاني", "Settlement"),
        ("az", "Şəhər", "City"),
        ("be", "Дзяржава", "Country"),
        ("bg", "Държава", "Country"),
        ("bn", "তথ্যছক ব্যক্তি", "Person"),
        ("ca", "Infotaula persona", "Person"),
        ("cs", "Infobox - sídlo světa", "City"),
        ("cy", "Gwybodlen Person", "Person"),
        ("el", "Πληροφορίες συγγραφέα", "Writer"),
        ("eo", "Italia komunumo", "Municipality"),
        ("es", "Ficha de persona", "Person"),
        ("eu", "Biografia infotaula oinarria", "Person"),
        ("ga", "Bailte sa Ghearmáin", "Town"),
        ("gl", "Cidade", "City"),
        ("hi", "ज्ञानसन्दूक अभिनेता", "Actor"),
        ("hr", "Infookvir grad", "City"),
        ("hu", "Életrajz infobox", "Person"),
        ("id", "Ibukota provinsi", "City"),
        ("it", "Fumetto e animazione", "Comic"),
        ("ko", "도시 정보", "Settlement"),
        ("lv", "Valsts infokaste", "Country"),
        ("mk", "Град во Србија", "City"),
        ("nl", "Infobox stad Verenigde Staten", "City"),
        ("pl", "Władca-Papież", "Pope"),
        ("pt", "Info/Cidade", "City"),
        ("ru", "Государство", "Country"),
        ("sk", "Infobox Osobnosť", "Person"),
        ("sl", "Infopolje Mesto DE", "City"),
        ("sr", "Град", "City"),
        ("sv", "Flod", "River"),
        ("tr", "TR il bilgi kutusu", "City"),
        ("ur", "جاپان کا شہر", "City"),
        ("vi", "Thông tin phim", "Film"),
    ],
)
def test_a_template_of_each_language(language, template, expected):
    assert InfoboxMapping.shipped(language).class_of([(template, [])]) == expected


def test_rows_and_links_are_no_infoboxes():
    greek = InfoboxMapping.shipped("el")
    assert greek.class_of([("Πλαίσιο πλοήγησης", []), ("Πόλη", [])]) == "City"
    assert InfoboxMapping.shipped("es").class_of([("EurovisionCountries", [])]) is None
