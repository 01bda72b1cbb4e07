"""Judgements of people about mentions: rates with intervals, agreement of two judges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from nerbert.errors import UserError
from nerbert.storage.places import Place

QUESTIONS = {
    "page_class": "class right for the linked page",
    "in_context": "class right in the sentence",
    "boundary": "boundary right",
    "is_name": "is a name",
}
"""Questions about a mention, each with the answer yes, no or none."""

MISSED = "missed"
"""Key of the number of names in the sentence that are not marked."""

_HEADS = {
    "page_class": "class of page",
    "in_context": "in sentence",
    "boundary": "boundary",
    "is_name": "is a name",
}
"""Short names of the questions, for tables."""

_MOST_CATEGORIES = 8
_MOST_NAMES = 1_000_000  # of a sentence

Judgement = Mapping[str, Any]


def read_judgements(path: Place, fingerprint: str) -> list[Judgement]:
    """Reads the judgements that the page of an audit made.

    Args:
        path: path of the file.
        fingerprint: digest of the corpus that is audited.

    Raises:
        UserError: the file cannot be read, holds no judgements, or those of another corpus.
    """
    try:
        content = path.read_json()
        rows = content["mentions"]
        corpus_fingerprint = content.get("fingerprint")
        for row in rows:
            _check(row)
        if twice := [key for key, count in Counter(map(_key, rows)).items() if count > 1]:
            raise ValueError(f"mention {twice[0][1]} of {twice[0][0]} is there twice")
    except OSError as error:
        raise UserError(f"{error.strerror}; check the path", path) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"no judgements ({type(error).__name__}: {error}); give the file that the page of "
            "nerbert audit downloaded",
            path,
        ) from None
    if corpus_fingerprint != fingerprint:
        raise UserError(
            f"judgements of another corpus ({content.get('corpus')}), or of an earlier run of it; "
            "name that corpus, or judge a sample of this one",
            path,
        )
    return list(rows)


def _check(row: Any) -> None:
    """Checks a judgement; a ValueError says what is wrong."""
    if not _are_texts(row["id"], row["category"], row["source"]):
        raise ValueError("an id, category or source is no text")
    name = row["id"]
    if not _is_count(row.get("number", 0)):
        raise ValueError(f"the number of {name} is not 0 or more")
    if not all(row.get(question) in (True, False, None) for question in QUESTIONS):
        raise ValueError(f"an answer of {name} is neither true, false nor null")
    if not _is_count(row.get(MISSED) or 0):
        raise ValueError(f"the missed names of {name} are not 0 or more")
    if not isinstance(row.get("others", []), list):
        raise ValueError(f"the other mentions of {name} are no list")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_NAMES


def _are_texts(*values: Any) -> bool:
    """Whether all are texts, without halves of characters."""
    return all(isinstance(v, str) and not re.search("[\ud800-\udfff]", v) for v in values)


def wilson(right: int, n_judged: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a rate; (0, 1) without judgements.

    Source: Wilson 1927, Probable inference; it holds for small numbers and rates near 1.

    >>> [round(bound, 3) for bound in wilson(95, 100)]
    [0.888, 0.978]
    """
    if not n_judged:
        return 0.0, 1.0
    rate, square = right / n_judged, z * z / n_judged
    middle = rate + square / 2
    half = z * sqrt(rate * (1 - rate) / n_judged + square / (4 * n_judged))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def table(rows: Sequence[Judgement]) -> str:
    """The rates of all judgements in per cent, by source and by category, as a Markdown table.

    Of a rate that not all mentions of the line have an answer for, it says how many have one.
    """
    heads = ["right, 95 % interval", "mentions", *_HEADS.values()]
    lines = [heads, ["---"] * len(heads), _line("all", rows)]
    n_left_out = 0
    for group in ("source", "category"):
        counts = Counter(str(row[group]) for row in rows)
        if len(counts) > 1:
            ordered = sorted(counts, key=lambda name: (-counts[name], name))
            n_left_out, ordered = len(ordered[_MOST_CATEGORIES:]), ordered[:_MOST_CATEGORIES]
            lines += [
                _line(f"{group} {name}", [row for row in rows if str(row[group]) == name])
                for name in ordered
            ]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    if n_left_out:
        text += f"\n\nand {n_left_out:,} categories with fewer mentions"
    about_misses = [row for row in rows if row.get(MISSED) is not None]
    if not about_misses:
        return text
    return f"{text}\n\n{_marked(about_misses)}"


