"""Maps names of entity types, and changes the sentences of a set accordingly."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from finetune.settings import DataOptions
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from ontology.categories import ENTITY
from ontology.classes import ClassTree, spaced
from ontology.sources.nouns import words_of_languages

UNIFIED = "unified"
"""Name of the shipped label map."""

NONE = "none"
"""Name of the label map that changes nothing."""

OUTSIDE = "O"
"""New name of a type whose mentions are dropped."""


def _key(name: str) -> str:
    return name.casefold().replace("_", "-")


class LabelMap:
    """New names of entity types. Other types keep their names, or are converted to lower case."""

    def __init__(self, names: Mapping[str, str], folds: bool = False) -> None:
        """Takes the table.

        Args:
            names: old name -> new name; case, and `-` or `_`, are ignored in old names.
            folds: whether names that are not in the table are converted to lower case.
        """
        self._names = {_key(old): new for old, new in names.items()}
        self._folds = folds

    @classmethod
    def load(cls, name: str) -> LabelMap:
        """Loads `none`, `unified`, or a TOML file with lines `new = ["old", ...]`.

        The new name "O" drops the mentions of a type.

        Raises:
            UserError: the file cannot be read, has other values, or gives a type two new names.
        """
        if name == NONE:
            return cls({})
        try:
            path = files("finetune.data") / "labels.toml" if name == UNIFIED else Path(name)
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(
                f"--label-map {name}: {error}; use none, unified, or a TOML file with lines "
                'new = ["old", ...]'
            ) from error
        names: dict[str, str] = {}
        for new, olds in table.items():
            if not isinstance(olds, list) or not all(isinstance(old, str) for old in olds):
                raise UserError(f'--label-map {name}, {new}: write {new} = ["old", ...]')
            for old in map(_key, olds):
                if names.setdefault(old, new) != new:
                    raise UserError(f"--label-map {name}: {old} is both {names[old]} and {new}")
        return cls(names, folds=name == UNIFIED)

    def type(self, name: str) -> str:
        """New name of a type."""
        return self._names.get(_key(name), name.casefold() if self._folds else name)

    def tags(self, tags: Sequence[str]) -> list[str]:
        """IOB2 tags with the new names of their types."""
        return renamed(tags, self.type)


def renamed(tags: Sequence[str], new_name: Callable[[str], str]) -> list[str]:
    """IOB2 tags with new names of their types; mentions whose new name is "O" are dropped."""
    result = []
    for tag in tags:
        prefix, _, name = tag.partition("-")
        new = new_name(name) if name else OUTSIDE
        result.append(OUTSIDE if new == OUTSIDE else f"{prefix}-{new}")
    return result


@dataclass(frozen=True)
class View:
    """How the sentences of sets are changed.

    Attributes:
        label_map: name or file of a `LabelMap`.
        lowercase: whether words are converted to lower case.
    """

    label_map: str = NONE
    lowercase: bool = False

    @classmethod
    def of_options(cls, options: DataOptions, are_several: bool) -> View:
        """The view by the options of a command.

        Args:
            options: options of the command.
            are_several: whether sets with different names of types are used together.

        Raises:
            UserError: the label map cannot be read, or contradicts --keep-types.
        """
        if options.keep_types and options.label_map not in (None, NONE):
            raise UserError(f"--keep-types: leave it out, or --label-map {options.label_map}")
        label_map = options.label_map or (
            UNIFIED if are_several and not options.keep_types else NONE
        )
        LabelMap.load(label_map)
        return cls(label_map, options.lowercase)

    @property
    def text(self) -> str:
        """Content of a user's label map; of a shipped one, its name."""
        path = Path(self.label_map)
        return path.read_text(encoding="utf-8") if path.is_file() else self.label_map

    def of(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """Changes sentences."""
        names = LabelMap.load(self.label_map)
        return [
            Sentence(
                [word.lower() for word in row.tokens] if self.lowercase else row.tokens,
                names.tags(row.tags),
            )
            for row in sentences
        ]


def same_name(name: str, types: Sequence[str]) -> list[str]:
    """The type with exactly this name, if there is one."""
    return [name] if name in types else []


def nearest(name: str, types: Sequence[str]) -> list[str]:
    """Types of a pre-trained head that are nearest to a type of a data set.

    The type with this name, in any case; else its nearest ancestor in the DBpedia ontology; else
    all classes below it; else ENTITY; else none.

    >>> nearest("politician", ["Person", "City", "Mountain"])
    ['Person']
    >>> nearest("location", ["Person", "City", "Mountain"])
    ['City', 'Mountain']
    """
    unified, tree = LabelMap.load(UNIFIED), ClassTree.shipped()
    by_key = {_key(unified.type(kind)): kind for kind in types}
    class_name = tree.known_name(name) or next(
        (kind for kind in tree.names if unified.type(kind) == unified.type(name)), None
    )
    above = tree.ancestors(class_name) if class_name else []
    for candidate in (name, *above):
        if (same_key := by_key.get(_key(unified.type(candidate)))) is not None:
            return [same_key]
    below = [
        kind for kind in types if class_name and kind in tree and class_name in tree.ancestors(kind)
    ]
    return below or [kind for kind in types if kind == ENTITY]


def map_to_target_types(types: Iterable[str], names: LabelMap) -> Callable[[str], str]:
    """Maps predicted types to types of a target set, for the regime zero-shot.

    A type is mapped to itself, by its new name; else, if it is a class of the DBpedia ontology, to
    its nearest ancestor among the target types (a Politician is a person if there is no type
    politician); else to "O".

    Args:
        types: types of the target set, by their new names.
        names: new names of predicted types.

    Returns:
        A function from a predicted type to a target type.
    """
    target_types = {_key(name): name for name in types}
    tree = ClassTree.shipped()

    def find(name: str) -> str:
        above = tree.ancestors(name) if name in tree else []
        for candidate in (name, *above):
            for spelling in (_key(names.type(candidate)), _key(candidate)):
                if spelling in target_types:
                    return target_types[spelling]
        return OUTSIDE

    return find


_OTHER = "other"  # unified name of the types of all else
_WORDS = {
    "astronomicalobject": "astronomical object",
    "musicalinstrument": "musical instrument",
    "programlang": "programming language",
}
"""Names of types of CrossNER that are no classes of the ontology -> in words."""
_CLASSES = {"location": "Place", "organization": "Organisation"}
"""Types in words that the ontology has by another name -> their classes."""


def in_words(types: Iterable[str]) -> dict[str, str]:
    """Names of types -> in words, for an open head, no two alike; without types such as misc."""
    words: dict[str, str] = {}
    for name in types:
        phrase = type_words(name)
        if phrase is not None:
            words[name] = spaced(name) if phrase in words.values() else phrase
    return words


def type_words(name: str) -> str | None:
    """The name of a type of a set in words, for an open head; None for types of all else.

    >>> type_words("politicalparty"), type_words("PER"), type_words("misc")
    ('political party', 'person', None)
    """
    cls = ClassTree.shipped().known_name(name)
    if cls is not None:
        return spaced(cls)
    unified = LabelMap.load(UNIFIED).type(name)
    return None if unified == _OTHER else _WORDS.get(name) or spaced(unified)


def in_words_of(language: str, words: Mapping[str, str]) -> dict[str, str]:
    """Names of types -> in words of a language, by the labels of the ontology; empty if one lacks.

    >>> in_words_of("es", {"PER": "person", "LOC": "location"})
    {'PER': 'persona', 'LOC': 'lugar'}

    Args:
        language: code of a wiki.
        words: what `in_words` gives.
    """
    labels, tree = words_of_languages("labels.tsv").get(language, {}), ClassTree.shipped()
    classes = {
        name: tree.known_name(name) or tree.known_name(phrase) or _CLASSES.get(phrase)
        for name, phrase in words.items()
    }
    names = {name: labels[cls][0] for name, cls in classes.items() if cls in labels}
    return names if len({*names.values()}) == len(words) else {}
