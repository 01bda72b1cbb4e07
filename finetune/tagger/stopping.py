"""When a fine-tuning stops."""

from __future__ import annotations

from typing import Any

from transformers import EarlyStoppingCallback


class Stopping(EarlyStoppingCallback):
    """Ends a training without a better dev F1, but not in its first steps."""

    def __init__(
        self, early_stopping_patience: int, early_stopping_threshold: float = 0.0, first: int = 0
    ) -> None:
        """Takes the arguments of transformers' callback, and a number of first steps."""
        super().__init__(early_stopping_patience, early_stopping_threshold)
        self._first = first

    def state(self) -> dict[str, Any]:
        """The state that a checkpoint keeps."""
        content: dict[str, Any] = super().state()
        return {**content, "args": {**content["args"], "first": self._first}}

    def on_evaluate(  # type: ignore[override]
        self, args: Any, state: Any, control: Any, metrics: Any, **facts: Any
    ) -> None:
        super().on_evaluate(args, state, control, metrics, **facts)  # type: ignore[no-untyped-call]
        if state.global_step < self._first:
            self.early_stopping_patience_counter = 0
            control.should_training_stop = False
