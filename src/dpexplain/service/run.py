"""From service.toml to a running server: one process, or several on one ledger.

The parent loads everything once, so that mistakes show when it is started, and a model is asked about every row once. Workers then read
the labels it found: from the owner's cache, or from a folder that only this user may read and that is removed at the end.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from dpexplain.backends._workers import THREADS
from dpexplain.errors import DpexplainError, ParameterError
from dpexplain.progress import progress_steps
from dpexplain.registration.cached_labels import Progress
from dpexplain.registration.sources import decide_streaming
from dpexplain.service.app import Service, create_app
from dpexplain.service.backend import Backend, open_backend
from dpexplain.service.config import ServiceConfig, load_config
from dpexplain.service.connections import HttpConnection, raise_file_limit
from dpexplain.service.guard import LOG, log_to_stderr, place_of
from dpexplain.service.keys import KeyFile
from dpexplain.service.processes import end_with_parent, shared_folder
from dpexplain.service.prometheus_metrics import Metrics
from dpexplain.service.worker_parent import Workers

FILE, FOLDER, STREAM = "DPEXPLAIN_SERVICE_FILE", "DPEXPLAIN_SERVICE_FOLDER", "DPEXPLAIN_SERVICE_STREAM"
LOOP = "dpexplain.service.fair_loop:FairLoop"  # of workers that share a port
RESTART_PAUSE = 1.0  # seconds before a worker that cannot start ends, so that it is not started again and again at once
GRACE = 30  # seconds that requests under way get when the server is told to stop
SILENCE = 30  # seconds after which a worker that does not answer its parent is replaced: on a busy machine uvicorn's 5 pass while it starts


def serve(config: ServiceConfig, progress: Progress = iter, report: Callable[[str], None] = print) -> None:
    """Run until interrupted."""
    settings = config.settings
    if config.keys is not None and not KeyFile(config.keys).list_keys():
        raise ParameterError(
            f"there are no keys in {config.keys}, so nobody could ask. Run: dpexplain serve keys add --role analyst"
        )
    require_free_address(settings.host, settings.port)
    raise_file_limit()
    with shared_folder() as folder:
        config = sharing_labels(stream_if_needed(config), folder)
        with progress_steps("starting", 2) as step:
            step("reading what is served; the first start also compiles")
            backend = open_backend(config, progress)
            step("ready")
        scheme = "https" if settings.tls_certificate else "http"
        report(
            f"Serving {settings.name} at {scheme}://{settings.host}:{settings.port} with {settings.workers} worker(s). Stop with Ctrl-C."
        )
        if settings.workers == 1:
            log_to_stderr()
            # the server stops by itself, then raises the signal again: that is no failure
            signal.signal(signal.SIGTERM, lambda *_: None)
            uvicorn.run(application(config, backend, None), **server_options(config))
            return
        backend.close()
        del backend  # the rows: each worker reads its own
        os.environ |= {FILE: str(config.path), FOLDER: str(folder), STREAM: "yes" if config.streams else "no"}
        os.environ |= threads_of_worker(settings.workers)
        run_workers(
            uvicorn.Config(
                "dpexplain.service.run:worker", factory=True, workers=settings.workers, loop=LOOP, **server_options(config)
            )
        )


def threads_of_worker(workers: int) -> dict[str, str]:
    """How many threads read rows and do linear algebra in each worker, unless the owner has set it: all of them together use each core once."""
    each = str(max(1, (os.cpu_count() or 1) // workers))
    return {name: os.environ.get(name, each) for name in (THREADS, "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


def require_free_address(host: str, port: int) -> None:
    """Raise ParameterError if nobody can be served there: asked before anything is read, which may take minutes."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name with an empty or too long part
        why = getattr(error, "strerror", "this is no address")
        raise ParameterError(
            f"cannot listen at {host}:{port} ({why}). Stop what listens there, or set another host or port under [service]"
        ) from None


def run_workers(config: uvicorn.Config) -> None:
    """Run workers as `uvicorn.run` does, but without Nagle's algorithm: on a shared socket asyncio leaves it on, which costs 40 ms a response."""
    shared = config.bind_socket()
    shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit it
    with suppress(KeyboardInterrupt):
        Workers(config, sockets=[shared]).run()


def sharing_labels(config: ServiceConfig, folder: Path) -> ServiceConfig:
    """Keep labels, with several workers and a model, for as long as the server runs."""
    rows = config.rows
    if rows is None or rows.source.model is None or rows.source.cache or config.settings.workers == 1:
        return config
    return replace(config, rows=replace(rows, source=replace(rows.source, cache=folder / "labels")))


def stream_if_needed(config: ServiceConfig) -> ServiceConfig:
    """Rows are held by every worker where there is memory for that, and else read from their files for each question."""
    rows = config.rows
    if rows is None:
        return config
    return replace(config, rows=replace(rows, source=decide_streaming(rows.source, config.settings.workers)))


def apply_decision(config: ServiceConfig, stream: bool) -> ServiceConfig:
    """Apply the parent's decision: free memory differs once other workers have read their rows."""
    rows = config.rows
    return config if rows is None else replace(config, rows=replace(rows, source=replace(rows.source, stream=stream)))


def worker() -> ASGIApp:
    """The main function of a worker process. The parent has made the ledger: a worker that finds none must not make one."""
    end_with_parent()
    folder = Path(os.environ[FOLDER])
    log_to_stderr()
    config, backend = open_or_exit(folder)
    return application(config, backend, folder)


def open_or_exit(folder: Path) -> tuple[ServiceConfig, Backend]:
    """A worker that cannot start prints the reason in one line; the parent starts another, which succeeds once the cause is gone.

    What other libraries raise may quote rows, so only its type and place are printed.
    """
    try:
        config = sharing_labels(apply_decision(load_config(os.environ[FILE]), os.environ[STREAM] == "yes"), folder)
        return config, open_backend(config, may_create=False)
    except Exception as error:
        why = str(error) if isinstance(error, DpexplainError) else f"{type(error).__name__} at {place_of(error)}"
        LOG.error("%s", json.dumps({"error": "a worker cannot start", "why": why}))
        time.sleep(RESTART_PAUSE)
        sys.exit(1)


def application(config: ServiceConfig, backend: Backend, folder: Path | None) -> ASGIApp:
    keys = None if config.keys is None else KeyFile(config.keys)
    return create_app(Service(backend, config.settings, keys, Metrics(folder), config.settings.workers))


def server_options(config: ServiceConfig) -> dict[str, Any]:
    settings, folder = config.settings, config.path.parent
    tls = {"ssl_certfile": settings.tls_certificate, "ssl_keyfile": settings.tls_key}
    return {
        "host": settings.host,
        "port": settings.port,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # a caller must not choose the address that its rate limit counts
        "timeout_graceful_shutdown": GRACE,
        "timeout_worker_healthcheck": SILENCE,
        "http": HttpConnection,
        "ws": "none",
        **{name: str(folder / path) for name, path in tls.items() if path is not None},
    }
