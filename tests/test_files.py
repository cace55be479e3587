"""Files are written whole or not at all."""

from pathlib import Path

import pytest

from indel.files import whole_file, write_output


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
