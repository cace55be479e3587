"""Data by name, as configurations and the command give it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from indel.data.arithmetic import ArithmeticData
from indel.data.huggingface import HuggingFaceText
from indel.data.molecules import MosesData, MosesSample, smiles_file
from indel.data.sequences import Sequences
from indel.data.streams import BatchStream
from indel.data.text8 import Text8Data, Text8Sample
from indel.data.text_files import TextFiles
from indel.vocabularies import (
    ByteVocabulary,
    CharacterVocabulary,
    IntegerVocabulary,
    TokenizerVocabulary,
    Vocabulary,
)

_NAMED: dict[str, Callable[..., BatchStream]] = {
    "arithmetic": ArithmeticData,
    "text8": Text8Data,
    "text8-sample": Text8Sample,
    "moses": MosesData,
    "moses-sample": MosesSample,
}
_PREFIXED: dict[str, tuple[str, Callable[..., BatchStream]]] = {
    "file": ("PATH", TextFiles),
    "lines": ("FILE", Sequences.lines),
    "csv": ("FILE:COLUMN", Sequences.csv),
    "pairs": ("FILE.tsv", Sequences.pairs),
    "smiles": ("FILE", smiles_file),
    "huggingface": ("NAME", HuggingFaceText),
}
DATA_NAMES = (*_NAMED, *(f"{prefix}:{what}" for prefix, (what, _) in _PREFIXED.items()))


def open_data(name: str, **options: Any) -> BatchStream:
    """The stream of that name, with the options of its class.

    >>> open_data("arithmetic", seed=3).max_length
    64
    >>> open_data("arithmetics")
    Traceback (most recent call last):
        ...
    ValueError: there is no data 'arithmetics', did you mean 'arithmetic'? There are: arithmetic, \
text8, text8-sample, moses, moses-sample, file:PATH, lines:FILE, csv:FILE:COLUMN, pairs:FILE.tsv, \
smiles:FILE, huggingface:NAME

    An option `vocabulary` may be a text, which `open_vocabulary` understands.
    """
    prefix, _, rest = name.partition(":")
    if name in _NAMED:
        construct, arguments = _NAMED[name], []
    elif prefix in _PREFIXED and rest:
        construct = _PREFIXED[prefix][1]
        arguments = rest.rsplit(":", 1) if prefix == "csv" else [rest]
    else:
        close = difflib.get_close_matches(name, DATA_NAMES, n=1)
        hint = f", did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"there is no data {name!r}{hint} There are: {', '.join(DATA_NAMES)}")
    if isinstance(options.get("vocabulary"), str):
        options["vocabulary"] = open_vocabulary(options["vocabulary"])
    try:
        inspect.signature(construct).bind(*arguments, **options)
    except TypeError as error:
        known = list(inspect.signature(construct).parameters)[len(arguments) :]
        raise ValueError(f"data {name!r}: {error}; its options are {', '.join(known)}") from None
    try:
        return construct(*arguments, **options)
    except TypeError as error:
        raise ValueError(f"data {name!r} with options {options!r:.200}: {error}") from error


def data_options() -> dict[str, dict[str, Any]]:
    """The options of each data and their defaults; the seed is that of the training.

    >>> data_options()["moses-sample"]
    {'atoms': True, 'scaffolds': False}
    """
    options = {}
    for name, construct in (*_NAMED.items(), *((n, c) for n, (_, c) in _PREFIXED.items())):
        parameters = list(inspect.signature(construct).parameters.values())
        options[name] = {
            each.name: each.default
            for each in parameters
            if each.default is not inspect.Parameter.empty and each.name != "seed"
        }
    return options


def open_vocabulary(name: str) -> Vocabulary:
    """The vocabulary "bytes", "text8", "characters:LIST", "integers:SIZE" or "tokenizer:PATH".

    >>> open_vocabulary("characters:ACGT").size
    4
    """
    kind, _, rest = name.partition(":")
    if name == "bytes":
        return ByteVocabulary()
    if name == "text8":
        return CharacterVocabulary.text8()
    if kind == "characters" and rest:
        return CharacterVocabulary(rest)
    if kind == "integers" and rest.isdecimal():
        return IntegerVocabulary(int(rest))
    if kind == "tokenizer" and rest:
        return TokenizerVocabulary.from_file(rest)
    raise ValueError(
        f"there is no vocabulary {name!r}. There are: bytes, text8, characters:LIST, "
        "integers:SIZE, tokenizer:PATH"
    )
