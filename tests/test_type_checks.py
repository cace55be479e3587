"""While tests run, types and shapes are checked at the first calls of each function."""

import jaxtyping
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from indel import log_space
from indel.batch import Batch
from support import type_checker


def added(a: Float[Tensor, " n"], b: Float[Tensor, " n"]) -> Tensor:
    return a + b


@pytest.mark.parametrize("values", [torch.tensor([1, 2]), [1.0, 2.0]])
def test_the_package_is_checked(values: object) -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="values"):
        log_space.logsumexp(values, dim=0)  # type: ignore[arg-type]


def test_dataclasses_are_checked() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="lengths"):
        Batch(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2))


def test_a_shape_is_checked_at_the_first_calls_of_each_test() -> None:
    checked = type_checker.at_first(typechecker=type_checker.checker)(added)
    for _ in range(2):
        for _ in range(type_checker.CALLS):
            with pytest.raises(jaxtyping.TypeCheckError, match="b"):
                checked(torch.ones(2), torch.ones(1))
        assert checked(torch.ones(2), torch.ones(1)).tolist() == [2.0, 2.0]
        type_checker.next_test()
