"""The options of `nerbert worker`; they load no Beam."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Text, option


@dataclass(frozen=True, config=CHECKED)
class WorkerOptions:
    """Starts Beam's workers on a host of a Flink or Spark cluster, with this Python.

        nerbert worker --port 50000

    One runs beside each TaskManager of Flink, or Worker of Spark. A run then takes the flags
    `--environment_type EXTERNAL --environment_config localhost:50000`.
    """

    port: int = option(50_000, "port to listen at", ge=1, le=65_535)
    host: Text = option(
        "localhost",
        "address to listen at: whoever reaches it can run code here, so the default lets only "
        "this host in",
    )
