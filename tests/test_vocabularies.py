"""Vocabularies: round trips, what is refused and how the refusal reads, storage as JSON."""

import json
import pickle
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from indel.vocabularies import (
    ByteVocabulary,
    CharacterVocabulary,
    IntegerVocabulary,
    TokenizerVocabulary,
    Vocabulary,
    tokenizer,
)
from indel.vocabularies.text8_alphabet import normalize_text8

SENTENCES = ["the cat sat on the mat", "the naïve dog sat on the cat", "Ein Käfer läuft über Gras"]
WORDS = ["[UNK]", "the", "cat", "sat"]


def word_level(words: list[str] = WORDS) -> Tokenizer:
    ids = {word: token for token, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def byte_level_bpe(alphabet: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


TEXT8 = CharacterVocabulary.text8()
ALL_BYTES = TokenizerVocabulary(byte_level_bpe(pre_tokenizers.ByteLevel.alphabet()))
SOME_BYTES = TokenizerVocabulary(byte_level_bpe([]))
VOCABULARIES = [
    TEXT8,
    CharacterVocabulary('"\\\n😀'),
    IntegerVocabulary(512),
    ByteVocabulary(),
    TokenizerVocabulary(word_level()),
    ALL_BYTES,
]


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the callers read the message
        call(*arguments)
    return str(caught.value)


# The numbering


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=repr)
def test_markers_follow_the_regular_tokens(vocabulary: Vocabulary) -> None:
    size = vocabulary.size
    markers = [vocabulary.ins, vocabulary.del_, vocabulary.eos]
    assert markers == [size, size + 1, size + 2]
    assert vocabulary.augmented_size == size + 3


def test_sizes_of_the_paper() -> None:
    assert TEXT8.augmented_size == 31
    assert IntegerVocabulary(512).augmented_size == 515


def test_order_of_text8() -> None:
    assert TEXT8.encode("az -") == [0, 25, 26, 27]


# Round trips


@given(st.data(), st.text(min_size=1).map(lambda text: "".join(dict.fromkeys(text))))
def test_characters_round_trip(data: st.DataObject, characters: str) -> None:
    vocabulary = CharacterVocabulary(characters)
    ids = data.draw(st.lists(st.integers(0, len(characters) - 1)))
    text = vocabulary.decode(ids)
    assert text == "".join(characters[token] for token in ids)
    assert vocabulary.encode(text) == ids


@given(st.text())
def test_text8_encodes_every_normalised_text(text: str) -> None:
    normalised = normalize_text8(text)
    assert TEXT8.decode(TEXT8.encode(normalised)) == normalised


@given(st.data(), st.integers(1, 1000))
def test_integers_round_trip(data: st.DataObject, size: int) -> None:
    vocabulary = IntegerVocabulary(size)
    integers = data.draw(st.lists(st.integers(0, size - 1)))
    assert vocabulary.encode(integers) == integers
    assert vocabulary.decode(integers) == integers


@given(st.text())
def test_bytes_round_trip(text: str) -> None:
    ids = ByteVocabulary().encode(text)
    assert bytes(ids) == text.encode("utf-8")
    assert ByteVocabulary().decode(ids) == text


@given(st.text())
def test_byte_level_tokenizer_round_trip(text: str) -> None:
    assert ALL_BYTES.decode(ALL_BYTES.encode(text)) == text


@given(st.lists(st.sampled_from(WORDS[1:])))
def test_word_level_tokenizer_round_trip(words: list[str]) -> None:
    vocabulary = TokenizerVocabulary(word_level())
    ids = vocabulary.encode(" ".join(words))
    assert ids == [WORDS.index(word) for word in words]
    assert vocabulary.decode(ids) == " ".join(words)


def test_merges_of_the_tokenizer_are_used() -> None:
    ids = ALL_BYTES.encode("the cat sat on the mat")
    assert len(ids) < 12
    assert ids == byte_level_bpe(pre_tokenizers.ByteLevel.alphabet()).encode(SENTENCES[0]).ids


def test_ids_may_be_tensors() -> None:
    assert TEXT8.decode(torch.tensor([7, 8])) == "hi"
    assert IntegerVocabulary(9).encode(torch.tensor([7, 8])) == [7, 8]


# What is refused: text


def test_unknown_character_is_named_with_its_place_and_a_way_out() -> None:
    message = refusal(TEXT8.encode, "caf\N{LATIN SMALL LETTER E WITH ACUTE} é")
    assert "'é' (U+00E9) at position 3" in message
    assert repr(TEXT8.characters) in message
    assert "indel.normalize_text8" in message


def test_other_alphabets_are_not_sent_to_text8() -> None:
    message = refusal(CharacterVocabulary("ACGT").encode, "ACGU")
    assert "'U' (U+0055) at position 3" in message
    assert "'ACGT'" in message
    assert "normalize" not in message


def test_refusal_stays_short_when_the_alphabet_is_long() -> None:
    many = CharacterVocabulary("".join(map(chr, range(0x4E00, 0x9000))))
    message = refusal(many.encode, "a")
    assert f"the {many.size} characters '一丁" in message
    assert message.endswith("' …")
    assert len(message) < 250


@given(st.text(), st.text("ACGT"))
def test_first_unknown_character_is_the_one_named(text: str, known: str) -> None:
    assume(text and text[0] not in "ACGT")
    message = refusal(CharacterVocabulary("ACGT").encode, known + text)
    assert f"{text[0]!r} (U+{ord(text[0]):04X}) at position {len(known)} " in message


@pytest.mark.parametrize("vocabulary", [ByteVocabulary(), ALL_BYTES, TEXT8], ids=repr)
def test_half_a_surrogate_pair_is_named(vocabulary: Vocabulary) -> None:
    message = refusal(vocabulary.encode, "ab\ud800")
    assert r"'\ud800' (U+D800) at position 2" in message


def test_integer_outside_is_named() -> None:
    message = refusal(IntegerVocabulary(512).encode, [511, 512])
    assert "integer 512 at position 1 is outside 0…511" in message
    assert "integer -1 at position 0" in refusal(IntegerVocabulary(512).encode, [-1])


@pytest.mark.parametrize("vocabulary", [TEXT8, ByteVocabulary(), ALL_BYTES], ids=repr)
def test_text_vocabularies_take_text_only(vocabulary: Vocabulary) -> None:
    with pytest.raises(TypeError, match=r"expected text .* got list"):
        vocabulary.encode([1, 2])


def test_integer_vocabulary_takes_no_text() -> None:
    with pytest.raises(TypeError, match="integers, got the text '12'"):
        IntegerVocabulary(512).encode("12")


# What is refused: ids


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=repr)
def test_decoding_names_markers_and_strange_ids(vocabulary: Vocabulary) -> None:
    named = {vocabulary.ins: "INS", vocabulary.del_: "DEL", vocabulary.eos: "EOS"}
    for marker, name in named.items():
        message = refusal(vocabulary.decode, [0, 1, marker])
        assert f"id {marker} at position 2 is the marker ⟨{name}⟩" in message
    for strange in (-1, vocabulary.augmented_size):
        message = refusal(vocabulary.decode, [0, strange])
        assert f"id {strange} at position 1 is outside the vocabulary" in message


