"""Which executor runs a command's stages."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.execution.executor import Executor
from pipeline.execution.local import Local


def executor(workers: int | None, beam_flags: Sequence[str]) -> Executor:
    """The executor of a run.

    Args:
        workers: number of local processes; None for one a core.
        beam_flags: flags of Beam; none for local processes.

    Raises:
        UserError: Beam does not know a flag, or the runner loses data.
    """
    if not beam_flags:
        return Local(workers)
    from pipeline.clusters.beam_runner import Beam  # Beam takes a second to load

    return Beam.of(beam_flags)
