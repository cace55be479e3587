"""Text files: what is encoded, split and refused."""

import os
import random
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from indel.data import DataError, DataUnavailable, TextFiles, text_files
from indel.vocabularies import ByteVocabulary, CharacterVocabulary, TokenizerVocabulary, Vocabulary
from indel.vocabularies.text8_alphabet import normalize_text8

WORDS = "In 1984 the naïve dog — 3 years old — chased Chloé’s cat\r\n\tround\n\n the 42 gärten. "
TEXT8 = CharacterVocabulary.text8()


def bpe(text: str) -> TokenizerVocabulary:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    return TokenizerVocabulary(tokenizer)


def written(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def all_tokens(data: TextFiles) -> list[int]:
    tokens: list[int] = data._text.numbers.tolist()
    return tokens


@pytest.mark.parametrize(
    "vocabulary", [ByteVocabulary(), bpe(WORDS), CharacterVocabulary("".join(sorted(set(WORDS))))]
)
def test_files_are_read_by_name_one_after_the_other(tmp_path: Path, vocabulary: Vocabulary) -> None:
    texts = {"b.txt": "round " * 30, "a/z.txt": WORDS * 9, "a.txt": "dog " * 9, "c.md": "notes"}
    folder = written(tmp_path / "texts", texts)
    data = TextFiles(folder, vocabulary, 4, cache=tmp_path / "cache")
    joined = texts["a.txt"] + texts["a/z.txt"] + texts["b.txt"]
    assert all_tokens(data) == vocabulary.encode(joined)
    markdown = TextFiles(folder, ByteVocabulary(), 1, pattern="*.md", held_out=0.4, cache=tmp_path)
    assert all_tokens(markdown) == list(b"notes")


def test_splits_are_the_first_then_two_last_shares(tmp_path: Path) -> None:
    text = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=1000))
    path = written(tmp_path, {"text": text}) / "text"
    data = TextFiles(path, TEXT8, 10, held_out=0.1, cache=tmp_path)
    spans = {"train": text[:800], "valid": text[800:900], "test": text[900:]}
    for split, part in spans.items():
        assert data.size(split) == len(part)  # type: ignore[arg-type]
        seen = {
            "".join(TEXT8.characters[token] for token in row)
            for row in data.examples(0, 9000 if split == "train" else 1000, split).to_lists()
        }  # type: ignore[arg-type]
        assert seen == {part[start : start + 10] for start in range(len(part) - 9)}


@given(st.lists(st.text(st.sampled_from(" \n\té1aB—"), max_size=40), min_size=1, max_size=4))
@settings(max_examples=60)
def test_normalised_pieces_are_the_normalised_whole(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = written(
        tmp_path_factory.mktemp("t"), {f"{n}.txt": text for n, text in enumerate(texts)}
    )
    expected = TEXT8.encode(normalize_text8("\n".join(texts)))
    patch = pytest.MonkeyPatch()
    for piece in (1, 3, 1000):
        patch.setattr(text_files, "_PIECE", piece)
        tokens = text_files._tokens(sorted(folder.iterdir()), TEXT8, True)
        assert [token for part in tokens for token in part] == expected
    patch.undo()


@pytest.mark.parametrize("piece", [1, 2, 5, 64])
def test_pieces_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    text = WORDS * 3 + "x" * 700 + "😀" * 50 + " end"
    file = written(tmp_path, {"text": text}) / "text"
    monkeypatch.setattr(text_files, "_PIECE", piece)
    tokens = text_files._tokens([file], ByteVocabulary(), False)
    assert [token for part in tokens for token in part] == list(text.encode())
    # A tokenizer may see cuts only inside what is longer than several pieces.
    vocabulary = bpe(text)
    parts = list(text_files._tokens([file], vocabulary, False))
    assert "".join(vocabulary.decode(part) for part in parts) == text
    if piece == 64:
        words = WORDS * 60
        file.write_text(words, newline="")
        cut = [token for part in text_files._tokens([file], vocabulary, False) for token in part]
        assert cut == vocabulary.encode(words)


def test_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("abc " * 50, encoding="utf-8-sig")
    data = TextFiles(path, TEXT8, 5, cache=tmp_path)
    assert TEXT8.decode(all_tokens(data)) == "abc " * 50


def test_the_vocabulary_is_found_unless_it_is_given(tmp_path: Path) -> None:
    written(tmp_path, {"a.txt": "cab" * 50, "b.txt": "é" * 9})
    data = TextFiles(tmp_path, chunk_length=4, cache=tmp_path)
    assert data.vocabulary == CharacterVocabulary("abcé")
    data = TextFiles(tmp_path, chunk_length=4, normalize=True, cache=tmp_path)
    assert data.vocabulary == TEXT8


def test_encoded_once_and_again_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, {"text": "abc " * 50}) / "text"
    monkeypatch.setenv("INDEL_CACHE", str(tmp_path / "cache"))
    first = TextFiles(path, TEXT8, 5)
    (encoded,) = (tmp_path / "cache" / "tokens").iterdir()
    assert encoded.stat().st_size == 200  # one byte a token
    made = encoded.stat().st_ino
    again = TextFiles(path, TEXT8, 5, seed=1)
    assert encoded.stat().st_ino == made
    assert all_tokens(again) == all_tokens(first)
    TextFiles(path, ByteVocabulary(), 5)
    TextFiles(path, TEXT8, 5, normalize=True)
    assert len(list((tmp_path / "cache" / "tokens").iterdir())) == 3
    path.write_text("xyz " * 50)
    assert TEXT8.decode(all_tokens(TextFiles(path, TEXT8, 5))[:4]) == "xyz "


