"""Plain text to text8's alphabet, by the rules that made text8 itself."""

import string
import unicodedata

_DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ASCII_REPLACEMENTS = (
    {letter: letter.lower() for letter in string.ascii_letters}
    # Spaces around the name keep neighbouring digits apart: "42" becomes "four two".
    | {digit: f" {name} " for digit, name in zip(string.digits, _DIGIT_NAMES, strict=True)}
)


def normalize_text8(text: str, *, strip_accents: bool = False) -> str:
    """Rewrite any text in a–z and single spaces, as Matt Mahoney's filter does for text8.

    ASCII letters become lower case, each ASCII digit becomes its English name, everything else is
    a space; runs of spaces become one, and there is none at either end (so nothing readable gives
    the empty text).

    Args:
        text: Any text.
        strip_accents: Whether accents are taken off first, so that é is e and not a space.

    Returns:
        The text in text8's alphabet.

    >>> normalize_text8("In 1984, Chloé didn't.")
    'in one nine eight four chlo didn t'

    The filter knows ASCII only. With `strip_accents` each character is first replaced by its
    compatibility decomposition (NFKD) without combining marks, which also resolves ligatures and
    full-width or superscript forms; letters that have no decomposition ("ø", "ß") stay spaces.

    >>> normalize_text8("Chloé ate ½ of the soufﬂé", strip_accents=True)
    'chloe ate one two of the souffle'

    Reference: Matt Mahoney, "About the test data", the filter of text8
    """
    if not isinstance(text, str):
        raise TypeError(f"expected text (str), got {type(text).__name__}")
    decompose = _without_marks if strip_accents else str
    table = {
        ord(character): "".join(_ASCII_REPLACEMENTS.get(part, " ") for part in decompose(character))
        for character in set(text)
    }
    return " ".join(text.translate(table).split())


def _without_marks(character: str) -> str:
    # One character at a time: NFKD of a whole text differs only in the order of the marks dropped
    # here, and sorting a long run of marks would take quadratic time.
    return "".join(
        part
        for part in unicodedata.normalize("NFKD", character)
        if not unicodedata.category(part).startswith("M")
    )
