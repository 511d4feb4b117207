# SPDX-License-Identifier: Apache-2.0
"""What guest.py makes of a guest's console: nothing passes that didn't say so."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import guest
import pytest
from nearside.guest import bootable, kit

CHECKS = ["probe", "format", "mkfs"]


@pytest.fixture(autouse=True)
def _unsupported(monkeypatch):
    """As if the controller refused Format NVM."""
    monkeypatch.setattr(guest, "UNSUPPORTED", {"format": "Invalid Command Opcode"})


REFUSED = "   NVMe status: Invalid Command Opcode: the associated command opcode field is not valid(0x4001)"


def console(*lines: str) -> str:
    return "\n".join(["SeaBIOS", *lines, ""])


def judge(*lines: str) -> tuple[int, int, int]:
    report = guest.Report()
    report.take(CHECKS, console(*lines))
    return report.passed, report.failed, report.unsupported


def test_all_is_as_expected():
    lines = ["@@ probe pass", REFUSED, "@@ format fail", "@@ mkfs pass", "@@time end 5", "@@done"]
    assert judge(*lines) == (2, 0, 1)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["@@done"],
        ["@@ probe fail", "@@done"],
        ["@@ probe pass", REFUSED, "@@ format fail", "@@done"],
        ["@@ probe pass", REFUSED, "@@ format fail", "@@ mkfs pass"],
        ["@@ probe pass", REFUSED, "@@ format fail", "@@ mkfs fail", "@@done"],
        ["@@ probe pass", REFUSED, "@@ mkfs pass", "@@ format fail", "@@done"],
        ["@@ probe pass", REFUSED, "@@ format fail", "@@ mkfs pass", "@@ more pass", "@@done"],
    ],
)
def test_what_is_missing_or_failed_is_a_failure(lines):
    assert judge(*lines)[1] > 0


def test_an_unsupported_check_must_fail_and_say_why():
    assert judge("@@ probe pass", "@@ format pass", "@@ mkfs pass", "@@done")[1] == 1
    assert judge("@@ probe pass", "   timed out", "@@ format fail", "@@ mkfs pass", "@@done")[1] == 1
    # The reason of another check doesn't count.
    assert judge(REFUSED, "@@ probe pass", "@@ format fail", "@@ mkfs pass", "@@done")[1] == 1


def test_every_unsupported_check_is_run():
    assert set(guest.UNSUPPORTED) <= set(guest.FIRST)


def test_without_the_archive_it_is_skipped_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NEARSIDE_GUEST", str(tmp_path / "guest"))
    monkeypatch.setattr(kit, "mirror", lambda: f"file:{tmp_path}/nothing")
    assert guest.test(seed=1, model="fast", tasks=[]) == 0
    out = capsys.readouterr().out
    assert "skipped: apt-" in out
    assert "0 passed, 0 failed, 1 skipped" in out
    assert [path.name for path in (tmp_path / "guest").iterdir()] == []


def test_two_that_ask_at_once_install_one_kit(tmp_path, monkeypatch):
    installed = []

    def install(folder):
        installed.append(folder)
        time.sleep(0.05)
        folder.mkdir()  # fails the second time
        (folder / "PACKAGES").write_text("")

    monkeypatch.setenv("NEARSIDE_GUEST", str(tmp_path / "guest"))
    monkeypatch.setattr(kit, "_download", install)
    with ThreadPoolExecutor(4) as pool:
        kits = list(pool.map(lambda _: kit.install_kit(), range(4)))
    assert set(kits) == set(installed)
    assert len(installed) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["image"], "image needs the name of a file that does not exist yet"),
        (["image", "{}/there"], "{}/there exists: image needs the name of a file that does not exist yet"),
        (["image", "{}"], "{} exists: image needs the name of a file that does not exist yet"),
        (["image", "{}/link"], "{}/link exists: image needs the name of a file that does not exist yet"),
        (["image", "{}/none/x"], "{}/none/x: No such file or directory"),
        (["image", "{}/there/x"], "{}/there/x: Not a directory"),
        (["image", "{}/" + 300 * "x"], "{}/" + 300 * "x" + ": File name too long"),
        (["shell"], "--socket must name the socket of a device that is being served (nearside serve --socket PATH)"),
        (["shell", "--socket", "{}/there"], "--socket must name the socket of a device that is being served"),
    ],
)
def test_arguments_are_checked_before_anything_is_downloaded(tmp_path, monkeypatch, words, said):
    (tmp_path / "there").touch()
    (tmp_path / "link").symlink_to("nowhere")
    monkeypatch.setattr(guest, "install_kit", lambda: pytest.fail("the kit was asked for"))
    monkeypatch.setattr("sys.argv", ["guest.py", *(word.format(tmp_path) for word in words)])
    with pytest.raises(SystemExit) as end:
        guest.main()
    assert str(end.value.code).startswith("guest: " + said.format(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"there", "link"}


def test_a_partition_ends_where_the_disk_does():
    table = bootable.partition_table(64 << 20)
    assert len(table) == 66
    assert table[-2:] == b"\x55\xaa"
    first, count = (int.from_bytes(table[at : at + 4], "little") for at in (8, 12))
    assert (first * 512, (first + count) * 512) == (1 << 20, 64 << 20)
