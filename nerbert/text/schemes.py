"""Tagging schemes: recognises the scheme of tags, and converts tags to strict IOB2."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nerbert.text.tags import OUTSIDE, LabelSet

_BEGIN = {"S": "B", "U": "B", "E": "I", "L": "I", "M": "I"}
"""Prefixes of IOBES, BILOU and BMES -> prefixes of IOB2."""

_LAST = "ESLU"
_PREFIXES = "BIESLUM"
_PREFIXED = re.compile(rf"([{_PREFIXES}])[-_](.*\S)", re.IGNORECASE)
_SUFFIXED = re.compile(rf"(.*\S)[-_]([{_PREFIXES}])")


def to_iob2(tags: Sequence[str]) -> list[str]:
    """Converts tags of any scheme to strict IOB2, with the mentions that conlleval finds.

    A tag that does not continue a mention of its type begins one. This converts IOB1, and IOB2 with
    stray I- tags. Prefixes of IOBES, BILOU, BMES are translated; E-, S-, L- and U- end a mention.

    Source: conlleval.pl (Tjong Kim Sang and Buchholz 2000), start and end of a chunk.

    >>> to_iob2(["I-LOC", "I-LOC", "B-LOC", "O", "S-PER", "B-PER", "M-PER", "E-PER"])
    ['B-LOC', 'I-LOC', 'B-LOC', 'O', 'B-PER', 'B-PER', 'I-PER', 'I-PER']
    """
    result: list[str] = []
    open_type = ""
    for tag in tags:
        prefix, _, name = tag.partition("-")
        if not name:
            result.append("O")
        else:
            continues = _BEGIN.get(prefix, prefix) == "I" and name == open_type
            result.append(f"{'I' if continues else 'B'}-{name}")
        open_type = "" if prefix in _LAST else name
    return result


@dataclass(frozen=True)
class Scheme:
    """The tagging scheme of a set.

    Attributes:
        name: IO, IOB1, IOB2, IOBES, BILOU or BMES.
        opened: number of mentions that begin with I-, which is the rule in IO and IOB1 and an error
            in IOB2; in IOBES, number of those that do not begin with B- or S-.
    """

    name: str
    opened: int

    @property
    def strict(self) -> bool:
        """Whether the tags are already strict IOB2."""
        return self.name == "IOB2" and not self.opened

    def __str__(self) -> str:
        """The conversions to IOB2, as a part of a log line."""
        if self.name != "IOB2":
            return f"{self.name} converted to IOB2"
        return f"{self.opened} mentions begin with I-, changed to B-"


def scheme_of(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Recognises the scheme of tagged sentences whose tags have prefixes.

    In IOB1, B- only separates two adjacent mentions of one type. A file with other B- tags is IOB2.
    """
    opened = elsewhere = 0
    prefixes = set()
    for tags in sentences:
        before = "O"
        for tag, iob2 in zip(tags, to_iob2(tags), strict=True):
            prefix, _, name = tag.partition("-")
            if name:
                prefixes.add(prefix)
            opened += iob2[0] == "B" and prefix in "IELM"
            elsewhere += prefix == "B" and before.partition("-")[2] != name
            before = tag
    for name, marks in (("BMES", "M"), ("BILOU", "LU"), ("IOBES", "ES")):
        if not prefixes.isdisjoint(marks):
            return Scheme(name, opened)
    return Scheme("IOB1" if opened and not elsewhere else "IOB2", opened)


class TagError(ValueError):
    """A tag of no scheme.

    Attributes:
        tag: the tag.
        sentence: number of the first sentence that has it, from 0.
        token: number of its token in the sentence, from 0.
    """

    def __init__(self, tag: str, reason: str) -> None:
        super().__init__(f"tag {tag!r}: {reason}")
        self.tag = tag
        self.sentence = self.token = 0


