"""Versions of transformers' Trainer with our model card, batches, loss, and rates in the logs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, Sampler
from transformers import PreTrainedModel, PrinterCallback, Trainer

from nerbert.errors import BadLossError
from pretrain.settings import RECORD
from pretrain.training.features import PIECES, UNLINKED, PieceFeatures
from pretrain.training.logs import Throughput
from pretrain.training.subwords import token_loss

WINDOW = 50
"""Default number of optimiser steps whose pieces are sorted by length together."""

_NO_PART = (RECORD, "training_args.bin")  # of the checkpoint

Groups = Sequence[tuple[npt.NDArray[np.int64], int]]
"""Numbers of pieces, and how many of them an epoch has."""


class LengthBatches(Sampler[list[int]]):
    """Batches of pieces of similar length.

    Every piece occurs once per epoch, on one device. First all pieces are shuffled. Then the pieces
    of a window of optimiser steps are sorted by length and cut into steps, and these steps are
    shuffled. The pieces of a step are distributed over its batches, one for each device and
    accumulated step; the sizes of batches differ by at most one. The pieces of a step do not depend
    on the number of devices and accumulated steps.
    """

    def __init__(
        self,
        lengths: npt.NDArray[np.int32],
        batch_size: int,
        accumulation: int = 1,
        world: int = 1,
        rank: int = 0,
        seed: int = 0,
        window: int = WINDOW,
        groups: Groups = (),
    ) -> None:
        """Plans the epochs.

        Args:
            lengths: number of sub-words of each piece, shape (pieces,).
            batch_size: largest number of pieces of an optimiser step, over all devices; the sizes
                of steps differ by at most one.
            accumulation: number of batches of a device per step.
            world: number of devices.
            rank: number of this device.
            seed: seed of the shuffles.
            window: number of optimiser steps whose pieces are sorted by length together.
            groups: numbers of pieces, and how many of them an epoch has: the next ones in each
                epoch. Without groups each epoch has all pieces.

        Raises:
            ValueError: a batch would be empty.
        """
        self._lengths = lengths
        self._groups = groups or [(np.arange(len(lengths)), len(lengths))]
        self._accumulation, self._world, self._rank, self._seed = accumulation, world, rank, seed
        self._epoch, self._window = 0, window
        size = epoch_size(self._groups)
        self.steps = -(-size // batch_size)
        # An empty batch would make this device wait for the others forever.
        if size // max(self.steps, 1) < accumulation * world:
            raise ValueError(f"{size} pieces do not fill {accumulation} x {world} batches")

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which decides the order of the pieces."""
        self._epoch = epoch

    def __len__(self) -> int:
        return self.steps * self._accumulation

    def __iter__(self) -> Iterator[list[int]]:
        for step in self._steps():
            for batch in np.array_split(step, self._accumulation):
                yield batch[self._rank :: self._world].tolist()

    def _steps(self) -> Iterator[npt.NDArray[np.int64]]:
        """The pieces of each optimiser step, sorted by length."""
        # No state of the process is used, so a resumed run draws the same order.
        draw = np.random.default_rng((self._seed, self._epoch))
        pieces_of_epoch = [
            np.take(pieces, np.arange(count) + self._epoch * count, mode="wrap")
            for pieces, count in self._groups
            if count
        ]
        order = (
            draw.permutation(np.concatenate(pieces_of_epoch))
            if pieces_of_epoch
            else np.zeros(0, np.int64)
        )
        # Sizes of steps differ by at most one piece: a small last step would have noisy gradients.
        bounds = np.arange(self.steps + 1) * len(order) // self.steps
        for first in range(0, self.steps, self._window):
            inner = bounds[first : first + self._window + 1]
            window = order[inner[0] : inner[-1]]
            window = window[np.argsort(self._lengths[window], kind="stable")]
            steps = np.split(window, inner[1:-1] - inner[0])
            for number in draw.permutation(len(steps)):
                yield steps[number]


def epoch_size(groups: Groups) -> int:
    """Number of pieces of an epoch; see `LengthBatches`."""
    return sum(count for _, count in groups)


