"""Running a stage's graph on Beam: the local default, or whatever runner Beam's own flags name."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError

if TYPE_CHECKING:  # Beam loads when a run begins: it is slow, and --help and bad input do not wait
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

REFUSED = {"DaskRunner": "it loses what a DoFn emits when a bundle ends"}
"""Runners that lose data, and how (seen on Beam 2.77)."""
_LINES_SHOWN = 30


@dataclass(frozen=True)
class Runner:
    """How graphs are run.

    Attributes:
        beam_args: flags that are Beam's.
        workers: processes of the local runner; None for one a core.
    """

    beam_args: tuple[str, ...] = ()
    workers: int | None = None

    def __post_init__(self) -> None:
        """Checks Beam's flags.

        Raises:
            UserError: a flag neither Beam nor we know, or a runner that loses data.
        """
        if self.workers is not None and self.workers < 1:
            raise UserError(f"--workers {self.workers}: give a number of at least 1")
        if not self.beam_args:
            return
        unknown = unknown_beam_flags(self.beam_args)
        if unknown:
            raise UserError(f"{' '.join(unknown)}: no flag of ours or Beam's; see --help")
        from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

        name = PipelineOptions(list(self.beam_args)).view_as(StandardOptions).runner or ""
        if (reason := REFUSED.get(name.rpartition(".")[2])) is not None:
            raise UserError(f"--runner {name}: refused, {reason}; use another runner")

    @property
    def is_local(self) -> bool:
        """Whether the graph runs on our local default."""
        return not any(arg.startswith("--runner") for arg in self.beam_args)

    def options(self, units: int) -> PipelineOptions:
        """Beam's options for a stage of that many units."""
        from apache_beam.options.pipeline_options import PipelineOptions

        if not self.is_local:
            return PipelineOptions(list(self.beam_args))
        workers = max(1, min(self.workers or os.cpu_count() or 1, units))
        mode = "multi_processing" if workers > 1 else "in_memory"
        return PipelineOptions([
            "--runner=FnApiRunner", f"--direct_num_workers={workers}",
            f"--direct_running_mode={mode}", *self.beam_args,
        ])  # fmt: skip

    def run(self, stage: beam.PTransform[Any, Any], units: int) -> None:
        """Runs a stage from the pipeline's root and waits for it."""
        import apache_beam as beam

        with _workers_aside():
            try:
                with beam.Pipeline(options=self.options(units)) as pipeline:
                    _ = pipeline | stage
            except RuntimeError as error:  # Beam wraps what ends a bundle, Ctrl-C too
                if "KeyboardInterrupt" in str(error):
                    raise KeyboardInterrupt from None
                raise


@contextmanager
def _workers_aside() -> Iterator[None]:
    """Keeps what worker processes print out of the way; shown when the run fails.

    Beam's workers inherit file descriptor 2, and log every step of their start to it. Our own
    messages go on to the old one, through `sys.stderr`.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log,
        os.fdopen(terminal, "w", buffering=1, encoding="utf-8") as stderr,
    ):
        os.dup2(log.fileno(), 2)
        streams = [h for h in logging.getLogger().handlers if isinstance(h, logging.StreamHandler)]
        before, sys.stderr = sys.stderr, stderr
        for handler in streams:
            handler.setStream(stderr)
        try:
            yield
        except Exception:
            log.seek(0)
            stderr.writelines(log.readlines()[-_LINES_SHOWN:])
            raise
        finally:
            stderr.flush()
            os.dup2(terminal, 2)
            sys.stderr = before
            for handler in streams:
                handler.setStream(before)


def unknown_beam_flags(beam_args: Sequence[str]) -> list[str]:
    """Flags that no class of Beam's options knows."""
    from apache_beam.options import pipeline_options
    from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

    parser = _BeamArgumentParser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for cls in sorted(PipelineOptions.__subclasses__(), key=lambda c: c.__name__):
        if cls.__module__ == pipeline_options.__name__:
            cls._add_argparse_args(parser)
    try:
        return parser.parse_known_args(list(beam_args))[1]
    except SystemExit:
        return list(beam_args)


def quiet_beam() -> None:
    """Keeps Beam's own messages, and its remarks on absent extras, out of the way."""
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # a trace for each cut channel
    logging.getLogger().addFilter(lambda record: "apitools" not in record.getMessage())
