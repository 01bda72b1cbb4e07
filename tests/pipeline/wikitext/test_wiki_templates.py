"""Inline templates as the wiki of each language shows them."""

import pytest

from pipeline.dump.site import Site, interwiki_prefixes
from pipeline.wikitext.preprocess import HOLE
from pipeline.wikitext.render import render
from pipeline.wikitext.template_texts import group_digits, table
from pipeline.wikitext.templates import render_template


def text_of(language, wikitext):
    return render(f"x {wikitext} y", Site.for_language(language)).text[2:-2]


@pytest.mark.parametrize(
    ("language", "wikitext", "text"),
    [
        ("fr", "{{nombre|45113|voix}}", "45 113 voix"),
        ("fr", "{{unité|5|km|2}} {{tmp|2|°C}}", "5 km 2 2 °C"),
        ("fr", "{{s-|XIX}} {{s-|I}} {{s|XX|e}}", "XIXe siècle Ier siècle XXe siècle"),
        ("fr", "{{souverain2|Joseph II (empereur)}}", "Joseph II"),
        ("fr", "{{lien|langue=es|trad=Partido|fr=Parti|texte=le parti}}", "le parti"),
        ("fr", "{{lien|Parti|lang=es}}", "Parti"),
        (
            "fr",
            "{{incise|en fait}} {{heure|18|30}} {{heure|6|durée=oui}}",
            "– en fait – 18 h 30 6 h",
        ),
        ("fr", "{{citation|royaume}} {{XXe siècle}} {{er}} 2{{e}}", "« royaume » XXe siècle er 2e"),
        (
            "fr",
            "{{en langue|de|Österreich}} {{lang-en|x}}",
            "en allemand : Österreich en anglais : x",
        ),
        ("fr", "{{langue|de|texte=Autobahnen}}", "Autobahnen"),
        ("fr", "a{{,}} b{{ #tag:ref|note}}", "a b"),
        ("de", '{{enS|blog}} {{"|Rom}}', "englisch blog „Rom“"),
        ("es", "{{lang-en|blog}} {{esd|5 km}} 9{{esd}}km", "en inglés, blog 5 km 9 km"),
        ("uk", "{{lang-en|blog}} {{ДН|29|1|1860}}", "англ. blog 29 січня 1860"),
        ("uk", "{{lang-xx|blog}} {{lang-cu2|ѥ}} {{lang-el2|ο}} {{Comment|К.|Київ}}", "blog ѥ ο К."),
        ("ru", "{{нп5|Новая|Новой|de|Neue}} {{число|3644826}}", "Новой 3 644 826"),
        ("vi", "{{lang-fr|chat}}", "tiếng Pháp: chat"),
        ("ar", "{{ألمانية|Spree}}", "بالألمانية: Spree"),
        ("zh", "{{le|埃利亚学派|Eleatics}} {{tsl|en|AMS|美國數學會|學會}}", "埃利亚学派 學會"),
        ("zh", "{{link-de|边境总督|Markgraf}}{{en}}", "边境总督"),
        ("ja", "{{ruby|柳橋|やなぎばし}}{{lang-en|Ada}}", "柳橋英語: Ada"),
        ("ja", "（{{Lang-en-short|Ada}}、{{lang-ar-short|أ}}）", "（英: Ada、アラビア語: أ）"),
        ("ko", "{{llang|de|Berlin}}", "독일어: Berlin"),
        ("it", "{{M|3476|u=m}} {{m s.l.m.}}{{chiarire}}", "3476 m s.l.m."),
        ("el", "{{lang-fr|chat}}{{πηγή}}", "γαλλικά: chat"),
        ("en", "{{c.|1200|1230}} {{lang-fr|chat}}", "c. 1200 – c. 1230 French: chat"),
        ("en", "{{HMS|Ajax|22}} {{HMS|Ajax|22|2}} {{SS|Bremen}}", "HMS Ajax (22) Ajax SS Bremen"),
        ("en", "{{ship|Russian cruiser|Aurora||6}}", "Russian cruiser Aurora"),
        ("en", "{{ill|de|Gymnasium|lt=School}} {{ill|Ulm|de}} {{flag|usa|1912}}", "School Ulm usa"),
        ("simple", "{{convert|5|km|mi}}", "5 kilometres"),
        ("en", "{{convert|58.5|m|ft|0|adj=mid|-tall}} tower", "58.5-metre-tall tower"),
        ("en", "{{convert|-5|m|ft|adj=mid|-1}}", "−5-metre"),
    ],
)
def test_text(language, wikitext, text):
    assert text_of(language, wikitext) == text


@pytest.mark.parametrize("language", ["de", "fr", "uk", "vi", "zh", "sv", "xx"])
@pytest.mark.parametrize(
    "template",
    [
        "convert|5|km|mi",
        "cvt|5|km",
        "as of|2015|12",
        "birth date|1901|3|1",
        "circa|1200",
        "lang-qq|",
    ],
)
def test_english_words_are_missing_elsewhere(language, template):
    """A hole, which drops the sentence and is counted."""
    assert render_template(template.partition("|")[0], template, language) == HOLE


def test_a_wiki_without_a_table():
    """What {{lang-xx}} shows there is unknown; what only lays out text is the same everywhere."""
    assert render_template("lang-en", "lang-en|blog", "sv") == HOLE
    assert render_template("nowrap", "nowrap|a b", "sv") == "a b"


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (
            "Nome=Anna|Cognome=Verdi|Sesso=F|LuogoNascita=Pisa|GiornoMeseNascita=1º marzo|"
            "AnnoNascita=1901|Attività=poetessa|Nazionalità=italiana",
            "Anna Verdi (Pisa, 1º marzo 1901) è una poetessa italiana.",
        ),
        (
            "Nome=Ugo|Sesso=M|LuogoNascita=Bra|LuogoMorte=Asti|AnnoMorte=1950|Attività=scultore|"
            "Attività2=pittore|Attività3=poeta|Nazionalità=italiano|PostNazionalità=, noto a Bra",
            "Ugo (Bra – Asti, 1950) è stato uno scultore, pittore e poeta italiano, noto a Bra.",
        ),
        ("Nome=Ada|Sesso=F|Attività=attrice|Nazionalità=inglese", "Ada è un'attrice inglese."),
        ("Nome=Re|Sesso=M|FineIncipit=fu re di Roma", "Re fu re di Roma"),
        ("Nome=Re|Sesso=M", "Re."),
    ],
)
def test_italian_biography(named, text):
    rendered = render("{{Bio|" + named + "}}\n\nVisse a [[Siena]].", Site.for_language("it"))
    assert rendered.text.split("\n") == [text, "Visse a Siena."]
    assert [a.target for a in rendered.anchors][-1] == "Siena"


@pytest.mark.parametrize(
    ("language", "number", "text"),
    [
        ("en", "1234567.5", "1,234,567.5"),
        ("de", "1234567.5", "1.234.567,5"),
        ("fr", "9000", "9\u00a0000"),
        ("it", "9000", "9000"),
        ("it", "19000", "19\u00a0000"),
        ("ja", "9000", "9,000"),
        ("fr", "x9", "x9"),
    ],
)
def test_digits(language, number, text):
    assert group_digits(number, language) == text


def test_the_tables_are_of_wikis():
    assert set(table("wikis")) - {"digits"} <= set(interwiki_prefixes())
