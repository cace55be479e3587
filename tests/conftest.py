"""Shapes written in types are checked while tests run, and each process has one thread."""

import os

# The tensors of the tests are small: a second thread only waits for the first, and on a busy
# machine it waits long. Before torch is imported, and for the programs that tests start too.
os.environ["OMP_NUM_THREADS"] = "1"

import jaxtyping
import pytest
import torch

from support import type_checker

# Before anything imports indel, so that every function of it is checked.
jaxtyping.jaxtyped = type_checker.at_first
jaxtyping.install_import_hook("indel", f"{type_checker.__name__}.checker")

torch.set_num_threads(1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    type_checker.next_test()
