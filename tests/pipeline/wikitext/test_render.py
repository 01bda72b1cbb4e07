import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dump.site import ENGLISH, Site
from pipeline.wikitext.inline import strip_quotes
from pipeline.wikitext.render import render

UKRAINIAN = Site.for_language("uk")
CHINESE = Site.for_language("zh")


def links(text, site=ENGLISH, **options):
    rendered = render(text, site, **options)
    return rendered.text, [(rendered.text[a.start : a.end], a.target) for a in rendered.anchors]


@pytest.mark.parametrize(
    ("code", "wikitext", "text", "anchors"),
    [
        ("en", "x [[[Foo]]] y", "x [[[Foo]]] y", []),
        ("en", "x [[[[Foo]]]] y", "x [[Foo]] y", [("Foo", "Foo")]),
        ("en", "x [[[Foo|bar]]] y", "x [[[Foo|bar]]] y", []),
        ("en", "a [[7%25 Bar]] b", "a 7% Bar b", [("7% Bar", "7% Bar")]),
        ("en", "a [[7%2525 Bar]] b", "a [[7%2525 Bar]] b", []),
        ("en", "a [[Caf%C3%A9]] b", "a Café b", [("Café", "Café")]),
        ("en", "a [[%23%3c|x]] b", "a x b", []),
        ("en", "a [[%3c%23]] b", "a [[%3c%23]] b", []),
        ("en", "a [[Foo<nowiki> b</nowiki>]] c", "a [[Foo b]] c", []),
        ("en", "[[Foo|a <nowiki>[b]</nowiki>]] c", "a [b] c", [("a [b]", "Foo")]),
        ("en", "[[Foo|a [http://x.org b] c]] d", "a b c d", [("a b c", "Foo")]),
        ("en", "a [[Foo}]] b", "a [[Foo}]] b", []),
        ("en", "a [[Foo~bar]] b", "a Foo~bar b", [("Foo~bar", "Foo~bar")]),
        ("en", "a [[Foo||b|]] c", "a |b| c", [("|b|", "Foo")]),
        ("kaa", "a [[Foo]]'n b", "a Foo'n b", [("Foo'n", "Foo")]),
        ("is", "og mótmælenda[[söfnuður]] og", "og mótmælendasöfnuður og", None),
        ("en", "og mótmælenda[[söfnuður]] og", "og mótmælendasöfnuður og", None),
    ],
)
def test_links_as_mediawiki(code, wikitext, text, anchors):
    if anchors is None:
        joined = "mótmælendasöfnuður" if code == "is" else "söfnuður"
        anchors = [(joined, "Söfnuður")]
    assert links(wikitext, Site.for_language(code)) == (text, anchors)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("coord|48|24|N|9|59|E", "48°24′N 9°59′E"),
        ("coord|48|24|5.5|N|9|59|0|W|type:city", "48°24′5.5″N 9°59′0″W"),
        ("coord|48.4|-9.98|display=inline,title", "48.4°N 9.98°W"),
        ("coord|48|N|9|E|display=inline", "48°N 9°E"),
    ],
)
def test_coordinates(template, text):
    rendered = render(f"Ulm lies at {{{{{template}}}}} and is old.")
    assert rendered.text == f"Ulm lies at {text} and is old."
    assert rendered.holes == ()


def test_coordinates_above_the_text_and_broken_ones():
    rendered = render("Ulm{{coord|48|24|N|9|59|E|display=title}} is old.")
    assert (rendered.text, rendered.holes) == ("Ulm is old.", ())
    assert render("Ulm lies at {{coord|here}} and is old.").holes


