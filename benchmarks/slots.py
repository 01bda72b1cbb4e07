"""How many slots of a cluster `extract` can use, by simulation.

python -m benchmarks.slots --dump SLICE... [--gigabytes 24] [--files 64] [--slots 8 64 256 1024]

The CPU seconds of each unit of some real dumps are measured; their spread per byte is that of the
simulated dump, whose units are cut as ours are. Flink deals units to slots in turn, Dataflow gives
the next one to a slot that is free.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence

from nerbert.storage.places import Place
from nerbert.text.sentences import SentenceModel
from pipeline.documents.sample import sampled_texts
from pipeline.documents.unit_documents import write_documents
from pipeline.dump.units import MAX_UNIT, Unit
from pipeline.language import CommonWords, trained
from pipeline.plan import make_plan
from pipeline.settings import CorpusSettings

Deal = Callable[[Sequence[float], int], float]
"""Gives units to slots; returns the seconds until the last slot has ended."""

_GOAL = 0.9


def main(argv: Sequence[str] | None = None) -> None:
    """Prints tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", nargs="+", required=True, help="real dumps, .xml.bz2")
    parser.add_argument("--gigabytes", type=float, default=24, help="size of the dump, bz2")
    parser.add_argument("--files", type=int, default=64, help="number of its files")
    parser.add_argument("--slots", type=int, nargs="+", default=[8, 64, 256, 1024])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    rates = measured(options.dump)
    mean, spread = statistics.fmean(rates), lognormal_spread(rates)
    print(
        f"{len(rates)} units measured: {mean:.2f} CPU s per MB of bz2 "
        f"({min(rates):.2f} to {max(rates):.2f}), spread of the logarithm {spread:.2f}"
    )
    sizes = file_sizes(options.gigabytes * 1e9, options.files, options.seed)
    print("\n| unit | units | slots | hours | in turn | free |\n|---|---|---|---|---|---|")
    for unit in (MAX_UNIT["bz2"], MAX_UNIT["bz2"] // 2, MAX_UNIT["bz2"] // 4, MAX_UNIT["bz2"] // 8):
        costs = unit_costs(sizes, unit, mean, spread, options.seed)
        for slots in options.slots:
            turn, free = in_turn(costs, slots), freely(costs, slots)
            ideal = sum(costs) / slots
            print(
                f"| {unit >> 20} MiB | {len(costs):,} | {slots:,} | {free / 3600:.2f} "
                f"| {ideal / turn:.0%} | {ideal / free:.0%} |"
            )
    print(f"\nlargest unit that keeps {_GOAL:.0%}, in KiB:\n")
    print("| slots | in turn | free |\n|---|---|---|")
    for slots in options.slots:
        found = [
            largest(deal, sizes, slots, mean, spread, options.seed) for deal in (in_turn, freely)
        ]
        print(f"| {slots:,} | {' | '.join(map(str, found))} |")


def measured(dumps: Sequence[str]) -> list[float]:
    """CPU seconds per MB of each unit of some dumps, without the shortest."""
    rates = []
    for dump in dumps:
        with tempfile.TemporaryDirectory() as folder:
            plan = make_plan(
                CorpusSettings(dump=(Place(dump),), output=Place(folder), min_entities=2)
            )
            texts = sampled_texts(plan.units, 0)
            model, common = trained(texts, plan.language), CommonWords.train(texts)
            for unit in plan.units:
                if unit.end - unit.start > 100_000:
                    rates.append(_seconds(unit, Place(folder), model, common) / _megabytes(unit))
    return rates


def _seconds(unit: Unit, folder: Place, model: SentenceModel, common: CommonWords) -> float:
    start = time.process_time()
    write_documents(unit, folder / unit.part, model, common)
    return time.process_time() - start


def _megabytes(unit: Unit) -> float:
    return (unit.end - unit.start) / 1e6


def lognormal_spread(rates: Sequence[float]) -> float:
    """Standard deviation of the logarithms."""
    return statistics.stdev(map(math.log, rates))


def file_sizes(total: float, files: int, seed: int) -> list[float]:
    """Bytes of the files of a dump: between half and one and a half of their mean."""
    draw = random.Random(seed)
    shares = [draw.uniform(0.5, 1.5) for _ in range(files)]
    return [total * share / sum(shares) for share in shares]


def unit_costs(
    sizes: Sequence[float], unit: float, rate: float, spread: float, seed: int
) -> list[float]:
    """CPU seconds of the units, largest first, as `extract` deals them."""
    draw = random.Random(seed)
    lengths = []
    for size in sizes:
        whole = int(size // unit)
        lengths += [unit] * whole + [size - whole * unit]
    lengths.sort(reverse=True)
    scale = rate / 1e6 / math.exp(spread**2 / 2)
    return [length * scale * draw.lognormvariate(0, spread) for length in lengths]


def in_turn(costs: Sequence[float], slots: int) -> float:
    """Seconds until the last slot has ended, if unit n goes to slot n modulo the slots."""
    return max(sum(costs[slot::slots]) for slot in range(slots))


def freely(costs: Sequence[float], slots: int) -> float:
    """Seconds until the last slot has ended, if the next unit goes to the slot that is free."""
    ends = [0.0] * slots
    for cost in costs:
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


def largest(
    deal: Deal, sizes: Sequence[float], slots: int, rate: float, spread: float, seed: int
) -> str:
    """The largest unit, in KiB, that keeps the goal; by halving from the largest of ours."""
    unit = float(MAX_UNIT["bz2"])
    while unit > 16 << 10:
        costs = unit_costs(sizes, unit, rate, spread, seed)
        if sum(costs) / slots / deal(costs, slots) >= _GOAL:
            return f"{unit / 1024:,.0f}"
        unit /= 2
    return "none above 16"


if __name__ == "__main__":
    main()