def _line(name: str, rows: Sequence[Judgement]) -> list[str]:
    answers = [[row.get(question) for row in rows] for question in QUESTIONS]
    cells = []
    for given_answers in answers:
        count = sum(answer is not None for answer in given_answers)
        low, high = wilson(given_answers.count(True), count)
        of = "" if count == len(rows) else f" of {count}"
        share = 100 * given_answers.count(True) / max(count, 1)
        cells.append(f"{share:.1f}{of} ({100 * low:.0f}-{100 * high:.0f})" if count else "-")
    return [name, str(len(rows)), *cells]


def _rate(right: int, n_judged: int) -> str:
    if not n_judged:
        return "-"
    low, high = wilson(right, n_judged)
    return f"{right} of {n_judged}, {right / n_judged:.1%} ({low:.0%} to {high:.0%})"


def _marked(rows: Sequence[Judgement]) -> str:
    """The share of the names of the judged sentences that are marked; each sentence counts once."""
    sentences = {str(row["id"]): row for row in rows}
    marked = sum(1 + len(row.get("others", ())) for row in sentences.values())
    missed = sum(int(row[MISSED]) for row in sentences.values())
    return f"marked names: {_rate(marked, marked + missed)}, in {len(sentences)} sentences"


def agreement(first: Sequence[Judgement], second: Sequence[Judgement]) -> str:
    """How often two judges say the same, as a Markdown table, with Cohen's kappa (1960).

    Raises:
        UserError: they have judged no mention both.
    """
    lines = [["", "both judged", "agree", "kappa"], ["---"] * 4]
    for question, question_text in QUESTIONS.items():
        pairs = [
            (row_a[question], row_b[question])
            for row_a, row_b in _pairs(first, second)
            if row_a.get(question) is not None and row_b.get(question) is not None
        ]
        n_equal = sum(row_a == row_b for row_a, row_b in pairs)
        lines.append([question_text, str(len(pairs)), _rate(n_equal, len(pairs)), _kappa(pairs)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _kappa(pairs: Sequence[tuple[bool, bool]]) -> str:
    """Agreement beyond chance; "-" if chance alone agrees always."""
    count = max(len(pairs), 1)
    observed = sum(answer_a == answer_b for answer_a, answer_b in pairs) / count
    yes = [sum(answers) / count for answers in zip(*pairs, strict=True)] or [1.0, 1.0]
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    return f"{(observed - chance) / (1 - chance):.2f}" if chance < 1 else "-"


def _pairs(
    first: Sequence[Judgement], second: Sequence[Judgement]
) -> list[tuple[Judgement, Judgement]]:
    second_by_key = {_key(row): row for row in second}
    pairs = [(row, second_by_key[_key(row)]) for row in first if _key(row) in second_by_key]
    if not pairs:
        raise UserError("--judged: the judges have no mention in common; give the same sample")
    return pairs


def _key(row: Judgement) -> tuple[Any, Any]:
    return row.get("id"), row.get("number")


def conflicts(first: Sequence[Judgement], second: Sequence[Judgement]) -> list[dict[str, Any]]:
    """The mentions about which two judges differ, without answers, for a third."""
    asked = {*QUESTIONS, MISSED}
    return [
        {name: value for name, value in row_a.items() if name not in asked}
        for row_a, row_b in _pairs(first, second)
        if any(_differ(row_a, row_b, question) for question in QUESTIONS)
    ]


def _differ(row_a: Judgement, row_b: Judgement, question: str) -> bool:
    answers = {row_a.get(question), row_b.get(question)} - {None}
    return len(answers) > 1


def resolved(
    first: Sequence[Judgement], second: Sequence[Judgement], third: Sequence[Judgement]
) -> list[Judgement]:
    """The judgements of two, with those of a third where they differ."""
    last = {_key(row): row for row in third}
    return [
        {
            **row_a,
            **{
                question: last.get(_key(row_a), {}).get(question)
                for question in QUESTIONS
                if _differ(row_a, row_b, question)
            },
        }
        for row_a, row_b in _pairs(first, second)
    ]