def test_ids_must_be_integers() -> None:
    with pytest.raises(TypeError, match=r"1\.5"):
        TEXT8.decode([1.5])  # type: ignore[list-item]


@given(st.binary())
def test_invalid_utf8_is_named_or_replaced(content: bytes) -> None:
    ids = list(content)
    assert ByteVocabulary().decode(ids, errors="replace") == content.decode("utf-8", "replace")
    try:
        text, fault = content.decode("utf-8"), None
    except UnicodeDecodeError as error:
        fault = error.start
    if fault is None:
        assert ByteVocabulary().decode(ids) == text
    else:
        message = refusal(ByteVocabulary().decode, ids)
        assert f"byte 0x{content[fault]:02x} at position {fault} " in message


def test_invalid_utf8_examples() -> None:
    message = refusal(ByteVocabulary().decode, [104, 105, 255])
    assert "byte 0xff at position 2" in message
    assert "errors='replace'" in message
    assert ByteVocabulary().decode([104, 255, 105], errors="replace") == "h\ufffdi"


# What is refused: vocabularies


def test_characters_must_be_distinct_and_encodable() -> None:
    message = refusal(CharacterVocabulary, "abca")
    assert "'a' (U+0061) stands at positions 0 and 3" in message
    assert "at least one" in refusal(CharacterVocabulary, "")
    assert "U+D83D" in refusal(CharacterVocabulary, "a\ud83d\ude00")
    with pytest.raises(TypeError):
        CharacterVocabulary(["a", "b"])  # type: ignore[arg-type]