def with_prefixes(tags: Iterable[str]) -> tuple[dict[str, str], bool]:
    """The tags of a set in the form `B-type`, each by the form that the set has.

    All tags but O (or o) of a set have one form: `B-PER` or `B_PER` with the prefixes of any scheme
    in upper or lower case; `PER-B`; or types without prefix, which may have hyphens (Few-NERD's
    `person-artist`). The last ones become `I-type`: neighbours of one type are one mention.

    Args:
        tags: all tags of a set or of a model, in any order.

    Returns:
        Tag -> the tag with its prefix; and whether the set has prefixes.

    Raises:
        TagError: a tag has another form than the others, or no type.
    """
    all_tags = list(dict.fromkeys(tags))
    typed = [tag for tag in all_tags if tag not in (OUTSIDE, "o")]
    plain = dict.fromkeys(all_tags, OUTSIDE)
    prefixed = {tag: match for tag in typed if (match := _PREFIXED.fullmatch(tag))}
    suffixed = {tag: match for tag in typed if (match := _SUFFIXED.fullmatch(tag))}
    if len(prefixed) == len(typed):
        return plain | {tag: f"{m[1].upper()}-{m[2]}" for tag, m in prefixed.items()}, True
    if len(suffixed) == len(typed) and any(m[2] == "B" for m in suffixed.values()):
        return plain | {tag: f"{m[2]}-{m[1]}" for tag, m in suffixed.items()}, True
    example = next(iter(prefixed), "")
    for tag in typed:
        if tag.strip("-_").upper() in (*_PREFIXES, "") or not any(map(str.isalpha, tag)):
            raise TagError(tag, "it has no type, such as B-PER")
        if example and tag not in prefixed:
            raise TagError(tag, f"it has no prefix, but {example!r} has one; write B-{tag}, or O")
    if len(typed) == len(all_tags):
        raise TagError(typed[0], "no prefix such as B-, and no tag is O; is it a column of tags?")
    return plain | {tag: f"I-{tag}" for tag in typed}, False


def read_tags(
    sentences: Sequence[Sequence[str]], names: Iterable[str] = ()
) -> tuple[list[list[str]], Scheme]:
    """Reads the tags of a set in any scheme, as strict IOB2.

    Args:
        sentences: the tags of each sentence.
        names: tags that the set may have, too.

    Raises:
        TagError: a tag is of another form than the others, or of none; see `with_prefixes`.
    """
    counts = Counter(tag for tags in sentences for tag in tags)
    try:
        forms, has_prefixes = with_prefixes([*counts, *names])
    except TagError as error:
        places = ((s, t) for s, tags in enumerate(sentences) for t, tag in enumerate(tags))
        error.sentence, error.token = next(
            ((s, t) for s, t in places if sentences[s][t] == error.tag), (0, 0)
        )
        raise
    prefixed = [[forms[tag] for tag in tags] for tags in sentences]
    scheme = scheme_of(prefixed)
    if not has_prefixes:
        scheme = Scheme("IO", scheme.opened)
    return [to_iob2(tags) for tags in prefixed], scheme


MARK = "IOB2"
"""Value of `tagging_scheme` in the configuration of our taggers, which learnt strict IOB2."""


@dataclass(frozen=True)
class ModelTags:
    """The labels of a tagger as tags, O first.

    Attributes:
        names: tags with prefixes.
        order: label id of each in the model.
        scheme: name of the scheme, as far as labels tell it.
        is_strict: whether I- without its B- is outside, as in our taggers. Others may have learnt
            IOB1 by the same labels, so their mentions are those that conlleval finds.
    """

    names: list[str]
    order: list[int]
    scheme: str
    is_strict: bool

    @classmethod
    def of(cls, labels: Sequence[str], mark: str | None) -> ModelTags:
        """The tags of a tagger.

        Args:
            labels: its labels, by label id.
            mark: `tagging_scheme` of its configuration.

        Raises:
            TagError: the labels are no tags.
        """
        forms, has_prefixes = with_prefixes(labels)
        order = sorted(range(len(labels)), key=lambda index: forms[labels[index]] != OUTSIDE)
        names = [forms[labels[index]] for index in order]
        if names[:1] != [OUTSIDE] or len(set(names)) < len(names):
            raise TagError(names[0], "no label is O, or two labels are alike")
        types = tuple(dict.fromkeys(name[2:] for name in names[1:]))
        is_ours = mark == MARK and names == LabelSet(types).tags
        scheme = scheme_of([[name] for name in names]).name if has_prefixes else "IO"
        return cls(names, order, scheme, is_ours)

    def decode(self, tags: Sequence[str]) -> list[str]:
        """The tags of the words of a sentence in strict IOB2."""
        return list(tags) if self.is_strict else to_iob2(tags)
