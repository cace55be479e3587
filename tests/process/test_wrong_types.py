"""Values of a wrong type or rank are refused with the reason, without run-time type checks."""

import json
import subprocess
import sys

import pytest

from support.bad_inputs import assert_says, named
from support.programs import environment
from support.wrong_types import WRONG_TYPES


@pytest.fixture(scope="module")
def seen_by_users() -> dict[str, list[str]]:
    """For each case the name of its exception, and the message, without run-time type checks."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "support.wrong_types"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(("name", "_call", "fragments"), named(WRONG_TYPES))
def test_wrong_types_are_refused_with_the_reason(
    name: str, _call, fragments: list[str], seen_by_users: dict[str, list[str]]
) -> None:
    kind, message = seen_by_users[name]
    assert kind == "ValueError", message
    assert_says(message, fragments)
