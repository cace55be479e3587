"""Start and stop the page on a port."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr
from starlette.middleware import Middleware

from indel.web.app import build_app
from indel.web.guard import Guard, tell_busy
from indel.web.limits import LIMITS
from indel.web.models import Models
from indel.web.players import static, styles

# What the system has: fonts from elsewhere would be asked for over the network.
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "DejaVu Sans", "sans-serif")
_MONO = ("ui-monospace", "DejaVu Sans Mono", "Menlo", "Consolas", "monospace")
THEME = gr.themes.Base(font=_FONTS, font_mono=_MONO, primary_hue="blue", neutral_hue="gray")


@contextmanager
def running(
    models: Models,
    *,
    host: str = "127.0.0.1",
    port: int = 7860,
    waiting: int = LIMITS.waiting,
) -> Iterator[str]:
    """The page at the address that is yielded, until the block is left; port 0 takes a free one."""
    page = build_app(models, waiting=waiting)
    try:
        _, address, _ = page.launch(
            server_name=host,
            server_port=_checked_port(host, port),
            theme=THEME,
            css=styles(),
            head=f"<script>{static('player.js')}</script>",
            app_kwargs={
                "middleware": [Middleware(Guard)],
                "exception_handlers": {503: tell_busy},
            },
            footer_links=[],
            prevent_thread_lock=True,
            quiet=True,
            share=False,
            run_history=False,
            enable_monitoring=False,
            mcp_server=False,
            ssr_mode=False,
            max_file_size=1,
            # Gradio keeps what a visitor has seen last: only of a few visitors, then.
            state_session_capacity=LIMITS.sessions,
        )
        yield address
    finally:
        page.close(verbose=False)


def serve(models: Models, *, host: str, port: int) -> None:
    """Serve the page until Ctrl-C."""
    with running(models, host=host, port=port) as address:
        print(f"indel is at {address}   (Ctrl-C stops it)", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopped")


def _checked_port(host: str, port: int) -> int:
    """The port, or a free one for 0, if it can be listened on."""
    # Like the server's own socket: one that was in use a moment ago may be used again.
    try:
        with socket.create_server((host, port), reuse_port=False) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        raise ValueError(
            f"cannot listen on port {port} of {host}: {error.strerror or error}; choose another "
            "with --port or --host"
        ) from None
