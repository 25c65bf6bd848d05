"""The dashboard's pages and answers, as a Starlette application."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from boardcluster.errors import BoardclusterError, EmptySelectionError, StoreError, UsageError
from boardcluster.queries.runs import find_attempt
from boardcluster.store import Store
from boardcluster.web.control import Control, WorkOrder, workload_choices
from boardcluster.web.guard import REPORT_POLICY
from boardcluster.web.published import published_beside
from boardcluster.web.reports import Reports
from boardcluster.web.stored import StoredRuns
from boardcluster.web.watching import ClusterWatch

__all__ = ["Dashboard", "build_app"]

_STATIC = Path(__file__).parent / "static"
_QUEUE_EVENTS = 60
_BEAT_SECONDS = 15.0
_LISTENERS_MOST = 50
_FINE_POINTS = 600

_Found = TypeVar("_Found")


@dataclass(slots=True)
class Dashboard:
    """Everything that the page asks for.

    Args:
        watch: what happens now.
        stored: what happened before.
        reports: writes the report.
        control: starts and stops work; None where the page can change nothing.
    """

    watch: ClusterWatch
    stored: StoredRuns
    reports: Reports
    control: Control | None = None
    on_begin: Callable[[], object] = lambda: None
    """Called once the page can be opened."""
    _queues: set[asyncio.Queue[str | None]] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None
    _ended: bool = False

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to watch."""
        self._loop = loop
        self.watch.tell = self._tell
        self.watch.is_heard = lambda: bool(self._queues)
        self.watch.start()

    def end(self) -> None:
        """End every stream of events, so that the server can end; none begins any more."""
        self._ended = True
        for queue in tuple(self._queues):
            _put(queue, None, force=True)

    def end_soon(self) -> None:
        """The same from a signal or from another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.end)

    def _tell(self, name: str, text: str) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it is closed just now
                loop.call_soon_threadsafe(self._publish, _event(name, text))

    def _publish(self, event: str) -> None:
        for queue in tuple(self._queues):
            if not _put(queue, event):  # it does not read: it comes again, and gets everything
                self._queues.discard(queue)
                _put(queue, None, force=True)

    async def events(self) -> AsyncIterator[str]:
        """What happens, from now on, for one listener."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(_QUEUE_EVENTS)
        self._queues.add(queue)
        try:
            yield _event("hello", await run_in_threadpool(self.watch.hello))
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), _BEAT_SECONDS)
                except TimeoutError:
                    event = ": still here\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._queues.discard(queue)

    @property
    def is_full(self) -> bool:
        """Whether no more listeners are let in."""
        return self._ended or len(self._queues) >= _LISTENERS_MOST


def _event(name: str, text: str) -> str:
    return f"event: {name}\ndata: {text}\n\n"


def _put(queue: asyncio.Queue[str | None], event: str | None, *, force: bool = False) -> bool:
    if force:
        while not queue.empty():
            queue.get_nowait()
    try:
        queue.put_nowait(event)
    except asyncio.QueueFull:
        return False
    return True


