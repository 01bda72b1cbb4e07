"""A seeded fuzzer: damaged dumps, types, column files, and tampered output folders.

python -m tests.attacks.faults [--cases 200] [--outputs 30] [--seed 0]

A case is handled if the reader ends without an exception that no command turns into one line,
alters no page, loses none without saying so, and keeps the files of the user. Signals are in
`tests.attacks.storm`, kills in `tests.attacks.kill`, checkpoints and full disks in the tests.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from nerbert.text.columns import read_columns
from ontology.sources.types import UnreadableError, read_instance_types
from pipeline.dump.pages import Page
from pipeline.dump.units import cut, inspect, read_unit
from tests.attacks.kill import same_bytes

_PAGES, _PER_STREAM = 120, 8
_HEAD = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="en">\n'
_PACK: dict[str, Callable[[bytes], bytes]] = {
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
}
_MINE = "thesis.tex"


def _text(number: int) -> str:
    return f"This is [[page {number}]]. " * (1 + number % 30)


def page(number: int) -> str:
    """A page whose text says which page it is."""
    return (
        f"<page><title>Page {number}</title><ns>0</ns><id>{number}</id><revision><id>{number}</id>"
        f"<text>{_text(number)}</text></revision></page>\n"
    )


def damaged(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """The data with a random damage, and its kind."""
    kind = draw.choice(["flipped", "cut", "zeroed", "doubled", "removed"])
    first = draw.randrange(len(data))
    last = min(len(data), first + draw.randrange(1, max(2, len(data) // 8)))
    if kind == "flipped":
        changed = bytearray(data)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(changed), kind
    middle = {"zeroed": bytes(last - first), "doubled": data[first:last] * 2}.get(kind, b"")
    return data[:first] + (b"" if kind == "cut" else middle + data[last:]), kind


def dump_case(folder: Path, draw: random.Random) -> str:
    """Damages a compressed dump; "" if it is handled."""
    groups = [range(n, min(n + _PER_STREAM, _PAGES)) for n in range(0, _PAGES, _PER_STREAM)]
    texts = [_HEAD, *("".join(map(page, group)) for group in groups), "</mediawiki>\n"]
    suffix = draw.choice(["multistream", *_PACK])
    if suffix == "multistream":
        data = b"".join(bz2.compress(text.encode()) for text in texts)
    else:
        data = _PACK[suffix]("".join(texts).encode())
    content, kind = damaged(data, draw)
    path = folder / ("d.xml.bz2" if suffix == "multistream" else f"d.xml{suffix}")
    path.write_bytes(content)
    where = f"{suffix}, {kind}"
    found = []
    try:
        for unit in cut([inspect(str(path))]):
            found += list(read_unit(unit))
    except Exception as error:
        known = type(error).__name__ == "UserError" and "no MediaWiki export" in str(error)
        return "" if known else f"{where}: {error!r}"
    pages = [item for item in found if isinstance(item, Page)]
    told = len(found) > len(pages)
    # The check sum of gzip stands at the end: that pages may be altered is known too late.
    if any(item.wikitext != _text(item.page_id) for item in pages) and not (
        told and suffix == ".gz"
    ):
        return f"{where}: a page is altered"
    lost = len({item.page_id for item in pages}) < _PAGES
    return f"{where}: pages are lost, and nothing is said" if lost and not told else ""


def types_case(folder: Path, draw: random.Random) -> str:
    """Damages a file of instance types; "" if it is handled."""
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://dbpedia.org/ontology/City>"
    lines = (f"<http://dbpedia.org/resource/P{n}> {kind} .\n" for n in range(3000))
    suffix = draw.choice(["", *_PACK])
    data = _PACK.get(suffix, bytes)("".join(lines).encode())
    path = folder / f"types.nt{suffix}"
    path.write_bytes(damaged(data, draw)[0])
    try:
        for _ in read_instance_types(str(path)):
            pass
    except (OSError, EOFError, UnreadableError):
        return ""  # `nerbert corpus` names the file in one line
    except Exception as error:
        return f"types{suffix}: {error!r}"
    return ""


def columns_case(folder: Path, draw: random.Random) -> str:
    """Changes lines of a column file; "" if each is a token, or an error with its number."""
    separator, columns = draw.choice(["\t", " "]), draw.randrange(2, 5)
    words = ["in", "1996", "3", "Ulm", "#", "-", "É", "München"]
    tags = ["O", "B-LOC", "I-LOC", "M-LOC", "E-LOC", "S-PER"]
    odd = ["Ulm B_LOC", "o", "Ulm b-PER", "Ulm\t", "\x00 O", "a b c", "1\tx", "# c"]
    lines: list[bytes] = []
    tokens = 0
    for _ in range(40):
        if draw.random() < 0.15:
            lines.append(b"")
            continue
        middle = [draw.choice(words) for _ in range(columns - 2)]
        lines.append(separator.join([draw.choice(words), *middle, draw.choice(tags)]).encode())
        tokens += 1
    changed = draw.randrange(4) > 0
    if changed:
        lines.insert(draw.randrange(len(lines)), draw.choice([*map(str.encode, odd), b"\xff O"]))
    path = folder / "set.conll"
    path.write_bytes(b"\n".join(lines))
    try:
        read = sum(len(sentence.tokens) for sentence in read_columns(str(path)))
    except ValueError as error:
        return "" if changed and ": line " in str(error) else f"columns: {error!r}"
    return "" if tokens <= read <= tokens + changed else f"columns: {read} of {tokens} tokens"


def output_case(whole: Path, output: Path, draw: random.Random, command: Sequence[str]) -> str:
    """Tampers with a finished output, and runs the command again; "" if it is handled."""
    shutil.copytree(whole, output)
    kind = draw.choice(["emptied", "removed", "cut", "added", "added, other settings"])
    files = [path for path in sorted(output.rglob("*")) if path.is_file()]
    path = draw.choice([file for file in files if file.name not in (".lock", "run.log")])
    mine = path.with_name(_MINE)
    if kind.startswith("added"):
        mine.write_text("mine")
    elif kind == "removed":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(b"" if kind == "emptied" else data[: len(data) // 2])
    where = f"{kind}, {path.relative_to(output)}"
    other = ["--alpha", "0.5", "--list-items"] if "settings" in kind else []
    done = subprocess.run([*command, str(output), *other], capture_output=True, text=True)
    if kind.startswith("added"):
        if not mine.is_file() or mine.read_text() != "mine":
            return f"{where}: the user's file is gone"
        mine.unlink()
    if "Traceback" in done.stderr or done.returncode not in (0, 2):
        return f"{where}: {done.stderr[-300:]}"
    if done.returncode == 0 and not other and not same_bytes(whole, output):
        return f"{where}: other bytes"
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row for each area; returns 1 if a case failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=200, help="of each reader")
    parser.add_argument("--outputs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    draw = random.Random(options.seed)
    failed: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for area, case in (("dumps", dump_case), ("types", types_case), ("columns", columns_case)):
            failed[area] = [told for _ in range(options.cases) if (told := case(folder, draw))]
        command = [sys.executable, "run_pipeline.py", "--workers", "1", "--output"]
        subprocess.run([*command, str(folder / "whole")], check=True, capture_output=True)
        failed["output folders"] = []
        for _ in range(options.outputs):
            output = folder / "again"
            if told := output_case(folder / "whole", output, draw, command):
                failed["output folders"].append(told)
            shutil.rmtree(output)
    print(f"{'area':16}{'cases':>7}{'handled':>9}{'failed':>8}")
    for area, told in failed.items():
        cases = options.outputs if area == "output folders" else options.cases
        print(f"{area:16}{cases:7}{cases - len(told):9}{len(told):8}")
    for line in (line for told in failed.values() for line in told[:20]):
        print(line)
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
