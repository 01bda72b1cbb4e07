"""The page and the Wikidata item of a mention, by its name, from a run of `nerbert corpus`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from nerbert.errors import UserError
from nerbert.storage.folders import STATE
from nerbert.storage.places import Place
from nerbert.storage.records import listed
from ontology.dictionary import Dictionary
from ontology.entity_table import EntityTable


@dataclass(frozen=True)
class Link:
    """The page that a name leads to.

    Attributes:
        page: title of the page.
        wikidata: its item, such as "Q60"; None if the run had no --page-props.
    """

    page: str
    wikidata: str | None


class Linker:
    """Knows the names of a run: those that its links use for one page, and titles of pages.

    The words around a name are not looked at. A name whose links mostly lead to other pages than
    the one of this title leads nowhere.

    Attributes:
        columns: what a link says of a name.
    """

    columns = tuple(field.name for field in fields(Link))

    def __init__(self, entities: EntityTable, dictionary: Dictionary | None) -> None:
        """Takes the entity table of a run, and its dictionary if it has one."""
        self._entities, self._dictionary = entities, dictionary

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Linker:
        """Opens the output folder of `nerbert corpus`.

        Raises:
            UserError: it is none, its stages are not finished, or files are missing or damaged.
        """
        table, examples = Path(folder, "entities"), Path(folder, "examples")
        if not (table / STATE).is_file():
            raise UserError("give an output folder of nerbert corpus", os.fspath(folder))
        listed(Place(table / STATE))
        words = examples / "dictionary.arrow"
        if words.is_file():
            listed(Place(examples / STATE))
        try:
            entities = EntityTable.open(table)
            entities.check()
            dictionary = Dictionary.open(Place(words)) if words.is_file() else None
        except (ValueError, LookupError, TypeError, OSError, EOFError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())[:100]
            raise UserError(f"damaged ({reason}); make it again", os.fspath(folder)) from None
        return cls(entities, dictionary)

    def links(self, names: Sequence[str]) -> list[Link | None]:
        """The page of each name; None if it is unknown or doubtful."""
        titles = [name[:1].upper() + name[1:] for name in names]
        entities = self._entities.lookup(titles).copy()
        if self._dictionary is not None and len(self._dictionary):
            for number, entity, target, is_known in self._dictionary.lookup(names):
                if entity < 0 or is_known:  # others are names on some pages only
                    entities[number] = entity
                    titles[number] = target or titles[number]
        items = self._entities.items_of(entities.astype(np.int32))
        return [
            Link(title, item) if entity >= 0 else None
            for title, item, entity in zip(titles, items, entities.tolist(), strict=True)
        ]
