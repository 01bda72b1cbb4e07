"""A pool of workers on one host: Beam's interface for it, with this Python.

Beam's own pool starts the first `python` of the PATH, which may lack our package, and starts it
anew for each step of a job, which takes a second of a core every time. Here workers are forked
from a process that has loaded Beam and our stages.
"""

from __future__ import annotations

import errno
import logging
import os
import platform
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

# Before gRPC is loaded: its C part writes lines of its own.
os.environ["GRPC_VERBOSITY"] = os.environ.get("GRPC_VERBOSITY", "NONE")

import apache_beam
import grpc
from apache_beam.portability.api import beam_fn_api_pb2 as api
from apache_beam.portability.api import beam_fn_api_pb2_grpc as api_grpc

from nerbert import __version__
from nerbert.errors import RunError, UserError
from pipeline.clusters.fork_server import ForkServer
from pipeline.clusters.options import WorkerOptions

_LOGGER = logging.getLogger("nerbert")


class Pool(api_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service that starts and stops workers."""

    def __init__(self, server: ForkServer) -> None:
        """Takes the process that makes the workers."""
        self._server = server

    def StartWorker(self, request: api.StartWorkerRequest, _: object) -> api.StartWorkerResponse:
        """Starts a worker that works for a runner."""
        try:
            self._server.start(request.worker_id, request.control_endpoint.url)
        except OSError as error:
            return api.StartWorkerResponse(error=f"the pool cannot start a worker: {error}")
        return api.StartWorkerResponse()

    def StopWorker(self, request: api.StopWorkerRequest, _: object) -> api.StopWorkerResponse:
        """Stops a worker at once: every file is written whole or not at all."""
        self._server.stop(request.worker_id)
        return api.StopWorkerResponse()


def serve(settings: WorkerOptions) -> None:
    """Serves until the process is stopped.

    Raises:
        UserError: the port is taken, or this is not Linux.
        RunError: the process that makes the workers has ended.
    """
    if not sys.platform.startswith("linux"):
        raise UserError("nerbert worker runs on Linux: it forks; elsewhere use a container")
    host, port = settings.host, settings.port
    _check_port(host, port)
    options = [("grpc.so_reuseport", 0)]  # else a second pool would take every other call
    with ForkServer() as workers:
        server = grpc.server(ThreadPoolExecutor(8), options=options)
        api_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(Pool(workers), server)
        try:
            server.add_insecure_port(f"{host}:{port}")
        except RuntimeError:
            raise _no_port(host, port) from None
        server.start()
        _LOGGER.info(
            "nerbert %s, Python %s, Beam %s: workers at %s:%d",
            __version__,
            platform.python_version(),
            apache_beam.__version__,
            host,
            port,
        )
        try:
            code = workers.wait()
        finally:
            server.stop(0)
    raise RunError(f"The process that makes the workers ended with code {code}; see above")


def _check_port(host: str, port: int) -> None:
    """Checks that the port is free at each address of a host.

    gRPC is content with one of them, and a runner may call another one. Also a connection that
    somebody on this host has opened takes a port.

    Raises:
        UserError: it is not.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        raise _no_port(host, port) from None
    for family, kind, _, _, address in addresses:
        try:
            with socket.socket(family, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:  # a host without IPv6 has no such address
                raise _no_port(host, port) from None


def _no_port(host: str, port: int) -> UserError:
    return UserError(f"--port {port}: taken, or {host} is not this host; give another")
