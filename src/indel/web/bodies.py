"""The body of a request that asks for work: checked before Gradio sees it, and made anew.

Gradio answers a call with too few values, or with values of the wrong kind, by a traceback in the
log that quotes them. Only what is checked here gets through.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import gradio as gr

Scalar = str | bool | int | float | None
_TOKEN_LENGTH = 64


class BadBody(ValueError):
    """What is wrong with a body, in one sentence that does not quote what was typed."""


class Calls:
    """What can be asked for: events of the page by number, endpoints of the API by name."""

    def __init__(self, page: gr.Blocks) -> None:
        self.inputs = {number: len(fn.inputs) for number, fn in page.fns.items()}
        self.fields = {
            str(fn.api_name): inspect.signature(fn.fn).parameters
            for fn in page.fns.values()
            if fn.fn is not None and fn.api_visibility == "public"
        }

    def event(self, body: bytes) -> bytes:
        """An event of the page: a list of values for the function of that number."""
        fields = _parsed(body)
        number, values = fields.get("fn_index"), fields.get("data")
        if isinstance(number, bool) or not isinstance(number, int) or number not in self.inputs:
            raise BadBody("fn_index must be the number of an event of this page")
        if not isinstance(values, list) or len(values) != self.inputs[number]:
            given = f"{len(values)}" if isinstance(values, list) else "no list"
            raise BadBody(f"data must be a list of {self.inputs[number]} values, got {given}")
        for place, value in enumerate(values):
            _check_scalar(f"value {place + 1} of data", value)
        session = fields.get("session_hash")
        if not isinstance(session, str) or not 0 < len(session) <= _TOKEN_LENGTH:
            raise BadBody(f"session_hash must be a text of 1…{_TOKEN_LENGTH} characters")
        trigger = fields.get("trigger_id")
        return _written(
            {
                "data": values,
                "fn_index": number,
                "session_hash": session,
                "trigger_id": trigger if isinstance(trigger, int) else None,
            }
        )

    def call(self, name: str, body: bytes) -> bytes:
        """A call of the API: an object with a field for each parameter that is given."""
        fields, known = _parsed(body), self.fields[name]
        needed = [key for key, field in known.items() if field.default is inspect.Parameter.empty]
        if missing := [key for key in needed if key not in fields]:
            raise BadBody(f"{name} needs the field {missing[0]!r}")
        if len(fields.keys() - known.keys()):
            raise BadBody(f"{name} has no other fields than {', '.join(known)}")
        for key, value in fields.items():
            _check_scalar(key, value)
        return _written(fields)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise BadBody("the body must be a JSON object") from None
    if not isinstance(fields, dict):
        raise BadBody("the body must be a JSON object")
    return fields


def _check_scalar(name: str, value: object) -> None:
    if not isinstance(value, Scalar):
        kind = "list" if isinstance(value, list) else "object"
        raise BadBody(f"{name} must be text, a number, true or false, got a JSON {kind}")


def _written(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields).encode()
