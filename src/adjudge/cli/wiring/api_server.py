"""Composes the HTTP server for ``adjudge api`` and ``adjudge up``."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click
import uvicorn
import uvloop

from adjudge import settings as settings_source
from adjudge.api.app import create_app
from adjudge.api.container import Services
from adjudge.api.routing import API_ROOT
from adjudge.api.sse import SseConnections
from adjudge.blobs.driver import BlobStore
from adjudge.cache.two_tier import open_cache
from adjudge.cli.http_protocol import HeadLimits, bounded
from adjudge.cli.wiring.accounts import make_credentials
from adjudge.cli.wiring.chains import make_engine
from adjudge.cli.wiring.drivers import open_buckets, open_registry
from adjudge.cli.wiring.jobs import make_jobs
from adjudge.cli.wiring.judge import load_languages
from adjudge.cli.wiring.process import open_health_server, open_tracing, registered, reload_log_level_on_hangup, tune_gc
from adjudge.cli.wiring.scheduler import inline_dispatch
from adjudge.cli.wiring.services import compose_services
from adjudge.domain.errors import InvalidInput
from adjudge.observe import logs
from adjudge.registry import ProcessRole
from adjudge.relay.housekeeping import record_metrics
from adjudge.services.admission import AdmissionController, LoadSampler
from adjudge.services.ccs_feed_watcher import FeedWatcher
from adjudge.services.event_feed import EventFeed
from adjudge.services.health import DISPENSABLE, component_checks
from adjudge.services.oidc import OidcProvider
from adjudge.services.passwords import PasswordHashing
from adjudge.services.scoreboard_feed import ScoreboardFeed
from adjudge.services.scoreboard_rows import encode_change
from adjudge.services.system_metrics import SystemMetrics
from adjudge.services.viewer import CredentialCache
from adjudge.settings import Settings
from adjudge.settings.server_section import ServerSettings
from adjudge.store import Database
from adjudge.stream import Stream
from adjudge.web import app as pages

_EXAMPLE: Final = Path("examples/problems/multiples")
"""The example problem of a checkout."""
_BACKLOG: Final = 2048
_TURN_SEC: Final = 0.0005
"""How long one thread may keep the interpreter while another waits for it.

