r"""Writes the documents of a dump that is a month younger: seconds with --previous, and without.

    python -m benchmarks.previous --dump enwiki-*.bz2 --types FILE --work DIR --rounds 6

One page in twenty gets another revision: other words, and sentences of the page before. Each run of
WORK is made by `nerbert corpus --stage extract`; then the parts are written again, in a process for
each of the two, in turns, and must have the same bytes.
"""

from __future__ import annotations

import argparse
import bz2
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from zlib import crc32

from nerbert.storage.places import Place
from nerbert.text.sentences import SENTENCES, SentenceModel
from pipeline.documents.previous import Previous
from pipeline.documents.unit_documents import write_documents
from pipeline.dump.units import Unit, inspect
from pipeline.language import CommonWords
from pipeline.plan import WORDS

_PAGE = re.compile(r"<page>.*?</page>", re.DOTALL)
_REVISION = re.compile(r"(<revision>\s*<id>)(\d+)")
_TITLE = re.compile(r"<title>(.*?)</title>")
_CHANGED = 20
"""One page in so many is changed."""


def make_later(path: Path, later: Path) -> None:
    """Writes the next month's dump file."""
    sentences = ""

    def changed(match: re.Match[str]) -> str:
        nonlocal sentences
        page = match[0]
        title = _TITLE.search(page)
        if title is None or crc32(title[1].encode()) % _CHANGED:
            paragraphs = [text for text in page.split("\n\n") if text[:1].isupper()]
            plain = [text for text in paragraphs if "{" not in text and "[" in text]
            sentences = "\n\n".join(plain)[:600].rpartition(". ")[0] or sentences
            return page
        page = _REVISION.sub(lambda found: f"{found[1]}{int(found[2]) + 10**9}", page, count=1)
        page = page.replace(" the ", " that ", 3).replace(" was ", " had been ", 2)
        return page.replace("\n\n", f"\n\n{sentences}.\n\n", 1)

    text = bz2.decompress(path.read_bytes()).decode("utf-8")
    later.write_bytes(bz2.compress(_PAGE.sub(changed, text).encode("utf-8")))


def write(dumps: list[Path], run: Place, previous: Place | None, out: Path) -> float:
    """Writes the documents of each dump file, with the models of a run; CPU seconds."""
    model = SentenceModel.from_json((run / "documents" / SENTENCES).read_bytes())
    common = CommonWords.from_json((run / "documents" / WORDS).read_bytes())
    files = [inspect(Place(str(path))) for path in dumps]
    units = [Unit(n, f.path, f.compression, 0, f.size, f.site) for n, f in enumerate(files)]
    (out / "quarantine").mkdir(parents=True, exist_ok=True)
    rows = Previous(previous, model) if previous else None
    start = 0.0
    for number, unit in enumerate((units[0], *units)):
        if number == 1:  # the first time loads modules
            start = time.process_time()
        write_documents(unit, Place(str(out / unit.part)), model, common, previous=rows)
    return time.process_time() - start


def main() -> None:
    """Makes both runs, and measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dump", nargs="+", type=Path, required=True)
    parser.add_argument("--types", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", choices=["fresh", "previous"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    later = [args.work / "later" / path.name for path in args.dump]
    runs = {name: Place(str(args.work / f"run-{name}")) for name in ("earlier", "later")}
    if args.only:
        previous = runs["earlier"] if args.only == "previous" else None
        print(write(later, runs["later"], previous, args.work / args.only))
        return
    (args.work / "later").mkdir(parents=True, exist_ok=True)
    for path, other in zip(args.dump, later, strict=True):
        make_later(path, other)
    nerbert = [sys.executable, "-m", "nerbert"]
    for name, dumps in (("earlier", args.dump), ("later", later)):
        flags = ["--types", args.types, "--stage", "extract", "--output", runs[name]]
        subprocess.run([*nerbert, "corpus", "--dump", *map(str, dumps), *flags], check=True)
    seconds: dict[str, list[float]] = {"fresh": [], "previous": []}
    for _ in range(args.rounds):
        for name, measured in seconds.items():
            command = [sys.executable, "-m", "benchmarks.previous", *sys.argv[1:], "--only", name]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            measured.append(float(done.stdout))
    for part in sorted((args.work / "fresh").glob("part-*.parquet")):
        if part.read_bytes() != (args.work / "previous" / part.name).read_bytes():
            raise SystemExit(f"{part}: other bytes with --previous")
    fresh, taken = (median(measured) for measured in seconds.values())
    print(f"fresh {fresh:.2f} s, with --previous {taken:.2f} s: {taken / fresh:.2f}")


if __name__ == "__main__":
    main()
