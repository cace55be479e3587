"""The spell checkers that repair is compared with do what they are known for."""

import shutil

import pytest

from indel.text_repair import spell_checkers
from indel.text_repair.spell_checkers import CHECKERS, Unavailable

LINES = ["he did not recieve teh letter", "", "all of this is right"]


@pytest.mark.parametrize("name", CHECKERS)
def test_they_correct_words_and_keep_lines(name: str) -> None:
    if name == "aspell" and shutil.which("aspell") is None:
        pytest.skip("the command aspell is not here")
    first, second, third = CHECKERS[name]()(LINES)
    assert first.split()[:4] == ["he", "did", "not", "receive"]
    assert first.split()[5] == "letter"
    assert (second, third) == ("", "all of this is right")


def test_aspell_answers_in_the_same_alphabet() -> None:
    if shutil.which("aspell") is None:
        pytest.skip("the command aspell is not here")
    lines = CHECKERS["aspell"]()(["the englsh language", "& # * @ ^ ! ~ hostile"])
    assert lines == ["the english language", "& # * @ ^ ! ~ hostile"]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spell_checkers.shutil, "which", lambda _: None)
    with pytest.raises(Unavailable, match="aspell"):
        CHECKERS["aspell"]()
    monkeypatch.setitem(__import__("sys").modules, "spellchecker", None)
    with pytest.raises(Unavailable, match=r"indel\[spelling\]"):
        CHECKERS["pyspellchecker"]()