def test_large_vocabulary_takes_more_bytes(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": WORDS * 40}) / "text"
    data = TextFiles(path, bpe(WORDS), 5, cache=tmp_path)
    assert data._text.numbers.dtype == np.uint16


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"some words of a long text " * 400_000)  # 10 MB
    tracemalloc.start()
    data = TextFiles(path, ByteVocabulary(), 50, cache=tmp_path)
    data.examples(0, 10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert data.size("train") + data.size("valid") + data.size("test") == 10_400_000
    assert peak < 6_000_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"abc" * 100 + b"\xff" + b"abc", r"invalid start byte at byte 300 \(0xff\)"),
        (b"abc" * 100 + "é".encode()[:1], r"unexpected end of data at byte 300 \(0xc3\)"),
        ("é".encode() * 200 + b"\xe2\x82" + b"x" * 9, r"continuation byte at byte 400 \(0xe2\)"),
        ("é".encode("utf-16"), r"at byte 0 \(0xff\)"),
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 1 << 18])
def test_bytes_that_are_not_utf8_are_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str, piece: int
) -> None:
    monkeypatch.setattr(text_files, "_PIECE", piece)
    path = tmp_path / "latin.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{re.escape(str(path))} is not UTF-8: .*{message}"):
        TextFiles(path, ByteVocabulary(), 5, cache=tmp_path)
    assert not list((tmp_path / "tokens").iterdir())


def test_unknown_character_is_placed(tmp_path: Path) -> None:
    path = written(tmp_path, {"t.txt": "abc. " * 50}) / "t.txt"
    with pytest.raises(
        DataError, match=r"t.txt, in the text from about byte 0 on: .*'\.'.*position 3"
    ):
        TextFiles(path, TEXT8, 5, cache=tmp_path)
    assert TextFiles(path, TEXT8, 5, normalize=True, cache=tmp_path).size("train") == 181


@pytest.mark.parametrize("text", ["", "abc " * 20])
def test_too_little_text_is_refused(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, {"text": text}) / "text"
    with pytest.raises(DataError, match="fewer than one chunk of 118; give more text"):
        TextFiles(path, TEXT8, 118, cache=tmp_path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match="nowhere does not exist; expected is a text file"):
        TextFiles(tmp_path / "nowhere", TEXT8, 5, cache=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataUnavailable, match=r"empty holds no files \*\.txt"):
        TextFiles(tmp_path / "empty", TEXT8, 5, cache=tmp_path)


def test_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": "abc " * 100}) / "text"
    with pytest.raises(DataUnavailable, match=r"cannot write .*; set INDEL_CACHE"):
        TextFiles(path, TEXT8, 5, cache=path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": "abc " * 100}) / "text"
    path.chmod(0)
    with pytest.raises(DataUnavailable, match=r"cannot read .*text: Permission denied"):
        TextFiles(path, TEXT8, 5, cache=tmp_path)


@pytest.mark.parametrize(
    "options", [{"held_out": 0.0}, {"held_out": 0.5}, {"chunk_length": 0}, {"seed": -1}]
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, float]) -> None:
    path = written(tmp_path, {"text": "abc " * 100}) / "text"
    with pytest.raises(ValueError, match=rf"{next(iter(options))} must .* got"):
        TextFiles(path, TEXT8, **{"chunk_length": 5, "cache": tmp_path} | options)  # type: ignore[arg-type]
