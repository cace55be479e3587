"""The grammar of gaps: what is read, and one clear line for what cannot be."""

import pytest

from indel import ByteVocabulary, CharacterVocabulary, Gap, IntegerVocabulary, Pattern
from indel.sampling.patterns import escaped

LETTERS = CharacterVocabulary("ab{} ")


@pytest.mark.parametrize(
    ("text", "tokens", "gaps"),
    [
        ("{}", "", {0: Gap()}),
        ("a{}b", "ab", {1: Gap()}),
        ("{3}a", "a", {0: Gap(3, 3)}),
        ("a{2,8}", "a", {1: Gap(2, 8)}),
        ("a{,8}", "a", {1: Gap(0, 8)}),
        ("a{ 2 , }b", "ab", {1: Gap(2)}),
        ("{0}a{}b{1}", "ab", {0: Gap(0, 0), 1: Gap(), 2: Gap(1, 1)}),
        ("{{a}}", "{a}", {}),
        ("{{{}}}", "{}", {1: Gap()}),
        ("{}{{}}{2}", "{}", {0: Gap(), 2: Gap(2, 2)}),
    ],
)
def test_gaps_are_read(text: str, tokens: str, gaps: dict[int, Gap]) -> None:
    pattern = Pattern.parse(text, LETTERS)
    assert LETTERS.decode(pattern.tokens) == tokens
    assert dict(enumerate(pattern.gaps)) == {n: gaps.get(n) for n in range(len(tokens) + 1)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{a}", r"position 0 .*'\{a\}' is no gap"),
        ("a{", "position 1 .*is no gap"),
        ("a}b", "position 1 .*is no gap"),
        ("a{b{}}", "position 1 .*is no gap"),
        ("{-1}", "is no gap"),
        ("{1,2,3}", "is no gap"),
        ("{" + "9" * 5000 + "}", "is no gap"),
        ("{}{}", "side by side"),
        ("{8,2}", "least first: got .8,2"),
        ("ax{}", r"'ax' \(from position 0 of the pattern on\): character 'x'"),
        ("{}bx", r"'bx' \(from position 2 "),
    ],
)
def test_what_cannot_be_read_is_named(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Pattern.parse(text, LETTERS)


def test_other_vocabularies() -> None:
    assert Pattern.parse("3 15{2} 7 ", IntegerVocabulary(16)).tokens == (3, 15, 7)
    assert len(Pattern.parse("né{}", ByteVocabulary()).tokens) == 3
    with pytest.raises(ValueError, match="integers with spaces between them, got '3x'"):
        Pattern.parse("3x{}", IntegerVocabulary(16))
    with pytest.raises(ValueError, match="integer 16"):
        Pattern.parse("16{}", IntegerVocabulary(16))


def test_an_escaped_text_is_itself() -> None:
    text = "{a}{{b}}{}"
    assert LETTERS.decode(Pattern.parse(escaped(text), LETTERS).tokens) == text


def test_a_pattern_must_fit() -> None:
    Pattern.parse("a{3}", LETTERS).check(4)
    with pytest.raises(ValueError, match=r"at least 4 tokens, 1 frozen ones and 3 in gaps; .* 3"):
        Pattern.parse("a{3}", LETTERS).check(3)
    with pytest.raises(ValueError, match="no gap to fill"):
        Pattern.parse("aa", LETTERS).check(3)
