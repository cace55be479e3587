"""A published file: unpacked and checked once, and what is said about wrong ones."""

import hashlib
import io
import json
import os
import re
import zipfile
from pathlib import Path

import pytest

from indel.data import DataError, DataUnavailable
from indel.data.corpora import Corpus

CONTENT = b"the quick brown fox jumps over the lazy dog " * 100
CORPUS = Corpus(
    name="foxes",
    url="http://127.0.0.1:9/foxes.zip",  # nobody listens there
    size=len(CONTENT),
    md5=hashlib.md5(CONTENT).hexdigest(),
)


def archive(path: Path, content: bytes = CONTENT, *, name: str = "foxes") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache"


def test_plain_file_is_used_where_it_is(tmp_path: Path, cache: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(CONTENT)
    assert CORPUS.locate(plain, cache) == plain.resolve()
    assert not (cache / "foxes" / "foxes").exists()


def test_archive_is_unpacked_once(tmp_path: Path, cache: Path) -> None:
    path = archive(tmp_path / "foxes.zip")
    copy = CORPUS.locate(path, cache)
    assert copy.read_bytes() == CONTENT
    made = copy.stat().st_mtime_ns, copy.stat().st_ino
    assert CORPUS.locate(path, cache) == copy
    assert CORPUS.locate(None, cache) == copy  # and needs no network then
    assert (copy.stat().st_mtime_ns, copy.stat().st_ino) == made
    assert sorted(file.name for file in copy.parent.iterdir()) == ["checked.json", "foxes"]


@pytest.mark.parametrize("packed", [False, True])
def test_checksum_is_read_again_only_after_a_change(
    tmp_path: Path, cache: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "given"
    if packed:
        archive(path)
    else:
        path.write_bytes(CONTENT)
    located = CORPUS.locate(path, cache)
    status = located.stat()
    wrong = bytearray(CONTENT)
    wrong[5] ^= 1
    located.write_bytes(wrong)
    os.utime(located, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert CORPUS.locate(path, cache) == located  # same size and time: taken as it is
    os.utime(located, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    if packed:
        assert CORPUS.locate(path, cache).read_bytes() == CONTENT
    else:
        with pytest.raises(DataError, match="md5"):
            CORPUS.locate(path, cache)


def test_wrong_archive_is_noticed_although_there_is_a_good_copy(
    tmp_path: Path, cache: Path
) -> None:
    CORPUS.locate(archive(tmp_path / "good.zip"), cache)
    with pytest.raises(DataError, match=r"wrong\.zip is not foxes"):
        CORPUS.locate(archive(tmp_path / "wrong.zip", CONTENT[::-1]), cache)
    assert CORPUS.locate(None, cache).read_bytes() == CONTENT


def test_damaged_memory_of_checks_is_made_again(tmp_path: Path, cache: Path) -> None:
    path = archive(tmp_path / "foxes.zip")
    memory = CORPUS.locate(path, cache).with_name("checked.json")
    for damage in ("{", "[]", '{"x": 1}'):
        memory.write_text(damage)
        CORPUS.locate(path, cache)
        assert str(path.resolve()) in json.loads(memory.read_text())


def test_copy_without_memory_is_checked_not_fetched(cache: Path) -> None:
    copy = cache / "foxes" / "foxes"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(CONTENT)
    assert CORPUS.locate(None, cache) == copy
    copy.write_bytes(CONTENT[::-1])
    with pytest.raises(DataUnavailable, match="cannot fetch"):
        CORPUS.locate(None, cache)


def encrypted() -> bytes:
    """An archive whose entry says that it is encrypted."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("foxes", CONTENT)
    content = bytearray(packed.getvalue())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def packed(content: bytes, name: str = "foxes") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return made.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT[:-1], "is not foxes: it has 4,399 bytes; expected are 4,400, or the zip archive"),
        (b"", "it has 0 bytes"),
        (CONTENT[::-1], "its md5 checksum is [0-9a-f]{32}, expected is " + CORPUS.md5),
        (packed(CONTENT[::-1]), "its md5 checksum is"),
        (
            packed(CONTENT[1:], "other"),
            "must hold one file of 4,400 bytes, but holds other of 4,399",
        ),
        (packed(b"", "folder/"), "but holds none"),
        (packed(CONTENT)[:-30], "is not a readable archive of foxes"),
        (packed(CONTENT).replace(b"PK\x01\x02", b"PK\x09\x09"), "is not a readable archive"),
        (encrypted(), "is not a readable archive of foxes .*encrypted"),
    ],
)
def test_wrong_content_is_refused(
    tmp_path: Path, cache: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        CORPUS.locate(path, cache)
    assert str(path.resolve()) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(cache.rglob("*foxes*/*"))  # nothing half-made stays


def test_bit_flips_in_an_archive_never_pass(tmp_path: Path, cache: Path) -> None:
    good = packed(CONTENT)
    path = tmp_path / "flipped.zip"
    for place in range(0, len(good), 3):
        content = bytearray(good)
        content[place] ^= 0x10
        path.write_bytes(content)
        try:
            located = CORPUS.locate(path, cache)
        except DataError:
            continue
        assert located.read_bytes() == CONTENT  # a flip in a date or a name


def test_missing_file_is_named(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "nowhere.zip"
    with pytest.raises(DataUnavailable, match=f"cannot read {re.escape(str(path))}: No such file"):
        CORPUS.locate(path, cache)
    with pytest.raises(DataUnavailable, match=r"Is a directory; expected is foxes, plain \(4,400"):
        CORPUS.locate(tmp_path, cache)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permissions_are_reported(tmp_path: Path) -> None:
    path = archive(tmp_path / "foxes.zip")
    path.chmod(0)
    with pytest.raises(DataUnavailable, match=r"foxes\.zip: Permission denied"):
        CORPUS.locate(path, tmp_path / "cache")


@pytest.mark.parametrize("inside", ["", "below"])
def test_cache_that_cannot_be_written_is_named(tmp_path: Path, inside: str) -> None:
    path = archive(tmp_path / "foxes.zip")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(DataUnavailable, match=r"cannot write .*blocked.*; set INDEL_CACHE"):
        CORPUS.locate(path, blocked / inside)
    plain = tmp_path / "plain"  # needs no cache, and is checked each time
    plain.write_bytes(CONTENT)
    assert CORPUS.locate(plain, blocked / inside) == plain.resolve()


def test_full_disk_leaves_nothing_behind(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = archive(tmp_path / "foxes.zip")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataUnavailable, match="No space left on device; set INDEL_CACHE"):
            CORPUS.locate(path, cache)
    assert not list((cache / "foxes").iterdir())
    assert CORPUS.locate(path, cache).read_bytes() == CONTENT


def test_without_network_the_message_says_what_to_do(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(
        DataUnavailable,
        match=r"cannot fetch foxes from http://127.0.0.1:9/foxes.zip .*give the file with path=",
    ) as caught:
        CORPUS.locate(None, cache)
    assert "\n" not in str(caught.value)
    assert not list((cache / "foxes").iterdir())


def test_fetched_archive_is_unpacked_and_checked(tmp_path: Path, cache: Path) -> None:
    good = archive(tmp_path / "foxes.zip").as_uri()
    copy = Corpus("foxes", good, CORPUS.size, CORPUS.md5).locate(None, cache)
    assert copy.read_bytes() == CONTENT
    assert sorted(file.name for file in copy.parent.iterdir()) == ["checked.json", "foxes"]
    bad = archive(tmp_path / "bad.zip", CONTENT[::-1]).as_uri()
    with pytest.raises(DataError, match="md5"):
        Corpus("foxes", bad, CORPUS.size, CORPUS.md5).locate(None, tmp_path / "other")
    assert not list((tmp_path / "other" / "foxes").iterdir())


def test_a_download_stops_when_it_is_too_large(tmp_path: Path, cache: Path) -> None:
    endless = tmp_path / "endless.zip"
    with endless.open("wb") as file:
        file.truncate(1 << 33)  # no zip, and sparse: eight gigabytes that take no room
    corpus = Corpus("foxes", endless.as_uri(), CORPUS.size, CORPUS.md5)
    with pytest.raises(DataError, match=r"sends more than the 4,400 bytes that foxes has"):
        corpus.locate(None, cache)
    assert not list((cache / "foxes").iterdir())
