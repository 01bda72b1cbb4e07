"""Writes a dump of pages that have a short description and no text, from a JSON file of Wikidata.

    python -m benchmarks.description_pages --entities FILE --dumps D... --output enwiki-x.xml

A small dump links many pages that it does not have, whose descriptions a whole one would bring.
The file has for each entity its `wikipedia` address and `description`. Pages of the dumps are left
out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from nerbert.storage.places import Place

_TITLE = re.compile(rb"<title>([^<]*)</title>")
_FIRST_ID = 985_000_001
_PAGE = (
    "<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>{number}</id>"
    "<timestamp>2019-07-01T00:00:00Z</timestamp><model>wikitext</model>"
    "<format>text/x-wiki</format><text>{{{{Short description|{text}}}}}</text></revision></page>\n"
)


def titles_of(path: str) -> Iterator[str]:
    """The titles of a dump, as they are written there."""
    with Place(path).open_decompressed() as file:
        for line in file:
            yield from (title.decode("utf-8", "replace") for title in _TITLE.findall(line))


def pages(entities: Path, dumps: list[str]) -> Iterator[str]:
    """The pages of entities that have a description and are not in the dumps."""
    there = {title for path in dumps for title in titles_of(path)}
    with Place(entities).open_decompressed() as file:
        facts: dict[str, Any] = json.load(file)
    number = _FIRST_ID
    for each in facts.values():
        address, text = each.get("wikipedia"), each.get("description")
        title = escape(unquote((address or "").rpartition("/wiki/")[2]).replace("_", " "))
        if title and text and title not in there:
            yield _PAGE.format(title=title, number=number, text=escape(text))
            number += 1


def main() -> None:
    """Writes the dump."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=Path, required=True)
    parser.add_argument("--dumps", nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    flags = parser.parse_args()
    with flags.output.open("w", encoding="utf-8") as file:
        file.write('<mediawiki xml:lang="en">\n')
        file.writelines(pages(flags.entities, flags.dumps))
        file.write("</mediawiki>\n")


if __name__ == "__main__":
    main()
