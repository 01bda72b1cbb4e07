"""The entity table of a full Wikipedia: size, memory, building time, look-ups a second.

python -m benchmarks.resolve [--titles 18000000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from ontology.classes import ClassTree
from ontology.entity_table import EntityTable
from ontology.titles import title_keys
from ontology.voting.building import Facts, build

_CHUNK = 500_000
_PAGES = 7 / 18
"""Share of titles that are pages; the others are redirects."""
_TYPED = 0.7
_CLASSES = ("City", "Person", "SoccerPlayer", "Album", "Species", "Company", "Film", "Town")


def generated_titles(start: int, stop: int) -> pa.StringArray:
    """Titles as long as those of a Wikipedia, 20 characters on average."""
    return pa.array([f"Title {n * 2654435761 % 2**32:x} of {n}" for n in range(start, stop)])


def generated_facts(titles: int, seed: int = 0) -> tuple[Facts, Facts]:
    """Pages, redirects to pages, to redirects and in circles; types of most pages."""
    draw = np.random.default_rng(seed)
    keys = np.concatenate(
        [title_keys(generated_titles(n, min(n + _CHUNK, titles))) for n in range(0, titles, _CHUNK)]
    )
    pages = int(titles * _PAGES)
    targets = np.zeros(titles, np.uint64)
    chained = draw.random(titles - pages) < 0.05  # to another redirect: chains and circles
    leads_to = np.where(
        chained,
        draw.integers(pages, titles, titles - pages),
        draw.integers(0, pages, titles - pages),
    )
    targets[pages:] = keys[leads_to]
    boxed = np.full(titles, -1, np.int32)
    boxed[:pages] = np.where(draw.random(pages) < 0.3, draw.integers(0, len(_CLASSES), pages), -1)
    typed = np.flatnonzero(draw.random(pages) < _TYPED)
    classes = draw.integers(0, len(_CLASSES), len(typed)).astype(np.int32)
    return (Facts(keys, _CLASSES, boxed, targets=targets), Facts(keys[typed], _CLASSES, classes))


def peak_mib() -> float:
    """Peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def lookups_per_second(table: EntityTable, titles: int, batch: int) -> tuple[float, float]:
    """Millions of look-ups a CPU second in random order: by key, and by title."""
    draw = np.random.default_rng(1)
    by_key = by_title = 0.0
    rounds = max(1, 4_000_000 // batch)
    for _ in range(rounds):
        numbers = draw.integers(0, titles, batch)
        column = pa.array([f"Title {n * 2654435761 % 2**32:x} of {n}" for n in numbers.tolist()])
        start = time.process_time()
        found = table.lookup(column)
        by_title += time.process_time() - start
        keys = title_keys(column)
        start = time.process_time()
        again = table.lookup_keys(keys)
        by_key += time.process_time() - start
        assert (found == again).all()
        assert (found >= 0).all()
    total = rounds * batch / 1e6
    return total / by_key, total / by_title


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--titles", type=int, default=18_000_000)
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args(argv)
    pages, types = generated_facts(options.titles)
    before_mib, start = peak_mib(), time.process_time()
    table = build(pages, [types], ClassTree.shipped()).table
    built_s, built_mib = time.process_time() - start, peak_mib()
    with tempfile.TemporaryDirectory() as folder:
        table.save(folder)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        numbers = {
            "titles": options.titles,
            "entities": len(table.classes),
            "megabytes": size / 1e6,
            "facts_mib": before_mib,
            "build_mib": built_mib,
            "build_cpu_s": built_s,
        }
        del pages, types, table
        table = EntityTable.open(folder)
        table.lookup_keys(np.asarray(table.keys))  # read it once
        for batch in (4_096, 100_000, 1_000_000):
            keys, titles = lookups_per_second(table, options.titles, batch)
            numbers[f"million_keys_per_s_{batch}"] = keys
            numbers[f"million_titles_per_s_{batch}"] = titles
    for name, value in numbers.items():
        print(f"{name:30}{value:14,.1f}")
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