@pytest.mark.parametrize(
    ("wikitext", "text", "anchors"),
    [
        ("[[bus]]es", "buses", [("buses", "Bus")]),
        (
            "[[Bus|big bus]]es and [[bus]]-es",
            "big buses and bus-es",
            [("big buses", "Bus"), ("bus", "Bus")],
        ),
        (
            "[[foo_bar]] [[ foo  bar ]]",
            "foo_bar foo bar",
            [("foo_bar", "Foo bar"), ("foo bar", "Foo bar")],
        ),
        ("[[Foo#Sec]] [[Foo#Sec|t]]", "Foo#Sec t", [("Foo#Sec", "Foo"), ("t", "Foo#Sec")]),
        ("a [[#Sec|section]] b", "a section b", []),
        (
            "[[foo%20bar|x]] [[Foo&amp;Bar]]",
            "x Foo&Bar",
            [("x", "Foo bar"), ("Foo&Bar", "Foo&Bar")],
        ),
        ("[[:Category:Cats]] [[:File:a.jpg|pic]]", "Category:Cats pic", []),
        (
            "a [[Help:IPA]] [[Wikipedia:X|b]] [[Portal:Y]] [[User:Z|z]]s",
            "a Help:IPA b Portal:Y zs",
            [],
        ),
        ("[[http://a.b]] [[http://a.b t]] [[//a.b/c x]]", "[] [t] [x]", []),
        (
            "[[./x]] [[../x]] [[a/./b]] [[a/..]] [[.]]",
            "[[./x]] [[../x]] [[a/./b]] [[a/..]] [[.]]",
            [],
        ),
        (
            "[[Project:]] [[Help: ]] [[a%2525b]] [[a~~~b]]",
            "[[Project:]] [[Help: ]] [[a%2525b]] [[a~~~b]]",
            [],
        ),
        ("[[meatball:X]] [[doi:10.1/x|y]]", "meatball:X y", []),
        ("[[[x]]] [[x]]]", "[[[x]]] x]", [("x", "X")]),
        (
            "[[.NET]] [[a.b]] [[AC/DC]] [[...]]",
            ".NET a.b AC/DC ...",
            [(".NET", ".NET"), ("a.b", "A.b"), ("AC/DC", "AC/DC"), ("...", "...")],
        ),
        ("a [[Category:Cats]] b", "a b", []),
        ("[[de:Hund]] [[:de:Hund|dog]] [[wikt:dog]]", "dog wikt:dog", []),
        ("[[Star Trek: Voyager]]", "Star Trek: Voyager", [("Star Trek: Voyager",) * 2]),
        ("[[File:a.jpg|thumb|The [[cat]], ''a [[dog|d [x]]]'']]After", "After", []),
        ("[[File:a|x [[File:b|y [[c]]]] z]]!", "!", []),
        ("[[image:a.jpg]]end", "end", []),
        ("[[a|b|c]]", "b|c", [("b|c", "A")]),
        ("[[a|[b]]] [[[a]]]", "[b] [[[a]]]", [("[b]", "A")]),
        ("[[a|x [[b]] y]]", "[[a|x b y]]", [("b", "B")]),
        ("[[a|b\nc]] d", "b c d", [("b c", "A")]),
        ("[[a<!-- x -->b|c<!-- y -->d]]", "cd", [("cd", "Ab")]),
        (
            "''[[a]]'' '''[[b|''c'']]''' [[d|e''f]] g''",
            "a c ef g",
            [("a", "A"), ("c", "B"), ("ef", "D")],
        ),
        ("[[Foo|''Bar'' &amp; <small>baz</small>]]", "Bar & baz", [("Bar & baz", "Foo")]),
        ("[[A]]<nowiki/>s ''b<nowiki/>''", "As b", [("A", "A")]),
        ("[[Foo|  spaced  ]]", "spaced", [("spaced", "Foo")]),
        ("[[Foo|&nbsp;]]x", "x", [("x", "Foo")]),
        ("[[a]][[b]] [[]] [[|x]]", "ab [[]] [[|x]]", [("a", "A"), ("b", "B")]),
        ("[[Media:x.ogg|listen]] [[Special:X|y]]", "listen y", []),
        (
            "http://a.b/c?d=e [http://a.b] [http://a.b t [[x]]]",
            "http://a.b/c?d=e t x",
            [("x", "X")],
        ),
        ("[//a.b t] [mailto:x@y m] [not a link]", "t m [not a link]", []),
        (
            "&lt;b&gt; &amp;amp; &#65;&#x42; AT&T &foo; &eacute",
            "<b> &amp; AB AT&T &foo; &eacute",
            [],
        ),
        ("10&nbsp;km&thinsp;x", "10 km x", []),
        ("<nowiki>[[a]] ''b'' {{c}} &lt; <b></nowiki>", "[[a]] ''b'' {{c}} < <b>", []),
        ('a<ref>b [[c]]</ref>d<ref name="x"/>e<ref name=y>z</ref>', "ade", []),
        ("a <ref>x</ref>.", "a.", []),
        ("one<br>two<br/>three<br />four", "one\ntwo\nthree\nfour", []),
        ("<gallery>\nFile:a.jpg|[[x]]\n</gallery>\n[[y]]", "y", [("y", "Y")]),
        ("__NOTOC__a __init__ __INHALTSVERZEICHNIS__", "a __init__", []),
        ("{|\n|[[a]]\n{|\n|n\n|}\n|}\nb [[c]]\n:{|\n|x\n|} tail", "b c\ntail", [("c", "C")]),
        ("<table><tr><td>[[a]]</td></tr></table>x<div>[[b]]</div>z", "x\nb\nz", [("b", "B")]),
        ("==H [[a]]==\np\n=== H2 === \n== no heading", "p\n== no heading", []),
        ("a\nb\n\nc", "a b\nc", []),
        ("H<sub>2</sub>O <unknown>x</unknown> a < b", "H2O <unknown>x</unknown> a < b", []),
        ("<includeonly>no</includeonly><noinclude>[[b]]</noinclude>", "b", [("b", "B")]),
        ("{{{1|default}}} {{{x}}}", "default", []),
        ("-{zh-hans:a;zh-hant:b}-", "-{zh-hans:a;zh-hant:b}-", []),
        ("[[A]] [[B]] [[C|c]]", "A B c", [("A", "A"), ("B", "B"), ("c", "C")]),
        ("a <!-- c -->\nb", "a b", []),
        ("a\n <!-- c --> \nb", "a b", []),
        ("a\n----\nb", "a\nb", []),
        ("a\n| b\nc", "a\nc", []),
        ("<table><td>a<table><td>b</td></table></td></table>c", "c", []),
        ("<table>x</table> p <table>a<table>b</table></table>c", "p\nc", []),
        ("{{lc:ABC}} {{uc:abc}} {{lcfirst:ABC}} {{ucfirst:abc}}", "abc ABC aBC Abc", []),
        ("{{lang|2=bonjour|1=fr}}", "bonjour", []),
        ("{{as of|2010|lc=y}}", "as of 2010", []),
        ("#REDIRECT [[x]]", "", []),
    ],
)
def test_as_mediawiki_renders(wikitext, text, anchors):
    assert links(wikitext) == (text, anchors)


