"""Names of processes, and what is behind them."""

import pytest

from indel.comparison.registry import NAMES, USUAL, build_method
from support.small_methods import STACK, small_method


@pytest.mark.parametrize("name", USUAL)
def test_every_usual_process_can_be_built(name: str) -> None:
    method = small_method(name, 5, 6)
    assert method.name == name
    assert method.likelihood_kind in ("exact", "bound", "none")


def test_a_rate_is_part_of_the_name() -> None:
    assert small_method("mask-insert-delete-0.25", 3, 4).name == "mask-insert-delete-0.25"
    assert "insert-delete-RATE" in NAMES


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("insert-delete", "did you mean 'insert-delete-0"),
        ("insert-delete-0.0", "there is no process"),
        ("insert-delete-1.5", "there is no process"),
        ("delete-onyl", "did you mean 'delete-only'"),
        ("", "there is no process ''"),
    ],
)
def test_other_names_are_refused(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        build_method(name, 5, STACK, 6, num_steps=4)
