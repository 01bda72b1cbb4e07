"""A small wiki with category pages, written by hand, and what is made of it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.sentences import COLUMNS

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
 <siteinfo><dbname>enwiki</dbname><case>first-letter</case><namespaces>
 <namespace key="0" case="first-letter" /><namespace key="10">Template</namespace>
 <namespace key="14">Category</namespace></namespaces></siteinfo>
"""
PERSON = "{{Infobox musical artist|name=x}}\n"
SONG = "The song [[Aqualung Song]] was written by [[Ian Player]]."
PAGES = (
    (
        0,
        "Ian Player",
        PERSON + "'''Ian Player''' sang [[Aqualung Song]] with [[Bob Drummer]] in [[Rome Town]]. "
        "He plays the flute. He plays the flute. He was born in [[Nowhere]].\n\n[[Category:Flute players]]",
    ),
    (
        0,
        "Bob Drummer",
        PERSON + f"{SONG} It is loud.\n\n[[Category:Drummers]] [[Category:Music stubs]]",
    ),
    (
        0,
        "Aqualung Song",
        "{{Infobox song|name=x}}\nA song by [[Ian Player]].\n\n[[Category:Old songs]]",
    ),
    (
        0,
        "Rome Town",
        "{{Infobox settlement|name=x}}\nA town in which [[Ian Player]] lived.\n\n[[Category:Towns]]",
    ),
    (0, "Loop page", f"This is far below. {SONG}\n\n[[Category:Below]]"),
    (0, "Rock (disambiguation)", "Rock is music. [[Ian Player]] plays it.\n\n[[Category:Music]]"),
    (0, "Nothing", "No category here."),
    (14, "Category:Music", "[[Category:Contents]]"),
    (14, "Category:Musicians", "[[Category:Music]]"),
    (14, "Category:Flute players", "[[Category:Musicians]] [[Category:Old songs]]"),
    (14, "Category:Drummers", "[[Category:Musicians]]"),
    (14, "Category:Music stubs", "[[Category:Music]]"),
    (14, "Category:Songs", "[[Category:Music]] [[Category:Below]]"),  # a circle
    (14, "Category:Below", "[[Category:Songs]]"),
    (14, "Category:Old songs", "#REDIRECT [[Category:Songs]]"),
    (14, "Category:Towns", "[[Category:Contents]]"),
)


def write_dump(path, pages=PAGES):
    """The wiki as a dump."""
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        for number, (space, title, text) in enumerate(pages, start=1):
            target = text.partition("[[")[2].partition("]]")[0] if text[0] == "#" else ""
            redirect = f'<redirect title="{target}" />' if target else ""
            file.write(
                f"<page><title>{title}</title><ns>{space}</ns><id>{number}</id>{redirect}<revision>"
                f"<id>{number + 100}</id><timestamp>2020-01-01T00:00:00Z</timestamp>"
                f"<text>{text}</text></revision></page>\n"
            )
        file.write("</mediawiki>\n")
    return path


def write_sentences(folder, count=120):
    """A domain corpus of made-up sentences in two parts; every third is of the entity level."""
    draw = np.random.default_rng(0)
    words = [f"{a}{b}" for a in "lmnr" for b in ("ada", "ova", "iti", "usu")]
    rows = [
        {
            "text": " ".join(draw.choice(words, 8)) + f" {number} .",
            "tokens": 10,
            "entities": 2,
            "entity": number % 3 == 0,
            "task": number % 6 == 0,
            "page_id": number // 10,
            "title": "T",
            "revision_id": 1,
            "sentence": number % 10,
            "start": 0,
            "end": 1,
            "category": "C",
            "root": "C",
            "depth": 0,
        }
        for number in range(count)
    ]
    (folder / "sentences").mkdir(parents=True)
    for part, half in enumerate((rows[: count // 2], rows[count // 2 :])):
        table = pa.Table.from_pylist(half, schema=COLUMNS)
        pq.write_table(table, folder / "sentences" / f"part-{part:05d}.parquet")
    return folder
