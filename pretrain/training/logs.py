"""Logs of a training: JSON lines, a bar, sub-words per second, FLOPs utilisation (MFU)."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback

from nerbert.progress import Countdown, Progress, has_bars

_LOGGER = logging.getLogger("nerbert")


class LogLines(TrainerCallback):
    """Writes one line of JSON for each log of the Trainer, with the seconds that are left."""

    def __init__(self) -> None:
        self._countdown = Countdown(0)  # Trainer may evaluate, and log, before it trains

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._countdown = Countdown(state.max_steps, state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and logs:
            line = {"step": state.global_step, "of": state.max_steps}
            self._countdown.done = state.global_step
            if "loss" in logs:
                line["left_s"] = round(self._countdown.left_s)
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


class FitProgress(TrainerCallback):
    """Shows the steps of a fit with their loss and scores."""

    def __init__(self, name: str = "", lines: bool = True) -> None:
        """Describes the progress.

        Args:
            name: name of the bar and of the lines.
            lines: whether there are log lines if there is no terminal.
        """
        self._name, self._lines = name, lines
        self._progress: Progress | None = None
        self._loss = self._f1 = self._best = float("nan")

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._best = float("nan") if state.best_metric is None else state.best_metric
        step, steps = state.global_step, state.max_steps
        if step:
            before = f"{self._name}: " if self._name else ""
            _LOGGER.info("%scontinues after step %d of %d", before, step, steps)
        if state.is_world_process_zero:
            self._progress = Progress(
                self._name or "train", steps, "step", step, self._lines, leave=self._lines
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._progress is not None:
            self._progress.add(1, self._scores())

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self._loss = (logs or {}).get("loss", self._loss)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
    ) -> None:
        self._f1 = (metrics or {}).get("eval_f1", self._f1)
        self._best = max(self._f1, self._best) if self._best == self._best else self._f1
        if self._progress is not None:
            self._progress.add(0, self._scores())

    def _scores(self) -> str:
        """The loss, dev F1 and the best dev F1, as far as there are any."""
        numbers = {"loss": self._loss, "dev F1": self._f1, "best": self._best}
        return ", ".join(f"{n} {value:.4f}" for n, value in numbers.items() if value == value)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._progress is not None:
            self._progress.close()


def progress() -> TrainerCallback:
    """Shows a pre-training: a bar on a terminal or in a notebook, else lines of JSON."""
    return FitProgress("pretrain") if has_bars() else LogLines()
