"""Logs of a training: JSON lines, a bar, sub-words per second, FLOPs utilisation (MFU)."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import torch
from torch import nn
from tqdm.auto import tqdm
from transformers import TrainerCallback

from nerbert.progress import duration, has_bars

_LOGGER = logging.getLogger("nerbert")


class LogLines(TrainerCallback):
    """Writes one line of JSON for each log of the Trainer, with the seconds that are left."""

    def __init__(self) -> None:
        self._start, self._first = 0.0, 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._start, self._first = time.monotonic(), state.global_step

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and logs:
            line = {"step": state.global_step, "of": state.max_steps}
            if (done := state.global_step - self._first) and "loss" in logs:
                rate = (time.monotonic() - self._start) / done
                line["left_s"] = round(rate * (state.max_steps - state.global_step))
            values = {k: float(f"{v:.7g}") if isinstance(v, float) else v for k, v in logs.items()}
            _LOGGER.info(json.dumps({**line, **values}))


PEAK_TFLOPS = {
    "B200": 2250.0,
    "H200": 989.0,
    "H100 PCIe": 756.0,
    "H100": 989.0,
    "A100": 312.0,
    "A40": 150.0,
    "L40S": 362.0,
    "L4": 121.0,
    "V100": 125.0,
    "T4": 65.0,
    "RTX 4090": 165.0,
    "RTX 3090": 71.0,
}
"""Part of the name of a GPU -> its dense bf16 peak in TFLOP/s (V100 and T4: fp16).

The first match is used. Source: NVIDIA's data sheets.
"""


def peak_flops(device: torch.device) -> float | None:
    """Peak FLOP/s of a GPU; None if it is unknown."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak * 1e12 for part, peak in PEAK_TFLOPS.items() if part in name), None)


class TrainingFlops:
    """FLOPs of training a model on a batch, forward and backward.

    For each sub-word: 6 for each parameter of the linear layers (2 forward, 4 backward), and
    12 x layers x hidden size x length for attention. Padding is not counted, because it is not
    useful work. Embeddings, softmax, normalisation and optimiser are not counted.

    Source: Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, appendix B.
    """

    def __init__(self, model: nn.Module) -> None:
        linear = (module for module in model.modules() if isinstance(module, nn.Linear))
        self._linear = sum(module.weight.numel() for module in linear)
        config: Any = model.config
        self._attention = config.num_hidden_layers * config.hidden_size

    def of(self, lengths: torch.Tensor) -> float:
        """FLOPs of a batch, by the numbers of sub-words of its pieces, shape (batch,)."""
        lengths = lengths.double()
        linear = 6 * self._linear * lengths.sum()
        return float(linear + 12 * self._attention * lengths.square().sum())


class Throughput:
    """Counts the sub-words that a device trains on between two logs."""

    def __init__(self, model: nn.Module, device: torch.device, devices: int) -> None:
        self._flops = TrainingFlops(model)
        self._peak = peak_flops(device)
        self._device = device
        self._devices = devices
        self.subwords = self.padded = 0
        self._logged: list[tuple[int, float]] = []  # sub-words, seconds
        self._start()

    def _start(self) -> None:
        self._since = time.perf_counter()
        self._subwords_before, self._flops_since = self.subwords, 0.0

    def start(self) -> None:
        """Starts a new interval; the time since the last log is not counted."""
        self._start()

    def add(self, attention_mask: torch.Tensor) -> None:
        """Counts a batch by its attention mask (batch, length), on the CPU."""
        lengths = attention_mask.sum(-1)
        self.subwords += int(lengths.sum())
        self.padded += attention_mask.numel()
        self._flops_since += self._flops.of(lengths)

    def log(self) -> dict[str, float]:
        """Rates since the last log: `subwords_per_s`, and `mfu` on known GPUs; `padding` so far.

        All devices are assumed to be as fast as this one.
        """
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        elapsed_s = time.perf_counter() - self._since
        subwords = self.subwords - self._subwords_before
        if not subwords:
            return {}
        self._logged.append((subwords * self._devices, elapsed_s))
        rates = {
            "subwords_per_s": round(subwords * self._devices / elapsed_s, 1),
            "padding": round(1 - self.subwords / self.padded, 4),
        }
        if self._peak:
            rates["mfu"] = round(self._flops_since / elapsed_s / self._peak, 4)
        self._start()
        return rates

    def totals(self) -> dict[str, float]:
        """Padding, and the mean rate without the first interval, in which models are compiled."""
        logged = self._logged[1:] or self._logged
        elapsed_s = sum(seconds for _, seconds in logged)
        return {
            "subwords_per_s": round(
                sum(subwords for subwords, _ in logged) / max(elapsed_s, 1e-9), 1
            ),
            "padding": round(1 - self.subwords / max(self.padded, 1), 4),
        }


_BETWEEN_S = 30.0


class FitProgress(TrainerCallback):
    """A bar on a terminal or in a notebook; otherwise log lines, one in half a minute at most."""

    def __init__(self, name: str = "", lines: bool = True) -> None:
        """Describes the progress.

        Args:
            name: name of the bar and of the lines.
            lines: whether there are log lines if there is no terminal.
        """
        self._name, self._lines = name, lines
        self._before = f"{name}: " if name else ""
        self._shown = has_bars()
        self._bar: Any = None
        self._start, self._first = 0.0, 0
        self._said, self._said_step = float("-inf"), -1
        self._loss = self._f1 = self._best = float("nan")

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._start, self._first = time.monotonic(), state.global_step
        self._best = float("nan") if state.best_metric is None else state.best_metric
        if state.global_step:
            _LOGGER.info(
                "%scontinues after step %d of %d", self._before, state.global_step, state.max_steps
            )
        if self._shown and state.is_world_process_zero:
            self._bar = tqdm(
                total=state.max_steps,
                initial=state.global_step,
                desc=self._name or "train",
                leave=self._lines,
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._bar is not None:
            self._bar.update()
        elif state.global_step > self._first + 1:  # the first step is slower than the others
            self._say(state)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self._loss = (logs or {}).get("loss", self._loss)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
    ) -> None:
        self._f1 = (metrics or {}).get("eval_f1", self._f1)
        self._best = max(self._f1, self._best) if self._best == self._best else self._f1
        if self._bar is not None:
            self._bar.set_postfix_str(self._scores())
        self._say(state)

    def _scores(self) -> str:
        """The loss, dev F1 and the best dev F1, as far as there are any."""
        numbers = {"loss": self._loss, "dev F1": self._f1, "best": self._best}
        return ", ".join(f"{n} {value:.4f}" for n, value in numbers.items() if value == value)

    def _say(self, state: Any, least_s: float = _BETWEEN_S) -> None:
        """Logs a line, unless there are bars, or the last one is not `least_s` ago."""
        now = time.monotonic()
        if self._bar is not None or not self._lines or now - self._said < least_s:
            return
        if state.global_step == self._said_step:
            return
        self._said, self._said_step = now, state.global_step
        done = state.global_step - self._first
        seconds = (now - self._start) / max(done, 1)
        seconds_left = seconds * (state.max_steps - state.global_step)
        _LOGGER.info(
            "%sstep %s of at most %s: %s",
            self._before,
            f"{state.global_step:,}",
            f"{state.max_steps:,}",
            ", ".join(filter(None, [self._scores(), f"at most {duration(seconds_left)} left"])),
        )

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
        self._say(state, 0)


def progress() -> TrainerCallback:
    """Shows a pre-training: a bar on a terminal or in a notebook, else lines of JSON."""
    return FitProgress("pretrain") if has_bars() else LogLines()
