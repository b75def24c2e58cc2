# SPDX-License-Identifier: Apache-2.0
"""The files of one command appear together or not at all, under every failure that can be provoked."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest

from pinzk import cli_files
from pinzk.cli_files import UsageError, check_paths, write_together

ENTRIES = ("open", "write", "fsync", "fchmod", "link", "replace")


@pytest.fixture(params=[True, False], ids=["O_TMPFILE", "named"])
def folder(request, tmp_path, monkeypatch):
    """A folder, with and without the kernel's nameless files."""
    if not request.param:
        monkeypatch.delattr(os, "O_TMPFILE")
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no O_TMPFILE")
    return tmp_path


def pair(folder, a=b"new a", b=b"new b"):
    return [(str(folder / "a.json"), a), (str(folder / "b.json"), b)]


def content(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_new_files_appear_with_the_permissions_of_the_umask(folder):
    old = os.umask(0o027)
    try:
        write_together(pair(folder))
    finally:
        os.umask(old)
    assert content(folder) == {"a.json": b"new a", "b.json": b"new b"}
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o640}


def test_existing_files_keep_their_permissions(folder):
    for name, _ in pair(folder):
        Path(name).write_bytes(b"old")
        os.chmod(name, 0o604)
    write_together(pair(folder))
    assert content(folder) == {"a.json": b"new a", "b.json": b"new b"}
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o604}


@pytest.mark.parametrize(
    "before", [{}, {"a.json": b"old a"}, {"b.json": b"old b"}, {"a.json": b"old a", "b.json": b"old b"}]
)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_failure_of_any_system_call_leaves_everything_as_it_was(folder, monkeypatch, entry, before):
    """The n-th call of `entry` fails, for every n until the write succeeds."""
    for name, data in before.items():
        (folder / name).write_bytes(data)
    real, failures = getattr(os, entry), 0
    for n in range(1, 50):
        calls = 0

        def failing(*args, n=n, **kwargs):
            nonlocal calls
            calls += 1
            if calls == n:
                raise OSError(28, "No space left on device")
            return real(*args, **kwargs)

        monkeypatch.setattr(os, entry, failing)
        try:
            write_together(pair(folder))
        except OSError:
            failures += 1
            monkeypatch.setattr(os, entry, real)
            assert content(folder) == before
        else:
            monkeypatch.setattr(os, entry, real)
            assert content(folder) == {"a.json": b"new a", "b.json": b"new b"}
            if calls < n:
                break
            for name, _ in pair(folder):  # the failure was survived (a backup by copy): start again
                os.unlink(name)
            for name, data in before.items():
                (folder / name).write_bytes(data)
    else:
        pytest.fail("never succeeded")
    assert failures or entry in ("fchmod", "link")  # not called for new files, or survived


def test_short_writes_are_continued(folder, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:3])))
    write_together(pair(folder, a=b"0123456789" * 10))
    assert content(folder) == {"a.json": b"0123456789" * 10, "b.json": b"new b"}


def test_a_symbolic_link_stays_and_its_target_is_replaced(folder):
    real = folder / "real"
    real.mkdir()
    (real / "proof").write_bytes(b"old")
    (folder / "a.json").symlink_to(real / "proof")
    write_together([(str(folder / "a.json"), b"new")])
    assert (folder / "a.json").is_symlink() and content(real) == {"proof": b"new"}