def test_size_must_be_a_positive_integer() -> None:
    assert "got 0" in refusal(IntegerVocabulary, 0)
    with pytest.raises(TypeError):
        IntegerVocabulary("5")  # type: ignore[arg-type]


# Tokenizers


@pytest.mark.parametrize(
    ("model", "text", "piece", "position"),
    [
        (models.WordLevel({"[UNK]": 0, "the": 1}, unk_token="[UNK]"), "the dög", "dög", 4),
        (models.WordLevel({"the": 0}, unk_token="[UNK]"), "the dög the", "dög", 4),
        (models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]"), "ab ac", "ac", 3),
        (models.BPE({"[UNK]": 0, "a": 1, "b": 2}, [], unk_token="[UNK]"), "ab acb", "c", 4),
        (models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]), "ab acb", "c", 4),
        (models.Unigram([("<unk>", 0.0), ("a", -1.0)], unk_id=0), "aa aba", "b", 4),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, models.Model) else None,
)
def test_unknown_piece_is_named(model: models.Model, text: str, piece: str, position: int) -> None:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    message = refusal(TokenizerVocabulary(tokenizer).encode, text)
    assert f"piece {piece!r} at position {position} is unknown" in message


def test_unigram_without_an_unknown_token_still_refuses() -> None:
    tokenizer = Tokenizer(models.Unigram([("a", -1.0), ("b", -1.0)], unk_id=None))
    assert "unk_id" in refusal(TokenizerVocabulary(tokenizer).encode, "abc")


def test_position_of_an_unknown_piece_counts_in_the_text_not_in_its_normalised_form() -> None:
    tokenizer = word_level()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Lowercase()])
    message = refusal(TokenizerVocabulary(tokenizer).encode, "  The DOG")
    assert "piece 'DOG' at position 6" in message


@given(st.text(st.sampled_from("the catönü😀\n")))
def test_text_is_encoded_whole_or_refused(text: str) -> None:
    """A BPE model without an unknown token drops text silently; the vocabulary does not."""
    known = set(b"".join(sentence.encode() for sentence in SENTENCES))
    strangers = [place for place, sign in enumerate(text) if not known.issuperset(sign.encode())]
    if strangers:
        place = strangers[0]
        assert f"{text[place]!r} at position {place} " in refusal(SOME_BYTES.encode, text)
    else:
        assert SOME_BYTES.decode(SOME_BYTES.encode(text)) == text


def test_added_tokens_keep_their_ids() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    tokenizer.add_special_tokens(["<x>", "<mask>"])
    vocabulary = TokenizerVocabulary(tokenizer)
    assert vocabulary.size == 5
    assert vocabulary.encode("ab<mask>a<x>") == [2, 4, 0, 3]
    assert "<mask>" in vocabulary.decode([2, 4])
    assert "piece 'z' at position 7" in refusal(vocabulary.encode, "a<mask>z")


def test_no_special_tokens_are_added_to_a_text() -> None:
    tokenizer = word_level()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="sat $A sat", special_tokens=[("sat", 3)]
    )
    assert TokenizerVocabulary(tokenizer).encode("the cat") == [1, 2]


def test_tokenizer_is_copied_without_truncation_and_padding() -> None:
    tokenizer = word_level()
    tokenizer.enable_truncation(1)
    tokenizer.enable_padding(length=5)
    vocabulary = TokenizerVocabulary(tokenizer)
    tokenizer.add_tokens(["dog"])
    assert vocabulary.encode("the cat sat") == [1, 2, 3]
    assert vocabulary.size == 4
    assert tokenizer.truncation is not None


def test_ids_of_a_tokenizer_have_no_gaps() -> None:
    message = refusal(TokenizerVocabulary, Tokenizer(models.WordLevel({"a": 0, "b": 2})))
    assert "2 tokens must be 0…K−1" in message
    assert "0 tokens" in refusal(TokenizerVocabulary, Tokenizer(models.BPE()))


