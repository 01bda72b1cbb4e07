"""Rows of documents without content, for tests that fill in what they need."""

from __future__ import annotations

from typing import Any


def empty_row(**columns: Any) -> dict[str, Any]:
    """The row of an article without text; `columns` are its other values."""
    return {
        "page_id": 1,
        "namespace": 0,
        "title": "",
        "redirect": None,
        "revision_id": 1,
        "timestamp": "",
        "templates": [],
        "template_arguments": [],
        "categories": [],
        "is_disambiguation": False,
        "other_language": False,
        "text": "",
        "sentence_starts": [],
        "sentence_ends": [],
        "sentence_holes": [],
        "sentence_markup": [],
        "anchors": [],
        **columns,
    }
