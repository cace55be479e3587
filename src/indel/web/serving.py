"""Start and stop the page on a port."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.middleware import Middleware

from indel.web.app import build_app
from indel.web.connections import http_settings
from indel.web.guard import Guard, tell_busy
from indel.web.models import Models
from indel.web.players import script, styles
from indel.web.quiet import keep_quiet
from indel.web.request_limits import LIMITS

# What the system has: fonts from elsewhere would be asked for over the network.
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "DejaVu Sans", "sans-serif")
_MONO = ("ui-monospace", "DejaVu Sans Mono", "Menlo", "Consolas", "monospace")
THEME = gr.themes.Base(font=_FONTS, font_mono=_MONO, primary_hue="blue", neutral_hue="gray").set(
    # Gradio's own have contrasts of 2.1 to 3.7; at least 4.5 can be read by nearly everybody.
    button_primary_background_fill="#00619c",
    button_primary_background_fill_hover="#004f80",
    button_primary_background_fill_dark="#00619c",
    button_primary_background_fill_hover_dark="#004f80",
    body_text_color_subdued="#4d5360",
    block_info_text_color="#4d5360",
    input_placeholder_color="#5b6270",
    input_placeholder_color_dark="#b6bac2",
)


@contextmanager
def running(
    models: Models,
    *,
    host: str = "127.0.0.1",
    port: int = 7860,
    waiting: int = LIMITS.waiting,
    names: Collection[str] = (),
    frames: Collection[str] = (),
    examples: bool = True,
) -> Iterator[str]:
    """The page at the address that is yielded, until the block is left; port 0 takes a free one.

    It answers under any address of the machine and under `localhost`, its own name, and `names`;
    the sites `frames` may show it in a frame.
    """
    keep_quiet()
    listener = _listen(host, port)
    page = build_app(models, waiting=waiting, examples=examples)
    known = {"localhost", socket.gethostname().lower(), host.lower(), *map(str.lower, names)}
    app = _web_app(page, known, frames)
    server = uvicorn.Server(uvicorn.Config(app, **http_settings()))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start; its log says why")
            time.sleep(0.01)
        shown = "localhost" if host in ("0.0.0.0", "::") else host
        yield f"http://{f'[{shown}]' if ':' in shown else shown}:{listener.getsockname()[1]}/"
    finally:
        page._queue.close()  # type: ignore[no-untyped-call]
        server.should_exit = True
        thread.join(10)
        listener.close()


def serve(
    models: Models,
    *,
    host: str,
    port: int,
    names: Collection[str] = (),
    frames: Collection[str] = (),
) -> None:
    """Serve the page until Ctrl-C."""
    with running(models, host=host, port=port, names=names, frames=frames) as address:
        print(f"indel is ready at {address}   (Ctrl-C stops it)", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopped")


def _web_app(page: gr.Blocks, names: Collection[str], frames: Collection[str]) -> FastAPI:
    """The page behind its guard, without Gradio's own server and what that would ask and print."""
    guard = Middleware(Guard, page=page, names=names, frames=frames)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, middleware=[guard])
    # Gradio keeps what a visitor has seen last: only of a few visitors, then.
    page.state_session_capacity = LIMITS.sessions
    gr.mount_gradio_app(
        app,
        page,
        path="/",
        theme=THEME,
        css=styles(),
        head=f"<script>{script()}</script>",
        app_kwargs={"exception_handlers": {503: tell_busy}},
        footer_links=[],
        run_history=False,
        show_error=False,
        enable_monitoring=False,
        mcp_server=False,
        ssr_mode=False,
        max_file_size=1,
    )
    return app


def _listen(host: str, port: int) -> socket.socket:
    """A socket on the port, or on a free one for 0."""
    if not host.strip():
        raise ValueError("--host must be an address or a name, such as 127.0.0.1, got ''")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, reuse_port=False)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"cannot listen on port {port} of {host}: {reason}; choose another "
            "with --port or --host"
        ) from None