def test_only_tokenizers_are_wrapped() -> None:
    with pytest.raises(TypeError):
        TokenizerVocabulary("tokenizer.json")  # type: ignore[arg-type]


def test_tokenizer_from_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    word_level().save(str(path))
    assert TokenizerVocabulary.from_file(path) == TokenizerVocabulary(word_level())
    path.write_text("{}")
    assert "not the JSON of a tokenizer" in refusal(TokenizerVocabulary.from_file, path)
    with pytest.raises(FileNotFoundError):
        TokenizerVocabulary.from_file(tmp_path / "missing.json")


def test_only_the_tokenizer_vocabulary_needs_the_tokenizers_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    fresh = runpy.run_path(str(tokenizer.__file__))
    data = {"kind": "tokenizer", "tokenizer": word_level().to_str()}
    with pytest.raises(ImportError, match=re.escape('pip install "indel[tokenizers]"')):
        fresh["TokenizerVocabulary"].from_serialized(data["tokenizer"])
    with pytest.raises(ImportError, match=re.escape('pip install "indel[tokenizers]"')):
        Vocabulary.from_dict(data)


# Display


def test_symbols() -> None:
    assert [TEXT8.symbol(token) for token in (0, 26, 27)] == ["a", "␣", "-"]
    assert [TEXT8.symbol(token) for token in (28, 29, 30)] == ["⟨INS⟩", "⟨DEL⟩", "⟨EOS⟩"]
    assert IntegerVocabulary(512).symbol(7) == "7"
    assert [ByteVocabulary().symbol(byte) for byte in b"a \n\xc3"] == ["a", "␣", r"\n", r"\xc3"]
    assert TokenizerVocabulary(word_level()).symbol(2) == "cat"


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=repr)
def test_every_id_has_its_own_symbol(vocabulary: Vocabulary) -> None:
    symbols = [vocabulary.symbol(token) for token in range(vocabulary.augmented_size)]
    assert len(set(symbols)) == len(symbols)
    assert all(symbol.isprintable() and symbol.strip() for symbol in symbols)
    for strange in (-1, vocabulary.augmented_size):
        assert f"id {strange} " in refusal(vocabulary.symbol, strange)


# Storage and comparison


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=repr)
def test_json_and_pickle_give_an_equal_vocabulary(vocabulary: Vocabulary) -> None:
    vocabulary.decode([0])  # what is cached on use must not disturb either
    restored = Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    for copy in (restored, pickle.loads(pickle.dumps(vocabulary))):
        assert type(copy) is type(vocabulary)
        assert copy == vocabulary
        assert hash(copy) == hash(vocabulary)
        assert copy.augmented_size == vocabulary.augmented_size


def test_different_vocabularies_differ() -> None:
    others = {
        IntegerVocabulary(256),
        CharacterVocabulary("ab"),
        CharacterVocabulary("ba"),
        TokenizerVocabulary(word_level([*WORDS, "dog"])),
    }
    assert len(others.union(VOCABULARIES)) == 4 + len(VOCABULARIES)


def test_repr_says_what_it_is() -> None:
    assert repr(CharacterVocabulary("ab")) == "CharacterVocabulary(characters='ab')"
    assert repr(ByteVocabulary()) == "ByteVocabulary()"
    assert repr(TokenizerVocabulary(word_level())) == "TokenizerVocabulary(WordLevel, size=4)"


@pytest.mark.parametrize("kind", ["words", None, ["bytes"], "os.system"])
def test_unknown_kind_is_refused(kind: object) -> None:
    message = refusal(Vocabulary.from_dict, {"kind": kind})
    assert repr(kind) in message
    assert "'characters', 'integers', 'bytes', 'tokenizer'" in message


def test_wrong_fields_are_refused() -> None:
    message = refusal(Vocabulary.from_dict, {"kind": "integers", "characters": "ab"})
    assert "['size']" in message
    assert "['characters']" in message
    broken = {"kind": "tokenizer", "tokenizer": "{}"}
    assert "not the JSON of a tokenizer" in refusal(Vocabulary.from_dict, broken)
    with pytest.raises(TypeError):
        Vocabulary.from_dict(["bytes"])  # type: ignore[arg-type]
