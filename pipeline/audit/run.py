"""Makes the page of an audit, or prints the rates of its judgements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from math import sqrt
from pathlib import Path
from typing import Any

from nerbert.errors import UserError
from nerbert.reports import filled
from nerbert.storage import files
from nerbert.text.corpus import load_corpus, report_of
from pipeline.audit.sample import sample_mentions
from pipeline.audit.settings import AuditSettings

_MARK = b'<meta name="generator" content="nerbert audit">'
"""A line of the page, by which it is known."""


def audit(settings: AuditSettings) -> str:
    """Makes the page, or the table of rates if there are judgements; returns a text for users.

    Raises:
        UserError: the corpus or the judgements cannot be read, or no mention is of this kind.
    """
    corpus = load_corpus(settings.corpus)
    if settings.judged is not None:
        return table(read_judgements(settings.judged))
    mentions = sample_mentions(corpus, settings.sample, settings.seed, settings.which)
    if not mentions:
        raise UserError(f"{corpus.folder}: it has no mention of the kind --which {settings.which}")
    data = {
        "corpus": Path(settings.corpus).resolve().name,
        "fingerprint": corpus.fingerprint,
        "seed": settings.seed,
        "which": settings.which,
        "language": report_of(corpus.folder).get("language", "en"),
        "questions": QUESTIONS,
        "mentions": [asdict(mention) for mention in mentions],
    }
    # "</script>" in a text would end the script.
    script = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    page = filled("pipeline.audit", "page.html", title=escape(str(data["corpus"])), data=script)
    _check_ours(settings.output)
    files.write_bytes(settings.output, page.encode())
    return (
        f"{len(mentions)} mentions: open {settings.output} in a browser, judge them, download the "
        f"judgements, and run nerbert audit {settings.corpus} --judged FILE"
    )


def _check_ours(path: str) -> None:
    """Checks that a file may be replaced.

    Raises:
        UserError: no audit made it.
    """
    if files.exists(path) and _MARK not in files.read_bytes(path)[:1024]:
        raise UserError("is there already, and no audit made it; choose another --output", path)


QUESTIONS = {
    "page_class": "class right for the linked page",
    "in_context": "class right in the sentence",
    "boundary": "boundary right",
    "is_name": "is a name",
}
"""Questions about a mention, each with the answer yes, no or none."""

MISSED = "missed"
"""Key of the number of names in the sentence that are not marked."""

_MOST_CATEGORIES = 20

Judgement = Mapping[str, Any]


def read_judgements(path: str) -> list[Judgement]:
    """Reads the judgements that the page of an audit made.

    Raises:
        UserError: the file cannot be read, or holds no judgements.
    """
    try:
        found = files.read_json(path)["mentions"]
        for row in found:
            answers = [row.get(question) for question in QUESTIONS]
            if not all(answer in (True, False, None) for answer in answers):
                raise ValueError(f"an answer of {row['id']} is neither true, false nor null")
            if missing := {"category", "source"} - row.keys():
                raise ValueError(f"{row['id']} has no {min(missing)}")
            if not isinstance(row.get(MISSED) or 0, int):
                raise ValueError(f"the missed names of {row['id']} are no number")
    except OSError as error:
        raise UserError(f"{error.strerror}; check the path", path) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"no judgements ({type(error).__name__}: {error}); give the file that the page of "
            "nerbert audit downloaded",
            path,
        ) from None
    return list(found)


def wilson(right: int, judged: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a rate; (0, 1) without judgements.

    Source: Wilson 1927, Probable inference; it holds for small numbers and rates near 1.

    >>> [round(bound, 3) for bound in wilson(95, 100)]
    [0.888, 0.978]
    """
    if not judged:
        return 0.0, 1.0
    rate, square = right / judged, z * z / judged
    middle = rate + square / 2
    half = z * sqrt(rate * (1 - rate) / judged + square / (4 * judged))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def table(rows: Sequence[Judgement]) -> str:
    """The rates of all judgements, by source and by category, as a Markdown table."""
    heads = ["", "mentions", *QUESTIONS.values()]
    lines = [heads, ["---"] * len(heads), _line("all", rows)]
    for group in ("source", "category"):
        counts = Counter(str(row[group]) for row in rows)
        if len(counts) > 1:
            ordered = sorted(counts, key=lambda name: (-counts[name], name))[:_MOST_CATEGORIES]
            lines += [
                _line(f"{group} {name}", [row for row in rows if str(row[group]) == name])
                for name in ordered
            ]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    judged = [row for row in rows if row.get(MISSED) is not None]
    if not judged:
        return text
    return f"{text}\n\n{_marked(judged)}"


def _line(name: str, rows: Sequence[Judgement]) -> list[str]:
    answers = [[row.get(question) for row in rows] for question in QUESTIONS]
    cells = [
        _rate(found.count(True), sum(answer is not None for answer in found)) for found in answers
    ]
    return [name, str(len(rows)), *cells]


def _rate(right: int, judged: int) -> str:
    if not judged:
        return "-"
    low, high = wilson(right, judged)
    return f"{right} of {judged}, {right / judged:.1%} ({low:.0%} to {high:.0%})"


def _marked(rows: Sequence[Judgement]) -> str:
    """The share of the names of the judged sentences that are marked; each sentence counts once."""
    sentences = {str(row["id"]): row for row in rows}
    marked = sum(1 + len(row.get("others", ())) for row in sentences.values())
    missed = sum(int(row[MISSED]) for row in sentences.values())
    return f"marked names: {_rate(marked, marked + missed)}, in {len(sentences)} sentences"
