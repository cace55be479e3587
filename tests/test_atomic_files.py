"""Files are written whole or not at all."""

import os
from pathlib import Path

import pytest

from indel.atomic_files import read_json, whole_file, write_output


def test_a_file_is_there_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    with whole_file(path) as file:
        file.write(b"some")
        assert not path.exists()
        file.write(b"thing")
    assert path.read_bytes() == b"something"
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with whole_file(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_output_replaces_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"first", b"second"):
        write_output(path, content)
        assert path.read_bytes() == content
    with pytest.raises(ValueError, match=r"it is no file; choose another --out"):
        write_output(tmp_path, b"")
    with pytest.raises(ValueError, match=r"cannot write .*file/below.*choose another --out"):
        write_output(path / "below", b"")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with whole_file(path) as file:
        file.write(b"new")
        (partial,) = (other for other in tmp_path.iterdir() if other != path)
        # Not even for a moment can more people read it.
        assert partial.stat().st_mode & 0o777 == mode
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", mode)


def test_a_new_file_is_as_readable_as_the_umask_says(tmp_path: Path) -> None:
    for mask, mode in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(mask)
        try:
            write_output(tmp_path / str(mask), b"")
        finally:
            os.umask(before)
        assert (tmp_path / str(mask)).stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, "\\ud800", "1" * 5000])
def test_json_that_cannot_be_read_is_a_value_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"."):
        read_json(path)
