"""text8: a hundred million characters of English Wikipedia, and a short sample of it."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Int

from indel.atomic_files import cache_folder
from indel.data.chunks import ChunkStream, MappedFile, Numbers
from indel.data.corpora import Corpus
from indel.data.streams import SPLITS, Split
from indel.vocabularies import CharacterVocabulary

TEXT8 = Corpus(
    name="text8",
    url="http://mattmahoney.net/dc/text8.zip",
    size=100_000_000,
    md5="3bea1919949baf155f99411df5fada7e",
)
_SPANS: dict[Split, tuple[int, int]] = {
    "train": (0, 90_000_000),
    "valid": (90_000_000, 95_000_000),
    "test": (95_000_000, 100_000_000),
}


class Text8Data(ChunkStream):
    """Random chunks of 118 characters of text8: 90M characters to train, 5M valid, 5M test.

    `path` is the text8.zip or the unpacked file, which is then mapped where it lies; without it
    the archive is fetched from its home page. Archives are unpacked once into `cache`
    (default: the folder INDEL_CACHE, or ~/.cache/indel). The checksum is verified once, and again
    when the size or the time of the file has changed.

    Paper: App. C.3
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        seed: int = 0,
        chunk_length: int = 118,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        file = TEXT8.locate(None if path is None else Path(path), cache_folder(cache))
        vocabulary = CharacterVocabulary.text8()
        super().__init__(
            MappedFile(file, "uint8"),
            _SPANS,
            vocabulary,
            chunk_length=chunk_length,
            seed=seed,
            name=str(file),
            token_of=_token_of(vocabulary),
        )


class Text8Sample(ChunkStream):
    """Random chunks of the 192,000 characters of text8 that come with the package.

    Twenty excerpts of text8's training part, two of its validation and two of its test part;
    a chunk may reach from one excerpt into the next. Origin and licence (CC BY-SA, not that of
    the code) are in `text8_sample/ATTRIBUTION.md`.

    >>> sample = Text8Sample(seed=1, chunk_length=40)
    >>> sample.vocabulary.decode(sample.examples(0, 1).to_lists()[0])
    ' intended primarily for self defense and'
    """

    def __init__(self, *, seed: int = 0, chunk_length: int = 118) -> None:
        folder = resources.files("indel.data") / "text8_sample"
        parts = {split: (folder / f"{split}.txt").read_bytes() for split in SPLITS}
        ends = np.cumsum([len(part) for part in parts.values()]).tolist()
        vocabulary = CharacterVocabulary.text8()
        super().__init__(
            Numbers(np.frombuffer(b"".join(parts.values()), dtype=np.uint8)),
            dict(zip(SPLITS, zip([0, *ends], ends, strict=False), strict=True)),
            vocabulary,
            chunk_length=chunk_length,
            seed=seed,
            name="the sample of text8",
            token_of=_token_of(vocabulary),
        )


def _token_of(vocabulary: CharacterVocabulary) -> Int[np.ndarray, " codes"]:
    """The token of each character code; for a code that text8 does not use, an id beyond all."""
    table = np.full(256, vocabulary.augmented_size, dtype=np.int64)
    for token, character in enumerate(vocabulary.characters):
        table[ord(character)] = token
    return table