def test_a_pipe_gets_its_bytes_and_stays_a_pipe(folder):
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    write_together([(str(folder / "a.json"), b"new a"), (str(fifo), b"through")])
    reader.join(10)
    assert (
        got == [b"through"]
        and stat.S_ISFIFO(fifo.stat().st_mode)
        and (folder / "a.json").read_bytes() == b"new a"
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_device_keeps_the_other_file_away(folder):
    with pytest.raises(OSError, match="No space"):
        write_together([(str(folder / "a.json"), b"new a"), ("/dev/full", b"b")])
    assert content(folder) == {}


def killed_at(entry: str, n: int, number: int, folder: Path, nameless: bool) -> int:
    """Write the pair in a child that sends itself a signal at the n-th call of `entry`; the child's wait status."""
    child = os.fork()
    if child == 0:
        try:
            if not nameless and hasattr(os, "O_TMPFILE"):
                del os.O_TMPFILE
            for caught in (signal.SIGINT, signal.SIGTERM):
                signal.signal(caught, lambda *_: sys.exit(1))
            real, calls = getattr(os, entry), 0

            def killing(*args, **kwargs):
                nonlocal calls
                calls += 1
                if calls == n:
                    os.kill(os.getpid(), number)
                return real(*args, **kwargs)

            setattr(os, entry, killing)
            write_together(pair(folder))
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("nameless", [True, False])
def test_a_signal_at_any_point_gives_both_files_or_none(tmp_path, number, nameless):
    outcomes = set()
    for entry in ("open", "write", "fsync", "link", "replace"):
        for n in (1, 2, 3):
            folder = tmp_path / f"{entry}{n}"
            folder.mkdir()
            killed_at(entry, n, number, folder, nameless)
            left = content(folder)
            assert left in ({}, {"a.json": b"new a", "b.json": b"new b"}), (entry, n)
            outcomes.add(bool(left))
    assert outcomes == {True, False}  # both sides of the point of no return were reached


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no O_TMPFILE")
def test_sigkill_while_writing_leaves_nothing(tmp_path):
    """Until the renames start, the new files have no name, so that not even SIGKILL can leave them behind."""
    for entry, n in (("write", 1), ("write", 2), ("fsync", 1), ("fsync", 2), ("link", 1)):
        assert os.WTERMSIG(killed_at(entry, n, signal.SIGKILL, tmp_path, True)) == signal.SIGKILL
        assert content(tmp_path) == {}, (entry, n)


def test_outside_the_main_thread_it_works_too(folder):
    thread = threading.Thread(target=write_together, args=(pair(folder),))
    thread.start()
    thread.join(10)
    assert content(folder) == {"a.json": b"new a", "b.json": b"new b"}


# ---- what is refused before any work ----


@contextlib.contextmanager
def refused(text):
    with pytest.raises(UsageError, match=text):
        yield


def test_outputs_that_are_inputs_or_each_other_are_refused(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"key")
    os.link(key, tmp_path / "hard")
    (tmp_path / "soft").symlink_to(key)
    for same in ("key", "hard", "soft", f"../{tmp_path.name}/key"):
        with refused("same file"):
            check_paths({"the key": str(key)}, {"the proof": str(tmp_path / same)})
    with refused("same file"):
        check_paths({}, {"the proof": str(tmp_path / "new"), "the public file": f"{tmp_path}/./new"})
    check_paths({}, {"the proof": os.devnull, "the public file": os.devnull})


def test_unusable_paths_are_refused_with_a_remedy(tmp_path):
    with refused("does not exist"):
        check_paths({"the key": str(tmp_path / "absent")}, {})
    with refused("is a folder"):
        check_paths({"the key": str(tmp_path)}, {})
    with refused("is a folder"):
        check_paths({}, {"the proof": str(tmp_path)})
    with refused("is a folder"):
        check_paths({}, {"the proof": ""})
    with refused("does not exist: create"):
        check_paths({}, {"the proof": str(tmp_path / "no" / "proof")})
    with refused("both be standard input"):
        check_paths({"the key": "-", "the witness": "-"}, {})
    with refused("both be standard output"):
        check_paths({}, {"the proof": "-", "the public file": "-"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_write_protection_is_respected(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o400)
    with refused("write-protected"):
        check_paths({}, {"the proof": str(tmp_path / "old")})
    tmp_path.chmod(0o500)
    with refused("cannot be written"):
        check_paths({}, {"the proof": str(tmp_path / "new")})
    tmp_path.chmod(0o700)


def test_a_closed_stdout_is_a_usage_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with refused("closed"):
        cli_files.write_stdout(b"x")