@pytest.mark.parametrize(
    "broken",
    [
        "{{a|b",
        "[[a|b",
        "<ref>b",
        "<!-- b",
        "''b",
        "{|\n| b",
        "<div>b",
        "[http://x b",
        "<nowiki>b",
        "{{{b",
        "]] }} |}",
        "<math>b",
        "<gallery>b",
        "-{b",
        "<table>b",
        "[[File:x|b",
        "&#xZZ; &",
        "== b",
    ],
)
def test_unbalanced_markup_keeps_the_rest(broken):
    text, anchors = links(f"Before [[x]].\n\n{broken}\n\nAfter [[y|z]] it.\n\nLast.")
    assert text.startswith("Before x.")
    assert text.endswith("After z it.\nLast.")
    assert anchors == [("x", "X"), ("z", "Y")]


def test_lists_only_on_demand():
    wikitext = "* item [[a]]\n## num\n; term\n: text\nprose\n<ul><li>[[b]]</li></ul>"
    assert links(wikitext) == ("prose", [])
    assert links(wikitext, list_items=True)[0].split("\n") == [
        "item a",
        "num",
        "term",
        "text",
        "prose",
        "b",
    ]


def test_localised_namespaces_and_trails():
    wikitext = "[[Київ]]ський [[Файл:x.jpg|міні|[[a]]]][[Категорія:Y]][[Зображення:z.png]]!"
    assert links(wikitext, UKRAINIAN) == ("Київський !", [("Київський", "Київ")])
    assert render(wikitext, UKRAINIAN).categories == ("Y",)


