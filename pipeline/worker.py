"""Starts Beam's workers on a host of a Flink or Spark cluster, with this Python.

    nerbert worker --port 50000

One runs beside each TaskManager of Flink, or Worker of Spark. A run then takes the flags
`--environment_type EXTERNAL --environment_config localhost:50000`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from pydantic.dataclasses import dataclass

from nerbert.command import Command
from nerbert.errors import UserError
from nerbert.options import CHECKED, Text, option


@dataclass(frozen=True, config=CHECKED)
class PoolOptions:
    """The options of `nerbert worker`."""

    port: int = option(50_000, "port to listen at", ge=1, le=65_535)
    host: Text = option(
        "localhost",
        "address to listen at: whoever reaches it can run code here, so the default lets only "
        "this host in",
    )


COMMAND = Command(__doc__, PoolOptions)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line until it is stopped, and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: PoolOptions) -> None:
    if not sys.platform.startswith("linux"):
        raise UserError("nerbert worker runs on Linux: it forks; elsewhere use a container")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its C part writes lines of its own
    from pipeline.runners.pool import serve  # Beam takes a second to load

    serve(options.host, options.port)


if __name__ == "__main__":
    sys.exit(main())
