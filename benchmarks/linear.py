"""Time of `render`, sentences, tokens and names on nasty input: it must only grow with its length.

python -m benchmarks.linear [--json FILE]; exit code 1 when time grows by more than 2.6 a doubling,
or any input takes more than 2 s.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nerbert.text.punkt import Parameters
from nerbert.text.sentences import SentenceModel
from nerbert.text.tokens import tokenize
from pipeline.examples.name_search import Capitals
from pipeline.examples.unlinked import PageWords
from pipeline.wikitext.render import render

SIZES = (20_000, 40_000, 80_000, 160_000, 320_000)
GROWTH, LONGEST_S = 2.6, 2.0
_FLOOR_S = 0.01
"""Shorter times say nothing of growth."""

REPEATED = {
    "unclosed {{a|": "{{a|",
    "unclosed [[a|": "[[a|",
    "unclosed <ref>": "<ref>",
    "unclosed [http://": "[http://a ",
    "''": "''",
    "''' a ''": "''' a '' ",
    "{|": "{|\n",
    "|}": "|}\n",
    "nested {{a|}}": None,
    "nested [[a|]]": None,
    "nested <div>": None,
    "nested {|": None,
    "lists": "*",
    "list lines": "* a\n",
    "deep list lines": None,
    "headings": "== a ==\n",
    "unclosed <!--": "<!-- ",
    "lines of <!--": "<!--\n",
    "unclosed <nowiki>": "<nowiki>",
    "unclosed <math>": "<math>",
    "{{lang|a|<b}}": "{{lang|a|<b}} ",
    "{{{a|": "{{{a|",
    "}}": "}}",
    "]]": "]]",
    "&": "&",
    "&amp;amp;": "&amp;",
    "-{": "-{zh-hans:a;",
    "__A__": "__A__ ",
    "<br": "<br ",
    "<table>": "<table>",
    "</table>": "</table>",
    "' and full stops": "a'. ",
    "...": ".",
    ". . .": ". ",
    "!?": "!?",
    "quotes": "\" ' ",
    "brackets": "([{<",
    "spaces": " ",
    "nbsp": "\u00a0",
    "combining": "e\u0301",
    "one word": "a",
    "digits": "1,",
    "links": "[[a]] ",
    "links in one word": "[[a]]b",
    "dashes": "-",
    "templates": "{{a}} ",
    "notes": "a<ref>b</ref> ",
}


def _input(name: str, size: int) -> str:
    """Wikitext of about `size` characters."""
    piece = REPEATED[name]
    if piece is not None:
        return piece * (size // len(piece))
    if name == "nested {{a|}}":
        return "{{a|" * (size // 6) + "}}" * (size // 6)
    if name == "nested [[a|]]":
        return "[[a|" * (size // 6) + "]]" * (size // 6)
    if name == "nested <div>":
        return "<div>" * (size // 11) + "</div>" * (size // 11)
    if name == "nested {|":
        return "{|\n|\n" * (size // 8) + "|}\n" * (size // 8)
    depth = math.isqrt(2 * size)
    return "".join("*" * n + "\n" for n in range(depth))


def names(count: int) -> object:
    """Finds linked names that begin alike, as in a list of ships or kings."""
    linked = [f"King {n}" for n in range(count)]
    text = " ".join(f"The reign of {name} was short." for name in linked)
    starts = np.arange(0, len(text), 200)
    page = PageWords([text])
    capitals = Capitals(
        page, np.zeros(len(starts), np.int64), starts, np.append(starts[1:], len(text))
    )
    none = np.empty(0, np.int64)
    runs = list(capitals.whole_names(none, none, none, {"the"}))
    return runs, list(capitals.occurrences(0, linked, []))


def steps() -> dict[str, Callable[[str], object]]:
    """Each step of a page's way."""
    model = SentenceModel("none", Parameters(frozenset({"dr", "a"})))
    return {
        "render": lambda text: render(text),
        "sentences": lambda text: model.split(text),
        "tokens": lambda text: tokenize(text.replace("\n", " ")),
    }


def seconds(step: Callable[[Any], object], text: str | int) -> float:
    """The best of three CPU times."""
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        step(text)
        best = min(best, time.process_time() - start)
        if best > LONGEST_S:
            break
    return best


def growth(times: Sequence[float]) -> float:
    """Mean factor by which time grows a doubling, over the sizes where it can be measured."""
    known = [t for t in times if t >= _FLOOR_S]
    return (known[-1] / known[0]) ** (1 / (len(known) - 1)) if len(known) > 1 else 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args(argv)
    rows: dict[str, list[float]] = {}
    for name in REPEATED:
        for step, function in steps().items():
            rows[f"{step}: {name}"] = [seconds(function, _input(name, n)) for n in SIZES]
    line = "Rome was not built in a day. " * 172_414
    many = " ".join(f"[[Page {n}|word]]" for n in range(100_000))
    for step in ("render", "sentences"):  # no sentence of that length is ever tokenised
        rows[f"{step}: one line of 5 MB"] = [seconds(steps()[step], line)]
    rows["render: 100,000 links in a paragraph"] = [seconds(render, many)]
    rows["names: kings with numbers"] = [seconds(names, n // 40) for n in SIZES]
    bad = 0
    print(f"{'input':44}{'20k ms':>9}{'320k ms':>9}{'a doubling':>12}")
    for name, times in sorted(rows.items(), key=lambda item: -item[1][-1]):
        failed = growth(times) > GROWTH or times[-1] > LONGEST_S
        bad += failed
        print(
            f"{name:44}{times[0] * 1e3:9.1f}{times[-1] * 1e3:9.1f}{growth(times):12.2f}"
            f"{'  FAILED' if failed else ''}"
        )
    print(f"{len(rows)} inputs, {bad} failed")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
