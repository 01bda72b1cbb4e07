"""The Trainer's logs as lines of JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

from transformers import TrainerCallback

_LOGGER = logging.getLogger("nerbert")


class LogLines(TrainerCallback):
    """One JSON line for each of the Trainer's logs."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and logs:
            line = {"step": state.global_step, "of": state.max_steps}
            values = {k: float(f"{v:.7g}") if isinstance(v, float) else v for k, v in logs.items()}
            _LOGGER.info(json.dumps({**line, **values}))
