"""Posts of social media, which an open head learns beside the sentences of a corpus.

No article has names of users, nor what people write to each other. So names of persons and
organisations are behind "@", with sentences of the corpus or with remarks ("thank you!").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from datasets import Dataset

from nerbert.text.columns import Sentence
from nerbert.text.tokens import tokenize
from ontology.classes import NO_KIND, ClassTree
from pretrain.tagging.titles import MOST_LISTS, Names, as_rows, weights_of

_SHARE = 8
"""One sentence in so many is in a post, too; at most `MOST_LISTS`."""
_USERS = (1, 1, 1, 1, 1, 1, 1, 2, 2, 3)
"""Numbers of users of a post, one of which is drawn."""
_MARKS = ("", "", ".", "!", "!", "!!", "...", ",", "?", ":)")
"""What stands behind a remark."""
_NO_LETTERS = re.compile(r"\W")


def posts(
    rows: Dataset, names: Names, ids: Mapping[str, int], tree: ClassTree, languages: Sequence[str]
) -> Dataset:
    """Some sentences, each with names of users, and as many remarks; the same ones in every run.

    Users are people and organisations.

    Args:
        rows: sentences of the corpora.
        names: names of each class.
        ids: label id of each tag.
        tree: the classes.
        languages: languages of the corpora; without remarks in one of them all are sentences.
    """
    of_users = {name: names[name] for name in names if NO_KIND in tree.ancestors(name)}
    if not of_users:
        return rows.select([])
    writer = _Writer(of_users, [remark for code in languages for remark in _remarks(code)])
    row_numbers = writer.draw.permutation(len(rows))[: min(len(rows) // _SHARE, MOST_LISTS)]
    starts, ends, has_sentence = zip(*(writer.post() for _ in row_numbers), strict=True)
    start_rows, end_rows = (as_rows(side, ids, rows, "post")[:] for side in (starts, ends))
    sentences = rows.select(row_numbers)[:]
    columns = {
        column: [
            start if column == "id" else [*start, *(sentence if is_whole else ()), *end]
            for start, sentence, end, is_whole in zip(
                *(start_rows[column], sentences[column], end_rows[column], has_sentence),
                strict=True,
            )
        ]
        for column in rows.features
    }
    return Dataset.from_dict(columns, rows.features)


class _Writer:
    """Draws what stands before and behind the sentences of posts."""

    def __init__(self, names: Names, remarks: Sequence[Sequence[str]]) -> None:
        """Takes the names of users by class, and the tokens of the remarks."""
        self.draw = np.random.default_rng(1)
        self._names, self._remarks = names, remarks
        self._classes, self._weights = list(names), weights_of(names)

    def post(self) -> tuple[Sentence, Sentence, bool]:
        """What stands before a sentence, what behind it, and whether there is a sentence."""
        has_sentence = not self._remarks or self._one_in(2)
        users = self._users()
        before, behind = ([], users) if self._one_in(4) else (users, [])
        if before and self._one_in(8):
            before = [("RT", "O"), *users, (":", "O")]
        if not has_sentence:
            for _ in range(1 + self._one_in(3)):
                before += self._remark()
        if self._one_in(6):
            behind += [(f"http://t.co/{self.draw.integers(1 << 32):x}", "O")]
        return _sentence(before), _sentence(behind), has_sentence

    def _one_in(self, number: int) -> bool:
        return not self.draw.integers(number)

    def _users(self) -> list[tuple[str, str]]:
        """Tokens and tags of the names of some users."""
        tokens = []
        number = _USERS[int(self.draw.integers(len(_USERS)))]
        for class_number in self.draw.choice(len(self._classes), size=number, p=self._weights):
            name = self._classes[class_number]
            words = self._names[name][int(self.draw.integers(len(self._names[name])))]
            user = _as_user(words, int(self.draw.integers(4)))
            if self._one_in(5):
                user += str(self.draw.integers(1, 100))
            tokens += [("@", "O"), (user, f"B-{name}")]
        return tokens

    def _remark(self) -> list[tuple[str, str]]:
        """Tokens and tags of a remark and the mark behind it."""
        words = list(self._remarks[int(self.draw.integers(len(self._remarks)))])
        form = self.draw.integers(10)
        if form == 0:
            words = [word.upper() for word in words]
        elif form < 5:
            words[0] = words[0][:1].upper() + words[0][1:]
        mark = _MARKS[int(self.draw.integers(len(_MARKS)))]
        return [(word, "O") for word in (*words, mark) if word]


def _sentence(tokens: Sequence[tuple[str, str]]) -> Sentence:
    return Sentence([token for token, _ in tokens], [tag for _, tag in tokens])


@cache
def _remarks(language: str) -> list[list[str]]:
    """The tokens of the remarks in a language."""
    table = (files("pretrain.tagging") / "data" / "remarks.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines() if line[0] != "#")
    texts = [text for code, cell in rows if code == language for text in cell.split("|")]
    return [[text[start:end] for start, end in tokenize(text, language)] for text in texts]


def _as_user(words: Sequence[str], form: int) -> str:
    """The name of a user: AngelaMerkel, angelamerkel, Angela_Merkel or amerkel, by its form."""
    if form == 3 and len(words) > 1:
        words = [words[0][0], *words[1:]]
    name = _NO_LETTERS.sub("", ("_" if form == 2 else "").join(words)) or words[0]
    return name.lower() if form in (1, 3) else name
