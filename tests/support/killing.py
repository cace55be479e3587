"""Kills runs at random moments: a program that imports once and forks a process for each run."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from indel.training import load_config, train
from support.small_runs import settings

STEPS = {"training__steps": 30, "training__save_every": 2, "validation__every": 10}


def run(folder: Path, kill_after: float | None) -> bool:
    """Start or resume a run in a new process; whether it came to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            config = load_config("arithmetic", "tiny", overrides=settings(**STEPS))
            train(config, folder, resume=True)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)  # of no effect on a process that has ended
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"a run failed with {status}"
    return status == 0


def main() -> None:
    """`killing.py FOLDER KILLS SEED`: an undisturbed run, and others killed so often in all."""
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    began = time.monotonic()
    assert run(folder / "whole", None)
    duration = time.monotonic() - began
    chance = random.Random(seed)
    number = done = 0
    while done < kills:
        if run(folder / f"killed-{number}", chance.uniform(0.0, 0.7 * duration)):
            number += 1
        else:
            done += 1
    assert run(folder / f"killed-{number}", None)
    print(json.dumps({"kills": done, "runs": number + 1}))


if __name__ == "__main__":
    main()