def build_app(board: Dashboard) -> Starlette:
    """Return the application; ``Guard`` belongs in front of it."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        board.begin(asyncio.get_running_loop())
        board.on_begin()
        yield
        board.end()
        await run_in_threadpool(board.watch.close)

    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/events", _events),
            Route("/api/about", _about),
            Route("/api/runs", _runs),
            Route("/api/run", _run),
            Route("/api/curves", _curves),
            Route("/api/published", _published),
            Route("/api/report", _write_report),
            Route("/api/plan", _plan, methods=["POST"]),
            Route("/api/start", _start, methods=["POST"]),
            Route("/api/stop", _stop, methods=["POST"]),
            Route("/api/outcome", _outcome),
            Route("/report/{name:path}", _report),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        exception_handlers={BoardclusterError: _told, Exception: _defect},
        lifespan=lifespan,
    )
    app.state.board = board
    return app


def _board(request: Request) -> Dashboard:
    found: Dashboard = request.app.state.board
    return found


def _told(_: Request, error: Exception) -> Response:
    """Answer with an error of ours, in its own words."""
    assert isinstance(error, BoardclusterError)  # noqa: S101  it is registered for these
    words = {"error": error.message, "hint": error.hint}
    return JSONResponse(words, status_code=_status(error))


def _status(error: BoardclusterError) -> int:
    if isinstance(error, StoreError):
        return 500
    missing = isinstance(error, EmptySelectionError)
    return 404 if missing else 400 if isinstance(error, UsageError) else 409


def _defect(_: Request, error: Exception) -> Response:
    """Answer with what is a bug of ours, without its inner parts."""
    words = f"this is a bug in boardcluster ({type(error).__name__}); please report it"
    return JSONResponse({"error": words}, status_code=500)


async def _off_the_loop(function: Callable[..., _Found], *values: Any, **named: Any) -> _Found:
    return await run_in_threadpool(lambda: function(*values, **named))


async def _page(_: Request) -> Response:
    return FileResponse(_STATIC / "index.html")


async def _events(request: Request) -> Response:
    board = _board(request)
    if board.is_full:
        return JSONResponse({"error": "too many pages are open"}, status_code=503)
    return StreamingResponse(board.events(), media_type="text/event-stream")


async def _about(request: Request) -> Response:
    """What the page can do: whether it may start work, and what there is to start."""
    board = _board(request)
    controlled = board.control is not None
    return JSONResponse(
        {
            "home": str(board.watch.home),
            "control": controlled,
            "workloads": await _off_the_loop(workload_choices) if controlled else [],
        }
    )


async def _runs(request: Request) -> Response:
    return JSONResponse(await _off_the_loop(_board(request).stored.table))


async def _run(request: Request) -> Response:
    name = _needed(request, "name")
    return JSONResponse(await _off_the_loop(_board(request).stored.run, name))


async def _curves(request: Request) -> Response:
    query = request.query_params
    found = await _off_the_loop(
        _board(request).stored.curves,
        _needed(request, "name"),
        query.get("curve", "cpu"),
        begin_seconds=_number(query.get("begin")),
        end_seconds=_number(query.get("end")),
        points=int(_number(query.get("points")) or _FINE_POINTS),
    )
    return JSONResponse(found)


async def _published(request: Request) -> Response:
    home, name = _board(request).stored.home, _needed(request, "name")

    def find() -> list[dict[str, Any]]:
        with Store.open(home, read_only=True, whole=False) as store:
            result, _ = find_attempt(store, name)
        return published_beside(result.trial)

    return JSONResponse(await _off_the_loop(find))


async def _write_report(request: Request) -> Response:
    """Write the report if the store has changed; say where it is."""
    board = _board(request)
    await _off_the_loop(board.reports.write)
    return JSONResponse({"address": "/report/report.html"})


async def _report(request: Request) -> Response:
    """A file of the report; without a name it is written first, also without script."""
    board = _board(request)
    name = request.path_params["name"]
    if not name:
        try:
            await _off_the_loop(board.reports.write)
        except BoardclusterError as error:  # a browser shows this itself, without our script
            words = f"The report cannot be shown: {error.message}\n{error.hint}\n"
            return PlainTextResponse(words, status_code=_status(error))
        name = "report.html"
    path = board.reports.page(name)
    if path is None:
        raise EmptySelectionError(f"the report has no page {name[:200]}", hint="open /report/")
    return FileResponse(path, headers={"content-security-policy": REPORT_POLICY})


async def _plan(request: Request) -> Response:
    control, order = await _ordered(request)
    return JSONResponse(await _off_the_loop(control.plan, order))


async def _start(request: Request) -> Response:
    control, order = await _ordered(request)
    await _off_the_loop(control.start, order)
    return JSONResponse({"started": True})


async def _stop(request: Request) -> Response:
    return JSONResponse({"stopping": await _off_the_loop(_controlled(request).stop)})


async def _outcome(request: Request) -> Response:
    control = _board(request).control
    return JSONResponse(await _off_the_loop(control.outcome) if control is not None else None)


async def _ordered(request: Request) -> tuple[Control, WorkOrder]:
    try:
        document = json.loads(await request.body())
    except ClientDisconnect as error:  # the guard's word for a body that is longer, too
        raise UsageError(
            "the form is too long, or broke off", hint="send what the form sends"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError("the form is not JSON", hint="send what the form sends") from error
    return _controlled(request), await _off_the_loop(WorkOrder.read, document)


def _controlled(request: Request) -> Control:
    control = _board(request).control
    if control is None:
        raise UsageError("this dashboard is read-only", hint="start it with --control")
    return control


def _needed(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if not value:
        raise UsageError(f"{name} is missing", hint=f"add ?{name}=")
    return value


def _number(text: str | None) -> float | None:
    try:
        found = float(text) if text else None
    except ValueError as error:
        raise UsageError(f"{str(text)[:40]!r} is not a number", hint="give seconds") from error
    return found if found is None or abs(found) < 1e12 else None
