"""Data and vocabularies by name."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from indel.data import (
    DATA_NAMES,
    ArithmeticData,
    HuggingFaceText,
    Text8Sample,
    TextFiles,
    open_data,
    open_vocabulary,
)
from indel.vocabularies import ByteVocabulary, CharacterVocabulary, TokenizerVocabulary


def test_names_open_their_streams(tmp_path: Path) -> None:
    path = tmp_path / "dir:with colon.txt"
    path.write_text("some text\n" * 100)
    arithmetic = open_data("arithmetic", seed=4, numbers=64, max_step=1, max_length=40)
    assert isinstance(arithmetic, ArithmeticData)
    assert (arithmetic.seed, arithmetic.vocabulary.size, arithmetic.max_length) == (4, 64, 40)
    assert isinstance(open_data("text8-sample", chunk_length=9), Text8Sample)
    files = open_data(f"file:{path}", vocabulary="bytes", chunk_length=7, cache=tmp_path)
    assert isinstance(files, TextFiles)
    assert files.vocabulary == ByteVocabulary()
    records = open_data(
        f"huggingface:{path}", vocabulary=ByteVocabulary(), max_length=7, normalize=True
    )
    assert isinstance(records, HuggingFaceText)
    assert records.vocabulary.decode(records.examples(0, 1).to_lists()[0]) in "some text"


@pytest.mark.parametrize("name", ["aritmetic", "text9", "file", "file:", "", "huggingface", "x:y"])
def test_unknown_name_lists_what_there_is(name: str) -> None:
    with pytest.raises(ValueError, match=f"there is no data '{name}'") as caught:
        open_data(name)
    assert ", ".join(DATA_NAMES) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("arithmetic", {"steps": 3}, "unexpected keyword argument 'steps'; its options are seed,"),
        ("text8-sample", {"path": "x"}, "'path'; its options are seed, chunk_length"),
        ("csv:x", {}, "missing a required argument: 'column'; its options are column, vocabulary,"),
        ("file:x", {"path": "y"}, "its options are vocabulary, chunk_length"),
    ],
)
def test_wrong_options_list_what_there_is(
    name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        open_data(name, **options)


def test_vocabularies(tmp_path: Path) -> None:
    assert open_vocabulary("bytes") == ByteVocabulary()
    assert open_vocabulary("text8") == CharacterVocabulary.text8()
    assert open_vocabulary("characters:a:b ") == CharacterVocabulary("a:b ")
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    opened = open_vocabulary(f"tokenizer:{tmp_path / 'tokenizer.json'}")
    assert opened == TokenizerVocabulary(tokenizer)


@pytest.mark.parametrize("name", ["byte", "characters:", "tokenizer:", "bytes:", ""])
def test_unknown_vocabulary_lists_what_there_is(name: str) -> None:
    with pytest.raises(
        ValueError, match="There are: bytes, text8, characters:LIST, integers:SIZE, tokenizer:PATH"
    ):
        open_vocabulary(name)
