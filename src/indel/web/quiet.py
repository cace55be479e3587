"""Errors of the server in the log, without their messages: these may quote what was typed."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import gradio.queueing
import gradio.route_utils
import gradio.routes

log = logging.getLogger(__name__)


def log_error(error: BaseException) -> None:
    """The kind and the place of an error."""
    log.error("%s", _kind_and_place(error))


def keep_quiet() -> None:
    """Let Gradio, the HTTP server and asyncio log errors in this way too."""
    for module in (gradio.queueing, gradio.routes, gradio.route_utils):
        # They use nothing else of the module `traceback`.
        setattr(module, "traceback", SimpleNamespace(print_exc=_print_exc))  # noqa: B010
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        if _without_message not in logger.filters:
            logger.addFilter(_without_message)


def _print_exc(*_: object, **__: object) -> None:
    error = sys.exception()
    if error is not None:
        log_error(error)


def _without_message(record: logging.LogRecord) -> bool:
    if record.exc_info and record.exc_info[1]:
        record.msg, record.args = _kind_and_place(record.exc_info[1]), ()
        record.exc_info, record.exc_text = None, None
    return True


def _kind_and_place(error: BaseException) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "nowhere"
    return f"{type(error).__name__} at {where}"