@pytest.mark.parametrize(
    ("wikitext", "text", "anchor"),
    [
        ("за «[[Мілан (клуб)|Мілан»]].", "за «Мілан».", "Мілан"),
        ("за [[Мілан (клуб)|«Мілан]]».", "за «Мілан».", "Мілан"),
        ("за [[Мілан (клуб)|«Мілан»]].", "за «Мілан».", "«Мілан»"),
        ("за [[Мілан (клуб)|Клуб «Мілан»]].", "за Клуб «Мілан».", "Клуб «Мілан»"),
        ("за [[Мілан (клуб)|„Мілан]]“.", "за „Мілан“.", "Мілан"),
        ("за «[[Мілан (клуб)|Мілан»]]ом.", "за «Мілан»ом.", "Мілан"),
        ("за [[Мілан (клуб)|«Мілан]]ом».", "за «Міланом».", "Міланом"),
        ("за [[Мілан (клуб)|»]].", "за ».", "»"),
    ],
)
def test_no_name_has_one_quote_of_a_pair(wikitext, text, anchor):
    assert links(wikitext, UKRAINIAN) == (text, [(anchor, "Мілан (клуб)")])


def test_language_variants_and_no_trail():
    wikitext = "[[北京]]市-{zh-hant:電腦;zh-hans:计算机}- -{raw}--{H|zh-cn:a;zh-tw:b}-。"
    assert links(wikitext, CHINESE) == ("北京市计算机 raw。", [("北京", "北京")])


@pytest.mark.parametrize(
    ("wikitext", "text", "anchors"),
    [
        ("-{zh-cn:[[A]];zh-tw:[[A|B]]}-。", "A。", [("A", "A")]),
        ("-{zh-tw:[[A|B]];zh-hans:[[C|D]]}-。", "D。", [("D", "C")]),
        ("-{[[A|B]]}-。", "B。", [("B", "A")]),
        ("-{zh-hans:a;b;zh-hant:c;}-。", "a;b。", []),
        ("-{A|zh-hans:[[A|B]];zh-hant:c}-。", "B。", [("B", "A")]),
    ],
)
def test_links_in_language_variants(wikitext, text, anchors):
    assert links(wikitext, CHINESE) == (text, anchors)


