"""Makes the page of an audit, or prints the rates of its judgements."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from pathlib import Path

from nerbert import files
from nerbert.corpus import load_corpus, report_of
from nerbert.errors import UserError
from nerbert.reports import filled
from pipeline.audit.rates import QUESTIONS, read_judgements, table
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
