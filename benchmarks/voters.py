"""Classes by one, two or more files of types, against classes by hand.

python -m benchmarks.voters --dump enwiki-*.bz2 --types instance_types_en_*.bz2 [--work DIR]

The same statements are given as files of their own, two at a time, and as one file. A class is
right if it is one of the classes by hand, or above or below one; it is specific unless it is above.
"""

from __future__ import annotations

import argparse
import bz2
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from ontology.classes import ClassTree
from ontology.entity_table import EntityTable

GOLD = Path(__file__).parent / "data" / "classes.tsv"
"""Title and right classes; "-" stands for a page that no class fits."""


def judged(table: EntityTable, tree: ClassTree) -> Counter[str]:
    """Numbers of titles by hand that have a class, a right one, and a right and specific one."""
    found: Counter[str] = Counter()
    for line in GOLD.read_text(encoding="utf-8").splitlines()[1:]:
        title, right = line.split("\t")
        given = table.class_of(title)
        wanted = [] if right == "-" else right.split()
        above = {name for cls in wanted for name in tree.ancestors(cls)}
        is_specific = given in wanted or bool({*wanted} & {*tree.ancestors(given or "")})
        found["pages"] += 1
        found["typed"] += given is not None
        found["specific"] += is_specific
        found["right"] += is_specific or given in above
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", nargs="+", required=True)
    parser.add_argument("--types", nargs="+", required=True)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        whole = work / "all.nt"
        whole.write_bytes(b"".join(bz2.decompress(Path(p).read_bytes()) for p in options.types))
        sets = {"one file with all": [str(whole)]}
        for size in (1, 2, len(options.types)):
            for some in combinations(options.types, size):
                sets[" + ".join(Path(p).name.split(".")[0] for p in some)] = list(some)
        print("| types | typed | right | right and specific |\n|---|---|---|---|")
        tree = ClassTree.shipped()
        for number, (name, types) in enumerate(sets.items()):
            output = work / f"output-{number}"
            flags = ["--types", *types, "--stage", "resolve", "--output", str(output)]
            command = [sys.executable, "-m", "nerbert", "corpus", "--dump", *options.dump, *flags]
            subprocess.run(command, check=True, capture_output=True)
            found = judged(EntityTable.open(output / "entities"), tree)
            typed, right, specific = (found[key] for key in ("typed", "right", "specific"))
            shares = " | ".join(f"{n} ({n / typed:.1%})" for n in (right, specific))
            print(f"| {name} | {typed} of {found['pages']} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
