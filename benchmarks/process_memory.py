"""The memory that a large schedule takes: a fresh process that prints its peak after each stage.

python benchmarks/process_memory.py VOCAB_SIZE NUM_STEPS uniform|given
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path


def peak_megabytes() -> float:
    """The most memory that this process has had resident."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux hands ru_maxrss down from the process that started this one; VmHWM is our own.
        lines = status.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # macOS counts bytes


def main(vocab_size: int, num_steps: int, inserted: str) -> None:
    """Import torch, import indel, build and use the schedule."""
    # Not at the top of the file, because each import is one of the stages.
    import torch  # noqa: F401

    peaks = {"torch": peak_megabytes()}
    import process

    peaks["indel"] = peak_megabytes()
    process.corrupt_large(vocab_size, num_steps, given=inserted == "given")
    peaks["corrupted"] = peak_megabytes()
    print(json.dumps(peaks))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
