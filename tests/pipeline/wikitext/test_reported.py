"""Kinds of faults that users of other tools have reported, on small texts."""

import json

from pipeline.dump.site import Site
from pipeline.wikitext.render import render


def cases(shared):
    lines = (shared / "reports" / "wikitext.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def problems(case):
    """What a rendering lacks, or should not have. A hole counts as told."""
    rendered = render(case["wikitext"], Site.for_language(case["language"]))
    text, anchors = rendered.text, rendered.anchors
    shown = [text[anchor.start : anchor.end] for anchor in anchors]
    targets = [anchor.target for anchor in anchors]
    if "text" in case and text != case["text"] and not rendered.holes:
        yield "text", text
    if (
        "any_text_part" in case
        and not any(part in text for part in case["any_text_part"])
        and not rendered.holes
    ):
        yield "any_text_part", text
    if "first_anchor" in case and shown[:1] != [case["first_anchor"]]:
        yield "first_anchor", shown
    if "any_first_anchor" in case and shown[:1] not in [
        [name] for name in case["any_first_anchor"]
    ]:
        yield "any_first_anchor", shown
    if "first_target" in case and targets[:1] != [case["first_target"]]:
        yield "first_target", targets
    for name in case.get("not_anchor", ()):
        if name in shown:
            yield "not_anchor", shown
    for part in case.get("not_text", ()):
        if part in text:
            yield "not_text", text


def test_reported_kinds(shared):
    found = {case["name"]: list(problems(case)) for case in cases(shared)}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
