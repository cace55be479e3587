"""A tiny model trained with labels follows them the more the more it is guided, in length too."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "studies" / "guidance.py"


@pytest.mark.slow
def test_samples_follow_the_label_more_with_guidance(tmp_path: Path) -> None:
    """0: not at all, 1: as the data does, 3: more. A share is known to within about 0.03."""
    study = runpy.run_path(str(STUDY))
    model, written = study["trained"](tmp_path / "run"), study["written"]
    for label in "xy":
        none, own, more = (written(model, label, guidance) for guidance in (0.0, 1.0, 3.0))
        assert own[0] > none[0] + 0.06
        assert more[0] > own[0] + 0.06
    short, long = (written(model, label, 1.0)[1] for label in "xy")
    shorter, longer = (written(model, label, 3.0)[1] for label in "xy")
    assert long > short + 0.8
    # Words of x become shorter, those of y longer: the second head and the start are guided too.
    assert longer - shorter > long - short + 0.4
