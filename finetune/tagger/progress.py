"""Progress of a fine-tuning: steps, loss, dev F1 and the time that is left."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from tqdm.auto import tqdm
from transformers import TrainerCallback

_LOGGER = logging.getLogger("nerbert")


class FitProgress(TrainerCallback):
    """A bar on a terminal or in a notebook, a log line for each evaluation otherwise."""

    def __init__(self, name: str = "", lines: bool = True) -> None:
        """Describes the progress.

        Args:
            name: name of the bar and of the lines.
            lines: whether there are log lines if there is no terminal.
        """
        self._name, self._lines = name, lines
        self._before = f"{name}: " if name else ""
        self._shown = "ipykernel" in sys.modules or sys.stderr.isatty()
        self._bar: Any = None
        self._start, self._first = 0.0, 0
        self._loss = self._f1 = self._best = float("nan")

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._start, self._first = time.monotonic(), state.global_step
        self._best = float("nan") if state.best_metric is None else state.best_metric
        if state.global_step:
            _LOGGER.info(
                "%scontinues after step %d of %d",
                *(self._before, state.global_step, state.max_steps),
            )
        if self._shown:
            self._bar = tqdm(
                total=state.max_steps,
                initial=state.global_step,
                desc=self._name or "train",
                leave=self._lines,
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._bar is not None:
            self._bar.update()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self._loss = (logs or {}).get("loss", self._loss)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
    ) -> None:
        self._f1 = (metrics or {}).get("eval_f1", self._f1)
        self._best = max(self._f1, self._best) if self._best == self._best else self._f1
        loss = f"loss {self._loss:.4f}, " if self._loss == self._loss else ""  # none is logged yet
        told = f"{loss}dev F1 {self._f1:.4f}, best {self._best:.4f}"
        if self._bar is not None:
            self._bar.set_postfix_str(told)
        if self._bar is not None or not self._lines:
            return
        done = state.global_step - self._first
        seconds = (time.monotonic() - self._start) / max(done, 1)
        left = seconds * (state.max_steps - state.global_step)
        _LOGGER.info(
            "%sstep %s of at most %s: %s, at most %.0f s left",
            *(self._before, f"{state.global_step:,}", f"{state.max_steps:,}", told, left),
        )

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