class CardTrainer(Trainer):
    """A Trainer that writes our model card, and prints nothing."""

    def __init__(self, **kwargs: Any) -> None:
        """Takes the arguments of the Trainer, by name."""
        super().__init__(**kwargs)
        self.remove_callback(PrinterCallback)
        self._card = ""
        self.made: list[str] = []

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Writes our card instead of that of transformers, also before a push to the hub."""
        if self._card:
            path = Path(str(self.args.output_dir)) / "README.md"
            path.write_text(self._card, encoding="utf-8")

    def finish(self, make_card: Callable[[], str]) -> None:
        """Saves the model with its card, pushes both to the hub if requested, and ends the run.

        `made` has the names of the files then.

        Args:
            make_card: makes the text of the card; called only in the first process.
        """
        folder = Path(str(self.args.output_dir))
        before = _times(folder)
        # `_internal_call` saves without a push to the hub, which must wait for the card.
        self.save_model(str(self.args.output_dir), _internal_call=True)
        if self.is_world_process_zero():
            self._card = make_card()
            self.create_model_card()
        self.made = [name for name, time in _times(folder).items() if time != before.get(name)]
        if self.args.push_to_hub:
            self.push_to_hub()
        # A process that exits early crashes the others, which still communicate with it.
        self.accelerator.wait_for_everyone()
        self.accelerator.end_training()


def _times(folder: Path) -> dict[str, int]:
    """Time of each file in a folder, in nanoseconds; hidden files and folders are left out."""
    paths = [path for path in folder.glob("[!.]*") if path.is_file() and path.name not in _NO_PART]
    return {path.name: path.stat().st_mtime_ns for path in paths}


class _Loader(DataLoader[Any]):
    """A data loader whose batches depend on the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer."""
        self.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]


def _leave_ctrl_c(_: int) -> None:
    """Makes a worker of a data loader ignore Ctrl-C: the main process ends the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class TaggingTrainer(CardTrainer):
    """A Trainer for taggers, with our batches and loss, and rates in its logs."""

    def __init__(
        self,
        model: PreTrainedModel,
        batch_size: int,
        window: int = WINDOW,
        loss: Callable[..., torch.Tensor] = token_loss,
        groups: Groups = (),
        reads: Callable[[Mapping[str, Any]], None] | None = None,
        **kwargs: Any,
    ) -> None:
        """Takes the arguments of the Trainer, by name, and some of our own.

        Args:
            model: the model.
            batch_size: number of pieces of an optimiser step.
            window: number of optimiser steps whose pieces are sorted by length together.
            loss: computes the loss from the arguments of `token_loss`.
            reads: gets each train batch before the model, also the keys that it does not accept.
            groups: see `LengthBatches`.
            kwargs: other arguments of the Trainer.
        """
        super().__init__(model=model, compute_loss_func=loss, **kwargs)
        self.model_accepts_loss_kwargs = False  # the loss is ours, not the model's
        self._batch_size, self._window, self._groups = batch_size, window, groups
        self._reads = reads
        self.throughput = Throughput(model, self.args.device, self.args.world_size)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The batches of `LengthBatches` for this device; workers make the sub-words."""
        args = self.args
        assert isinstance(self.train_dataset, PieceFeatures)
        sampler = LengthBatches(
            self.train_dataset.lengths,
            self._batch_size,
            args.gradient_accumulation_steps,
            args.world_size,
            args.process_index,
            args.seed if args.data_seed is None else args.data_seed,
            self._window,
            self._groups,
        )
        workers = args.dataloader_num_workers
        pin = args.dataloader_pin_memory and args.device.type == "cuda"
        return _Loader(
            self.train_dataset,
            batch_sampler=sampler,
            collate_fn=self.data_collator,
            num_workers=workers,
            pin_memory=pin,
            worker_init_fn=_leave_ctrl_c,
            prefetch_factor=args.dataloader_prefetch_factor if workers else None,
        )

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Runs one batch forward and backward.

        Raises:
            BadLossError: the loss is NaN or infinite.
        """
        self.throughput.add(inputs["attention_mask"])
        # Read before the step, because the Trainer may delete the inputs.
        pieces = inputs[PIECES].tolist()
        loss: torch.Tensor = super().training_step(model, inputs, *args, **kwargs)
        if not torch.isfinite(loss):
            assert isinstance(self.train_dataset, PieceFeatures)
            ids = ", ".join(self.train_dataset.example_ids(pieces))
            raise BadLossError(
                f"loss is {loss.item()} in step {self.state.global_step + 1}; lower "
                f"--learning-rate or look at the examples of the batch: {ids}"
            )
        return loss

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Loss of a batch, without the keys that the model does not accept."""
        if self._reads is not None and model.training:
            self._reads(inputs)
        inputs = {key: value for key, value in inputs.items() if key not in (PIECES, UNLINKED)}
        return super().compute_loss(model, inputs, *args, **kwargs)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Adds rates to the logs of training steps."""
        if "loss" in logs:
            logs = {**logs, **self.throughput.log()}
        super().log(logs, *args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Scores the model. This time is not counted as training."""
        scores: dict[str, float] = super().evaluate(*args, **kwargs)
        self.throughput.start()
        return scores