@pytest.mark.parametrize(
    ("wikitext", "text", "holes"),
    [
        ("Population is {{foo}} people.", "Population is people.", [14]),
        ("E is <math>x</math>.", "E is .", [5]),
        ("Text.{{cn}} More {{citation needed|date=x}} text.", "Text. More text.", []),
        ("{{Infobox x\n|a=b\n}}\n'''Lead''' is.", "Lead is.", []),
        ("{{foo}} Next. {{foo}} One.", "Next. One.", []),
        ("It is {{#if: x | y }} here.", "It is here.", [6]),
        ("It is {{lang}} and {{frac}} here.", "It is and here.", [6, 10]),
        ("It is at {{coord|N|9|E|3|W}} here.", "It is at here.", [9]),
        ("A {{foo}} is b ({{IPA|x}}; c) now.", "A is b (c) now.", [2]),
        ("{{foo}} is lower case.", "is lower case.", [0]),
        ("Foo ({{IPA|x}}) and ({{IPA|y}}; {{lang-fr|Bar}}).", "Foo and (French: Bar).", []),
        (
            "Pop {{formatnum:12345}}, {{convert|3|to|5|km|mi|abbr=on}}, {{convert|1|mi|km}}.",
            "Pop 12,345, 3 to 5 km, 1 mile.",
            [],
        ),
        (
            "{{lang|fr|''[[a|bonjour]]''}} {{as of|2010|5}} {{nowrap|a {{small|b}}}} {{circa|1800}}",
            "bonjour As of May 2010 a b c. 1800",
            [],
        ),
        (
            "Born {{birth date|1990|1|2}} or {{start date|2010|5|3|df=y}}.",
            "Born January 2, 1990 or 3 May 2010.",
            [],
        ),
        (
            "In {{flag|France}} 5{{ndash}}6 {{nihongo|T|東京|Tōkyō}}",
            "In France 5–6 T (東京, Tōkyō)",
            [],
        ),
    ],
)
def test_templates_and_holes(wikitext, text, holes):
    rendered = render(wikitext)
    assert (rendered.text, list(rendered.holes)) == (text, holes)


def test_templates_of_the_page_in_order():
    rendered = render(
        "{{infobox a\n| k = [[x|y]] {{b|1}}\n| 2\n| z=\n}}\n* {{Template:C}} {{cite web|x}}"
    )
    assert [t.name for t in rendered.templates] == ["Infobox a", "B", "C", "Cite web"]
    assert rendered.templates[0].arguments == ("k=y 1", "1=2")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("''a'' '''b''' '''''c'''''", "a b c"),
        ("''foo'''", "foo'"),
        ("'''foo''", "'foo"),
        ("''''foo'''''", "'foo"),
        ("a''''''''b", "a'''b"),
        ("l'''amour''", "l'amour"),
        ("x l'''amour'' y'''z'''", "x l'amour yz"),
        ("rock 'n' roll's", "rock 'n' roll's"),
        ("''a\nb''", "a\nb"),
        ("ab'''c'' d l'''e'''", "abc d l'e"),
        ("abc '''de'' fgh'''i''' j", "abc de fgh'i j"),
    ],
)
def test_quotes(line, text):
    assert strip_quotes(line) == text


MARKUP = st.lists(
    st.sampled_from(
        [
            "[[",
            "]]",
            "{{",
            "}}",
            "{{{",
            "}}}",
            "|",
            "[",
            "]",
            "'''",
            "''",
            "{|",
            "|}",
            "|-",
            "!",
            "<ref>",
            "</ref>",
            "<nowiki>",
            "</nowiki>",
            "<!--",
            "-->",
            "<br>",
            "http://x",
            "[http://y",
            "==",
            "*",
            ":",
            "#",
            ";",
            "&amp;",
            "&#91;",
            "-{",
            "}-",
            "__TOC__",
            "File:",
            "Category:",
            ":fr:",
            "#",
            "a",
            "b",
            "É",
            "東",
            "<div>",
            "</div>",
            "<math>",
            "\ufdd0",
            "\x00",
            "'",
            "=",
            "<table>",
            "</table>",
            "{{convert|1|km}}",
            "{{IPA|x}}",
            "(",
            ")",
        ]
        + ["\n", " ", "\n\n"]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=600, deadline=None)
@given(MARKUP)
def test_any_markup_gives_sound_anchors(wikitext):
    for site in (ENGLISH, CHINESE):
        rendered = render(wikitext, site)
        position = 0
        for anchor in rendered.anchors:
            assert position <= anchor.start < anchor.end <= len(rendered.text)
            assert "\n" not in rendered.text[anchor.start : anchor.end]
            assert rendered.text[anchor.start : anchor.end].strip()
            assert anchor.target
            position = anchor.end
        assert all(0 <= hole <= len(rendered.text) for hole in rendered.holes)
        assert not any("\ufdd0" <= c <= "\ufdef" for c in rendered.text)
