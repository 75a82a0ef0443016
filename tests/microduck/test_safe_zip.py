"""No archive writes outside its folder, makes links, or fills the disk."""

import struct
import zipfile
from zipfile import ZipFile, ZipInfo

import pytest

from hardware.errors import SceneError
from microduck.scene import safe_zip


@pytest.fixture
def archive(tmp_path):
    return tmp_path / "archive.zip"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "inside" / "here"


def linked(name, target):
    member = ZipInfo(name)
    member.create_system = 3  # Unix, where modes are kept
    member.external_attr = 0o120777 << 16
    return member, target


def test_files_are_written_with_their_content(archive, folder):
    with ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("top/", "")
        made.writestr("top/a/b.txt", "text")
        made.writestr("top/empty", b"")
    safe_zip.unpack(archive, folder)
    assert (folder / "top/a/b.txt").read_text() == "text"
    assert (folder / "top/empty").read_bytes() == b""
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "b.txt", "empty", "top"]


@pytest.mark.parametrize(
    "name", ["../evil", "top/../../evil", "/evil", "..\\evil", "c:/evil", "c:evil", "//server/evil", "."]
)
def test_names_that_lead_outside_are_refused_before_anything_is_written(archive, folder, tmp_path, name):
    with ZipFile(archive, "w") as made:
        made.writestr("good", "")
        made.writestr(name, "evil")
    with pytest.raises(SceneError, match="outside its folder"):
        safe_zip.unpack(archive, folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["archive.zip"]


def test_links_are_left_out_and_nothing_is_written_through_them(archive, folder, tmp_path):
    with ZipFile(archive, "w") as made:
        made.writestr(*linked("way", str(tmp_path)))
        made.writestr("way/evil", "evil")
        made.writestr(*linked("secret", "/etc/hostname"))
    safe_zip.unpack(archive, folder)
    assert not (tmp_path / "evil").exists()
    assert (folder / "way/evil").read_text() == "evil"  # in a folder of that name, not through a link
    assert not (folder / "secret").exists() and not (folder / "secret").is_symlink()


def test_archive_that_declares_too_much_is_refused(archive, folder, monkeypatch):
    monkeypatch.setattr(safe_zip, "MOST_BYTES", 10_000_000)
    with ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("a", "b"):
            made.writestr(name, bytes(6_000_000))
    assert archive.stat().st_size < 20_000
    with pytest.raises(SceneError, match=r"2 files of 12000000 bytes together; at most .* 10000000 bytes"):
        safe_zip.unpack(archive, folder)
    assert not folder.exists()


def test_archive_of_too_many_files_is_refused(archive, folder, monkeypatch):
    monkeypatch.setattr(safe_zip, "MOST_MEMBERS", 3)
    with ZipFile(archive, "w") as made:
        for name in "abcd":
            made.writestr(name, "")
    with pytest.raises(SceneError, match=r"4 files .*at most 3 files"):
        safe_zip.unpack(archive, folder)


def test_file_that_unpacks_to_more_than_it_declares_is_cut_off_and_refused(archive, folder):
    with ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("bomb", bytes(50_000_000))
    data = archive.read_bytes()
    archive.write_bytes(data.replace(struct.pack("<L", 50_000_000), struct.pack("<L", 1000)))
    with pytest.raises(SceneError, match="damaged"):
        safe_zip.unpack(archive, folder)
    assert sum(path.stat().st_size for path in folder.rglob("*")) <= 1000


def test_encrypted_file_is_refused(archive, folder):
    with ZipFile(archive, "w") as made:
        made.writestr("a", "text")
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    with pytest.raises(SceneError, match=r"'a' .*encrypted"):
        safe_zip.unpack(archive, folder)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b")])
def test_two_files_in_one_place_are_refused(archive, folder, names):
    with ZipFile(archive, "w") as made:
        for name in names:
            made.writestr(name, "text")
    with pytest.raises(SceneError, match="two files in one place"):
        safe_zip.unpack(archive, folder)


@pytest.mark.parametrize("cut", [0, 10, -30])
def test_damaged_archive_is_refused(archive, folder, cut):
    with ZipFile(archive, "w") as made:
        made.writestr("a", "text" * 100)
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(SceneError, match="damaged"):
        safe_zip.unpack(archive, folder)


def test_changed_byte_is_noticed(archive, folder):
    with ZipFile(archive, "w") as made:
        made.writestr("a", "text" * 100)
    archive.write_bytes(archive.read_bytes().replace(b"texttext", b"texTtext", 1))
    with pytest.raises(SceneError, match="damaged"):
        safe_zip.unpack(archive, folder)
