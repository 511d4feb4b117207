# SPDX-License-Identifier: Apache-2.0
"""Files into and out of a guest, without a guest."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from nearside import NearsideError
from nearside.cli.app import app
from nearside.guest import kit
from nearside.guest.image import Archive, write_disk
from nearside.guest.job import Job
from nearside.guest.machine import CpuModel
from nearside.guest.report import job_phases, save_files
from typer.testing import CliRunner


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    return info, io.BytesIO(content)


def write_archive(path: Path, *members: tuple) -> Path:
    with tarfile.open(path, "w") as tar:
        for info, content in members:
            tar.addfile(info, content)
    return path


def test_results_are_regular_files_under_all_their_names(tmp_path):
    archive = write_archive(
        tmp_path / "a.tar",
        member("./", kind=tarfile.DIRTYPE),
        member("./dangling", kind=tarfile.SYMTYPE, link="/etc/none"),
        member("./loop", kind=tarfile.SYMTYPE, link="loop"),
        member("./passwords", kind=tarfile.SYMTYPE, link="/etc/passwd"),
        member("./pipe", kind=tarfile.FIFOTYPE),
        member("./one", b"content"),
        member("./two", kind=tarfile.LNKTYPE, link="./one"),
        member("./input", b"as before"),
        member("./changed", b"as after!"),
    )
    before = hashlib.sha256(b"as before").digest()
    inputs = {"input": before, "changed": before}
    assert save_files(archive, inputs, tmp_path / "out") == ["one", "two", "changed"]
    assert (tmp_path / "out/two").read_bytes() == b"content"
    assert not (tmp_path / "out/two").is_symlink()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["changed", "one", "two"]


def test_results_that_can_not_be_saved_do_not_hide_the_others(tmp_path, capsys):
    out = tmp_path / "out"
    (out / "folder").mkdir(parents=True)
    (out / "file").write_text("of an earlier job")
    (out / "link").symlink_to(tmp_path)
    archive = write_archive(
        tmp_path / "a.tar",
        member("./folder", b"1"),
        member("./file/inner", b"2"),
        member("../outside", b"3"),
        member("./link/outside", b"4"),
        member("./none", kind=tarfile.LNKTYPE, link="./missing"),
        member("./last", b"5"),
    )
    assert save_files(archive, {}, out) == ["last"]
    errors = capsys.readouterr().err.splitlines()
    assert [line.partition(" can't be saved: ")[0] for line in errors] == [
        "guest: folder", "guest: file/inner", "guest: ../outside", "guest: link/outside", "guest: none",
    ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "out"]


@pytest.mark.parametrize("host", ["", "\0", "none/such.toml", "windows", "polled", "x" * 5000])
def test_guest_cpu_of_another_host_is_one_line(host):
    with pytest.raises((NearsideError, ValueError)) as found:
        CpuModel.load(host)
    assert len(str(found.value).splitlines()) == 1


def test_words_of_a_command_may_be_long_or_no_text(tmp_path):
    word = "\udcff" + "long " * 2000
    archive = Job(["sh", "-c", word]).archive(1)
    assert b"\xfflong long" in archive.bytes


def test_words_that_name_what_the_kernel_tells_are_the_guests():
    described = Job(["cat", "/proc/meminfo", "/sys/kernel/fscaps"])
    described.archive(1)
    assert not described.inputs


def test_a_trace_does_not_overwrite_what_a_job_reads(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("kept\n")
    for words in (["--", "cat", str(path)], ["--media", str(path), "--", "true"]):
        done = CliRunner().invoke(app, ["guest", "run", "--limit", "0", "--trace", str(path), *words])
        assert "the same file, too" in str(done.exception)
        assert path.read_text() == "kept\n"


def test_folders_of_a_job_have_names_of_their_own(tmp_path):
    folders = [tmp_path / "1/same", tmp_path / "2/same"]
    for folder in folders:
        folder.mkdir(parents=True)
    with pytest.raises(NearsideError, match="another file or folder of that name"):
        Job(["true"], folders).archive(1)


def test_files_of_a_folder_are_inputs_too(tmp_path):
    (tmp_path / "data/sub").mkdir(parents=True)
    (tmp_path / "data/sub/same").write_bytes(b"1")
    described = Job(["true"], [tmp_path / "data"])
    described.archive(1)
    archive = write_archive(tmp_path / "a.tar", member("./data/sub/same", b"1"), member("./data/made", b"2"))
    assert save_files(archive, described.inputs, tmp_path / "out") == ["data/made"]


def test_phases_of_a_job_may_have_any_name():
    def phases(*names: str) -> list[str]:
        return [phase["name"] for phase in job_phases({"phases": [{"name": name} for name in names]})]

    assert phases("boot", "job", "boot", "end", "x", "end") == ["job", "boot", "end", "x"]
    assert phases("boot", "job") == ["job"]
    assert phases("boot") == []


def test_special_files_in_a_folder_are_refused_in_one_line(tmp_path):
    os.mkfifo(tmp_path / "new\nline")
    with pytest.raises(NearsideError, match=r"new\\nline is no file, folder or link") as found:
        Archive().add_tree("job", tmp_path)
    assert "\n" not in str(found.value)


@pytest.mark.slow
def test_images_of_the_same_folder_are_the_same_bytes(tmp_path):
    try:
        parts = kit.install_kit(quiet=True)
    except kit.NoKit as reason:
        pytest.skip(str(reason))
    first, second = tmp_path / "1/data", tmp_path / "2/data"
    (first / "sub").mkdir(parents=True)
    for number in range(20):
        (first / f"sub/file{number}").write_text(f"{number}\n")
    write_disk(parts, first, tmp_path / "one")
    # Later, elsewhere, and after the files were read.
    shutil.copytree(first, second)
    write_disk(parts, second, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
