from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import pytest
import torch

from indel import Batch, CharacterVocabulary
from indel.drawing.terminal import Fate, edit_columns
from indel.process import Schedule, corrupt
from indel.web.summaries import INKS, counted, summary_svg

TEXT8 = CharacterVocabulary.text8()
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("text", ["", "aaaa bbbb aaaa", "this sentence was typed very badly"])
@pytest.mark.parametrize("t", [0, 4, 9, 10])
def test_every_edit_is_one_line_and_every_letter_is_there(text: str, t: int) -> None:
    x_0 = Batch.from_lists([TEXT8.encode(text)])
    schedule = Schedule.paper(TEXT8.size, 10, 0.6)
    x_t, edits = corrupt(schedule, x_0, t, generator=torch.Generator().manual_seed(5))
    columns = edit_columns(x_0, x_t, edits, TEXT8)
    root = ElementTree.fromstring(summary_svg(columns, t=t))
    lines = [path for path in root.iter(f"{SVG}path") if path.get("stroke")]
    wanted = Counter(INKS[column.fate] for column in columns)
    assert Counter(line.get("stroke") for line in lines) == wanted
    heads = [path for path in root.iter(f"{SVG}path") if not path.get("stroke")]
    assert len(heads) == len(x_t.to_lists()[0])
    letters = [text for text in root.iter(f"{SVG}text") if text.get("font-family")]
    assert len(letters) == len(x_0.to_lists()[0]) + len(x_t.to_lists()[0])
    kept = sum(column.fate is Fate.KEPT for column in columns)
    assert f"{kept} kept" in counted(columns)
