"""Shapes written in types are checked while tests run."""

import torch
from jaxtyping import install_import_hook

from support import type_checker

# Before anything imports indel, so that every function of it is checked.
install_import_hook("indel", f"{type_checker.__name__}.checker")

# The tensors of the tests are small: a second thread only waits for the first, and on a busy
# machine it waits long.
torch.set_num_threads(1)