The event loop and SQLite's writer take turns: at the usual 5 ms, the writer waits longer for each of its turns than its
statements take.
"""


def run_server(serve: Callable[[Settings, socket.socket], Coroutine[None, None, None]], **chosen: object) -> None:
    """Run ``serve`` on the configured address; ``host`` and ``port`` override the settings."""
    settings = settings_source.load({f"server.{name}": value for name, value in chosen.items()})
    logs.configure(settings.log.level, settings.log.format)
    with (
        closing(bind_socket(settings.server.host, settings.server.port)) as listener,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(serve(settings, listener))


@asynccontextmanager
async def open_services(
    settings: Settings, database: Database, stream: Stream, blobs: BlobStore
) -> AsyncIterator[Services]:
    """The services of a server, on the drivers that its process shares with other roles."""
    async with (
        open_registry(settings, database) as registry,
        open_buckets(settings) as buckets,
        inline_dispatch(settings, database, stream),
        open_cache(
            database,
            settings.jobs.redis_url.reveal(),
            settings.server.environment,
            max_entries=settings.cache.entries,
            max_bytes=settings.cache.bytes,
        ) as cache,
    ):
        sampler = LoadSampler(database, registry, count_to=settings.admission.high_watermark + 1)
        admission = AdmissionController(settings.admission, database, buckets, sampler)
        engine, feed = make_engine(settings), EventFeed(database)
        scoreboard_feed, feed_watcher = ScoreboardFeed(database, encode_change), FeedWatcher(database)
        credentials = make_credentials(settings, database)
        connections = make_sse_connections(settings, credentials)
        system = SystemMetrics(database, stream, registry)
        try:
            yield compose_services(
                settings,
                database,
                jobs=make_jobs(settings, engine),
                engine=engine,
                blobs=blobs,
                cache=cache,
                registry=registry,
                languages=load_languages(),
                buckets=buckets,
                admission=admission,
                credentials=credentials,
                passwords=PasswordHashing(),
                feed=feed,
                scoreboard_feed=scoreboard_feed,
                feed_watcher=feed_watcher,
                connections=connections,
                checks=component_checks(database, blobs=blobs, stream=stream, registry=registry),
                system_metrics=system,
                oidc=_oidc_provider(settings),
            )
        finally:
            await connections.close()
            await feed.close()
            await scoreboard_feed.close()
            await feed_watcher.close()
            await credentials.close()
            await admission.close()
            await system.close()


def make_sse_connections(settings: Settings, credentials: CredentialCache) -> SseConnections:
    """Slots of event streams; a revoked credential ends its streams within the credential cache time."""
    server = settings.server
    look_sec = max(1.0, settings.accounts.credential_cache_sec)
    return SseConnections(credentials, per_user=server.streams_per_user, most=server.streams_most, look_sec=look_sec)


def _oidc_provider(settings: Settings) -> OidcProvider | None:
    accounts = settings.accounts
    if not accounts.oidc_issuer:
        return None
    return OidcProvider(accounts.oidc_issuer, accounts.oidc_client_id, accounts.oidc_client_secret.reveal())


async def serve_http(
    services: Services, database: Database, listener: socket.socket, notes: Sequence[str] = ()
) -> None:
    """Answer requests until a signal ends it."""
    app = create_app(services)
    pages.install(app, services)
    config = http_config(app, services.settings.server)
    tune_gc()
    sys.setswitchinterval(_TURN_SEC)
    reload_log_level_on_hangup()
    system = services.system_metrics
    needed = {name: check for name, check in services.checks.items() if name not in DISPENSABLE}
    async with (
        open_tracing(services.settings, "api"),
        registered(services.settings, database, ProcessRole.API),
        open_health_server(services.settings, system.render, needed),
        record_metrics(database, f"{socket.gethostname()}-{os.getpid()}", system),
    ):
        _print_startup(services.settings, listener, notes)
        await HttpServer(config, app.state.streams.close).serve([listener])


def http_config(app: Callable[..., Any], server: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounded(HeadLimits(seconds=server.head_timeout_sec)),
        ws="none",
        log_config=None,
        access_log=False,  # the envelope logs requests, with their ids
        server_header=False,
        proxy_headers=bool(server.trusted_proxies),
        forwarded_allow_ips=server.trusted_proxies or None,
        timeout_graceful_shutdown=round(server.shutdown_sec),
    )


class HttpServer(uvicorn.Server):
    """Uvicorn that exits with code 0 on a signal; a second signal ends it immediately."""

    def __init__(self, config: uvicorn.Config, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take nothing new, end the event streams, and let the rest finish."""
        super().handle_exit(sig, frame)
        self._on_exit()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let a signal end the server, and nothing more: uvicorn would raise it again afterwards."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind the port before anything else starts, or raise an error with a fix."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise InvalidInput(
            f"server.port: cannot listen on {host}:{port}: {error.strerror or error}. Choose "
            "another port with --port (or PORT=… make up); 0 selects a free one.",
            field="server.port",
        ) from error
    return listener


def _print_startup(settings: Settings, listener: socket.socket, notes: Sequence[str]) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    base = f"http://{shown}:{port}"
    click.echo(f"Adjudge is running at {base}")
    click.echo(f"  database {settings.database.url}")
    click.echo(f"  health   {base}{API_ROOT}/health/ready")
    click.echo(f"  API      {base}{API_ROOT}/docs")
    click.echo(f"  metrics  {base}/metrics")
    if _EXAMPLE.is_dir():
        click.echo(
            f"  example  .venv/bin/adjudge judge {_EXAMPLE}/submissions/accepted/formula.cpp --problem {_EXAMPLE}"
        )
    for note in (*notes, *settings.unknown_variables):
        click.echo(f"  note     {note}")
    click.echo("Press Ctrl-C to stop.")
