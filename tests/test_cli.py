# SPDX-License-Identifier: Apache-2.0
"""The installed command `pinzk`, run as a user runs it: results, exit codes, streams, messages."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from cases import Case, case

PINZK = Path(sys.executable).with_name("pinzk")
VARIABLES = [name for name in os.environ if name.startswith("PINZK_")]


def load_case(name: str) -> Case:
    found = case(name)
    assert found is not None
    return found


BN254, BLS = load_case("mult3_bn254"), load_case("mult3_bls12381")
LARGER = load_case("merkle20_mimc_bls12381")


@pytest.fixture
def pinzk(tmp_path, monkeypatch):
    """Run `pinzk` in an empty folder."""
    for name in VARIABLES:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*args: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, **options.pop("env", {})}
        return subprocess.run(
            [PINZK, *args], capture_output=True, timeout=120, env=env, check=False, **options
        )

    return run


def fails(done: subprocess.CompletedProcess[bytes], code: int, *words: str) -> None:
    """One line on stderr that says all of `words`, nothing on stdout, that exit code."""
    assert done.returncode == code, done
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1 and lines[0].startswith("pinzk: error: "), done.stderr
    assert all(word in lines[0] for word in words), lines[0]
    assert done.stdout == b""


def succeeds(done: subprocess.CompletedProcess[bytes], stdout: str | None = None) -> str:
    assert done.returncode == 0 and done.stderr == b"", done
    assert stdout is None or done.stdout.decode() == stdout
    return done.stdout.decode()


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def patched(path: Path, source: Path, change) -> Path:
    data = bytearray(source.read_bytes())
    change(data)
    path.write_bytes(data)
    return path


def unsatisfying(path: Path, c: Case) -> Path:
    def change(data: bytearray) -> None:
        data[-32] ^= 1

    return patched(path, c.wtns, change)


def insecure_vk(path: Path, c: Case) -> Path:
    vk = json.loads(c.vkey.read_text())
    path.write_text(json.dumps({**vk, "vk_delta_2": vk["vk_gamma_2"]}))
    return path


# ---- prove and verify ----


@pytest.mark.parametrize("c", [BN254, BLS, LARGER], ids=str)
def test_proves_in_the_order_of_snarkjs_and_snarkjs_agrees(pinzk, snarkjs, tmp_path, c):
    succeeds(pinzk("prove", c.zkey, c.wtns, "my proof.json", "öffentlich.json"), "")
    assert files(tmp_path) == {"my proof.json", "öffentlich.json"}
    assert (tmp_path / "öffentlich.json").read_bytes() == c.public.read_bytes()
    assert (
        "OK"
        in snarkjs(
            "groth16", "verify", c.vkey, tmp_path / "öffentlich.json", tmp_path / "my proof.json"
        ).stdout
    )
    succeeds(pinzk("verify", c.vkey, "öffentlich.json", "my proof.json"), "OK\n")


def test_files_have_the_names_of_snarkjs_by_default(pinzk, tmp_path):
    succeeds(pinzk("prove", BN254.zkey, BN254.wtns), "")
    assert files(tmp_path) == {"proof.json", "public.json"}
    shape = json.loads((tmp_path / "proof.json").read_text())
    assert list(shape) == list(json.loads(BN254.proof_fixed.read_text()))
    assert shape["protocol"] == "groth16" and shape["curve"] == "bn128"


def test_options_may_stand_anywhere(pinzk, tmp_path):
    succeeds(
        pinzk(
            "prove",
            "--threads",
            "1",
            BN254.zkey,
            "--check=full",
            BN254.wtns,
            "-q",
            "a",
            "--device",
            "cpu",
            "b",
        ),
        "",
    )
    assert files(tmp_path) == {"a", "b"}


def test_each_proof_is_blinded_anew(pinzk):
    outputs = [succeeds(pinzk("prove", BN254.zkey, BN254.wtns, "-", "public.json")) for _ in range(2)]
    assert outputs[0] != outputs[1]


def test_a_wrong_proof_is_invalid_with_the_reason(pinzk, tmp_path):
    other = [str(int(v) + 1) for v in json.loads(BN254.public.read_text())]
    (tmp_path / "other.json").write_text(json.dumps(other))
    done = pinzk("verify", BN254.vkey, "other.json", BN254.proof_fixed)
    assert done.returncode == 1 and done.stdout.startswith(b"INVALID: ") and b"pairing" in done.stdout
    assert done.stderr == b""
    proof = json.loads(BN254.proof_fixed.read_text())
    (tmp_path / "infinite.json").write_text(json.dumps({**proof, "pi_a": ["0", "1", "0"]}))
    done = pinzk("verify", BN254.vkey, BN254.public, "infinite.json", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"valid": False, "reason": "pi_a is the point at infinity"}


def test_verify_takes_a_proving_key_too(pinzk):
    succeeds(pinzk("verify", BN254.zkey, BN254.public, BN254.proof_fixed), "OK\n")
    assert json.loads(succeeds(pinzk("verify", BN254.vkey, BN254.public, BN254.proof_fixed, "--json"))) == {
        "valid": True,
        "reason": None,
    }


def test_stats_are_one_json_object(pinzk):
    stats = json.loads(succeeds(pinzk("prove", LARGER.zkey, LARGER.wtns, "--json", "--threads", "2")))
    assert stats["curve"] == "bls12_381" and stats["device"] == "cpu" and stats["threads"] == 2
    assert stats["self_check"] is True and stats["pinzk"] and stats["sizes"]["domain_size"] == 8192
    assert set(stats["seconds"]) == {"load_witness", "load_key", "prove", "write", "total"}
    assert {"evaluate", "quotient", "msm_a", "msm_b_1", "msm_b_2", "msm_c", "msm_h", "self_check"} <= set(
        stats["stages"]
    )
    assert all(value >= 0 for value in (*stats["seconds"].values(), *stats["stages"].values()))
    assert sum(stats["seconds"].values()) <= 2 * stats["seconds"]["total"] + 1e-3
    assert 10 << 20 < stats["peak_memory"] < 1 << 30


def test_without_the_self_check_it_warns(pinzk):
    done = pinzk("prove", BN254.zkey, BN254.wtns, "--no-self-check", "--json")
    assert (
        done.returncode == 0 and done.stderr.startswith(b"pinzk: warning: ") and b"self-check" in done.stderr
    )
    stats = json.loads(done.stdout)
    assert stats["self_check"] is False and "self_check" not in stats["stages"]
    done = pinzk("prove", BN254.zkey, BN254.wtns, "--no-self-check", "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")


# ---- exit codes and messages ----


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], ["--help"]),
        (["frobnicate"], ["frobnicate", "--help"]),
        (["zkey"], ["zkey info", "zkey check", "zkey export-vk"]),
        (["zkey", "frobnicate"], ["zkey frobnicate", "zkey info"]),
        (["prove"], ["KEY", "--help"]),
        (["prove", "k", "w", "p", "q", "r"], ["unrecognized", "r"]),
        (["prove", "k", "w", "--frobnicate"], ["--frobnicate"]),
        (["prove", "k", "w", "--jso"], ["--jso"]),
        (["prove", "k", "w", "--check", "some"], ["--check", "curve"]),
        (["prove", "k", "w", "--threads", "0"], ["--threads", "1 to 1024"]),
        (["prove", "k", "w", "--threads", "9" * 5000], ["--threads"]),
        (["prove", "k", "w", "--device", "gpu"], ["--device", "cuda:N"]),
        (["prove", "k", "w", "--curve", "p256"], ["--curve", "bn254"]),
        (["prove", "absent.zkey", BN254.wtns], ["absent.zkey", "does not exist"]),
        (["prove", ".", BN254.wtns], ["folder"]),
        (["prove", BN254.zkey, BN254.wtns, "no/proof.json"], ["no/proof.json", "create"]),
        (["prove", BN254.zkey, BN254.wtns, "."], ["folder"]),
        (["prove", BN254.zkey, BN254.wtns, "same", "./same"], ["same file"]),
        (["prove", "-", "-"], ["standard input"]),
        (["prove", BN254.zkey, BN254.wtns, "-", "-"], ["standard output"]),
        (["prove", BN254.zkey, BN254.wtns, "-", "--json"], ["--json"]),
        (["prove", BN254.zkey, BN254.wtns, "--curve", "bls12381"], ["bls12_381", "bn254"]),
        (["verify", BN254.vkey, BN254.public], ["PROOF"]),
        (["verify", BN254.vkey, BN254.public, "line\nbreak"], ["line\\nbreak"]),
    ],
    ids=lambda value: " ".join(Path(str(a)).name[:20] for a in value) if isinstance(value, list) else None,
)
def test_usage_errors_end_with_2_and_touch_nothing(pinzk, tmp_path, args, words):
    fails(pinzk(*args), 2, *words)
    assert files(tmp_path) == set()


def test_an_output_that_is_an_input_is_refused_and_untouched(pinzk, tmp_path):
    key, wtns = tmp_path / "key", tmp_path / "wtns"
    key.write_bytes(BN254.zkey.read_bytes())
    wtns.write_bytes(BN254.wtns.read_bytes())
    fails(pinzk("prove", "key", "wtns", "key"), 2, "same file", "nothing was touched")
    fails(pinzk("prove", "key", "wtns", "proof", "./wtns"), 2, "same file")
    fails(pinzk("zkey", "export-vk", "key", "key"), 2, "same file")
    assert key.read_bytes() == BN254.zkey.read_bytes() and wtns.read_bytes() == BN254.wtns.read_bytes()
    assert files(tmp_path) == {"key", "wtns"}


@pytest.mark.parametrize(
    "name", ["PINZK_DEVICE", "PINZK_NUM_THREADS", "PINZK_MAX_PINNED", "PINZK_LOG", "PINZK_CACHE_DIR"]
)
def test_junk_in_the_environment_is_an_error(pinzk, tmp_path, name):
    junk = str(BN254.zkey) if name == "PINZK_CACHE_DIR" else "junk"
    fails(pinzk("prove", BN254.zkey, BN254.wtns, env={name: junk}), 2, name, junk)
    assert files(tmp_path) == set()
    assert f"{name}" in succeeds(pinzk("doctor", env={name: junk}))
    succeeds(pinzk("verify", BN254.vkey, BN254.public, BN254.proof_fixed, env={name: ""}), "OK\n")


def test_a_device_that_is_not_there_ends_with_3(pinzk, tmp_path):
    for device in ("cuda:99", "GPU-00000000-0000-0000-0000-000000000000"):
        fails(pinzk("prove", BN254.zkey, BN254.wtns, "--device", device), 3, device)
        fails(
            pinzk("prove", BN254.zkey, BN254.wtns, env={"PINZK_DEVICE": device}),
            3,
            f"PINZK_DEVICE asks for '{device}'",
        )
    fails(pinzk("prove", BN254.zkey, BN254.wtns, "--device", "cuda:99999"), 2, "cuda:N")
    fails(pinzk("devices", env={"PINZK_DEVICE": "cuda:99999"}), 2, "PINZK_DEVICE")
    assert "devices" in json.loads(succeeds(pinzk("devices", "--json", env={"PINZK_DEVICE": "cuda:99"})))
    fails(pinzk("prove", BN254.zkey, BN254.wtns, env={"PINZK_DEVICE": "cuda:99"}), 3, "PINZK_DEVICE")
    assert files(tmp_path) == set()


def test_keys_that_do_not_belong_or_are_insecure_end_with_5(pinzk, tmp_path):
    fails(
        pinzk("prove", BN254.zkey, BN254.wtns, "--vk", load_case("semaphore4_depth1_bn254").vkey),
        5,
        "does not belong",
    )
    fails(pinzk("prove", BN254.zkey, BN254.wtns, "--vk", BLS.vkey), 5, "does not belong")
    fails(pinzk("prove", BN254.zkey, BLS.wtns), 5, "witness")
    fails(pinzk("verify", BLS.vkey, BN254.public, BN254.proof_fixed), 5, "bn254", "bls12_381")
    insecure_vk(tmp_path / "insecure.json", BN254)
    fails(pinzk("verify", "insecure.json", BN254.public, BN254.proof_fixed), 5, "delta_2 = gamma_2")
    done = pinzk("verify", "insecure.json", BN254.public, BN254.proof_fixed, "--allow-insecure-key")
    assert done.returncode == 1 and done.stdout.startswith(b"INVALID")
    assert files(tmp_path) == {"insecure.json"}
    succeeds(pinzk("prove", BN254.zkey, BN254.wtns, "--vk", BN254.vkey, "--curve", "alt_bn128"), "")


def test_a_key_without_a_second_phase_proves_with_a_warning_and_checks_with_an_error(pinzk, tmp_path):
    from pinzk.groth16.constraints import R1cs
    from pinzk.groth16.setup import ToxicWaste, _setup

    _setup(R1cs.load(BN254.r1cs), ToxicWaste(tau=5, alpha=6, beta=7, delta=1)).save(tmp_path / "fresh.zkey")
    done = pinzk("prove", "fresh.zkey", BN254.wtns)
    assert (
        done.returncode == 0
        and done.stderr.count(b"\n") == 1
        and done.stderr.startswith(b"pinzk: warning: insecure key")
    )
    fails(pinzk("verify", "fresh.zkey", "public.json", "proof.json"), 5, "delta_2 = gamma_2")
    succeeds(pinzk("verify", "fresh.zkey", "public.json", "proof.json", "--allow-insecure-key"), "OK\n")
    fails(pinzk("zkey", "check", "fresh.zkey"), 5, "delta_2 = gamma_2")
    assert succeeds(pinzk("zkey", "check", "fresh.zkey", "--allow-insecure-key")).startswith("OK")
    assert "NO" in succeeds(pinzk("zkey", "info", "fresh.zkey"))


def test_malformed_files_end_with_6(pinzk, tmp_path):
    (tmp_path / "short.zkey").write_bytes(BN254.zkey.read_bytes()[:-100])
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "hex.json").write_text('["0x31", "1"]')
    fails(pinzk("prove", "short.zkey", BN254.wtns), 6, "short.zkey", "section")
    fails(pinzk("prove", BN254.zkey, "empty"), 6, "empty")
    fails(pinzk("prove", BN254.wtns, BN254.zkey), 6, "wtns")
    fails(pinzk("verify", BN254.vkey, "hex.json", BN254.proof_fixed), 6, "hex.json", "decimal")
    fails(pinzk("verify", BN254.vkey, BN254.vkey, BN254.proof_fixed), 6, "list")
    assert files(tmp_path) == {"short.zkey", "empty", "hex.json"}


def test_witnesses_that_do_not_fit_end_with_7_and_show_no_value(pinzk, tmp_path):
    unsatisfying(tmp_path / "bad.wtns", BN254)
    fails(pinzk("prove", BN254.zkey, "bad.wtns"), 7, "does not satisfy")
    fails(pinzk("prove", load_case("darkforest_whitelist_bn254").zkey, BN254.wtns), 7, "8")
    assert files(tmp_path) == {"bad.wtns"}


RAISING = """
import sys, pinzk, pinzk.cli, pinzk.errors
def prove(*_):
    raise {error}
pinzk.Prover.prove = prove
sys.exit(pinzk.cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("pinzk.errors.SelfCheckError('text')", 4),
        ("pinzk.errors.ContextLost('text')", 3),
        ("pinzk.errors.CompileError('text', log='log')", 3),
        ("pinzk.errors.BudgetExceeded('text')", 8),
        ("pinzk.errors.PinningError('text')", 8),
        ("MemoryError('text')", 8),
        ("pinzk.errors.WaitTimeout('text')", 9),
        ("pinzk.errors.Cancelled('text')", 9),
        ("KeyboardInterrupt", 130),
        ("OSError(5, 'text', 'name')", 2),
        ("ZeroDivisionError('text')", 70),
    ],
)
def test_errors_of_the_prover_have_their_exit_codes(pinzk, tmp_path, error, code):
    script = RAISING.format(error=error)
    command = [sys.executable, "-c", script, "prove", str(BN254.zkey), str(BN254.wtns)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    fails(done, code, "Ctrl-C" if code == 130 else "text")
    assert files(tmp_path) == set()
    done = subprocess.run(
        command, capture_output=True, timeout=60, check=False, env={**os.environ, "PINZK_LOG": "debug"}
    )
    assert done.returncode == code and b"Traceback" in done.stderr


# ---- streams ----


def test_inputs_from_stdin_and_outputs_to_stdout(pinzk, tmp_path):
    succeeds(pinzk("prove", "-", BN254.wtns, "a.json", "b.json", stdin=BN254.zkey.open("rb")), "")
    out = succeeds(pinzk("prove", BN254.zkey, "-", "-", "public.json", input=BN254.wtns.read_bytes()))
    succeeds(pinzk("verify", BN254.vkey, "public.json", "-", input=out.encode()), "OK\n")
    assert succeeds(pinzk("prove", BN254.zkey, BN254.wtns, "proof.json", "-")) == BN254.public.read_text()
    succeeds(pinzk("verify", "-", "public.json", "proof.json", stdin=BN254.vkey.open("rb")), "OK\n")
    assert files(tmp_path) == {"a.json", "b.json", "public.json", "proof.json"}


def test_pipes_are_read_and_written(pinzk, tmp_path):
    for name in ("key", "proof"):
        os.mkfifo(tmp_path / name)
    got: list[bytes] = []
    writer = threading.Thread(target=lambda: (tmp_path / "key").write_bytes(BN254.zkey.read_bytes()))
    reader = threading.Thread(target=lambda: got.append((tmp_path / "proof").read_bytes()))
    writer.start(), reader.start()
    succeeds(pinzk("prove", "key", BN254.wtns, "proof", "public", "--vk", BN254.vkey), "")
    writer.join(10), reader.join(10)
    succeeds(pinzk("verify", BN254.vkey, "public", "-", input=got[0]), "OK\n")


def test_a_reader_that_went_away_is_no_reason_to_complain(pinzk, tmp_path):
    for args in (
        ["prove", BN254.zkey, BN254.wtns, "-"],
        ["zkey", "info", BN254.zkey],
        ["--help"],
        ["doctor"],
    ):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [str(a) for a in (PINZK, *args)], stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
        )
        os.close(write)
        assert (done.returncode, done.stderr) == (141, b""), args
    assert files(tmp_path) == set()


def test_closed_streams_do_no_harm(pinzk, tmp_path):
    done = subprocess.run(
        ["sh", "-c", f"'{PINZK}' prove '{BN254.zkey}' '{BN254.wtns}' >&- 2>&- <&-"], timeout=60, check=False
    )
    assert done.returncode == 0 and files(tmp_path) == {"proof.json", "public.json"}
    done = subprocess.run(["sh", "-c", f"'{PINZK}' prove a b 2>&-"], timeout=60, check=False)
    assert done.returncode == 2


def test_inputs_need_not_be_writable(pinzk, tmp_path):
    folder = tmp_path / "read only"
    folder.mkdir()
    for path in (BN254.zkey, BN254.wtns):
        (folder / path.name).write_bytes(path.read_bytes())
        (folder / path.name).chmod(0o444)
    folder.chmod(0o555)
    succeeds(pinzk("prove", "read only/circuit.zkey", "read only/witness.wtns"), "")
    folder.chmod(0o755)


def test_progress_is_for_terminals(pinzk):
    def stderr_of(*args: Any) -> bytes:
        ours, theirs = pty.openpty()
        done = subprocess.run([PINZK, *args], stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=False)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass
        os.close(ours)
        assert (done.returncode, done.stdout) == (0, b"")
        return shown

    shown = stderr_of("prove", BN254.zkey, BN254.wtns)
    assert all(word in shown for word in (b"key read", b"proved", b"bn254", b"written")), shown
    assert stderr_of("prove", BN254.zkey, BN254.wtns, "--quiet") == b""
    done = pinzk("prove", BN254.zkey, BN254.wtns, "-v")
    assert done.returncode == 0 and b"proved" in done.stderr


# ---- files appear together or not at all ----


def test_ctrl_c_and_a_kill_leave_nothing(pinzk, tmp_path):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        child = subprocess.Popen(
            [PINZK, "prove", "-", BN254.wtns], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert child.stdin is not None and child.stderr is not None
        child.stdin.write(BN254.zkey.read_bytes()[:1000])
        child.stdin.flush()
        time.sleep(1.0)  # it now waits for the rest
        child.send_signal(number)
        assert child.wait(10) == code
        assert child.stderr.read().count(b"\n") <= 1
        assert files(tmp_path) == set()
        child.stdin.close(), child.stderr.close()


def test_killed_at_any_time_it_leaves_both_files_or_none(pinzk, tmp_path):
    start = time.perf_counter()
    succeeds(pinzk("prove", LARGER.zkey, LARGER.wtns, "proof.json", "public.json"))
    whole = time.perf_counter() - start
    for i in range(8):
        for path in tmp_path.iterdir():
            path.unlink()
        child = subprocess.Popen([PINZK, "prove", LARGER.zkey, LARGER.wtns])
        time.sleep(whole * i / 7)
        child.kill()
        child.wait(10)
        assert files(tmp_path) in (set(), {"proof.json", "public.json"})


def test_a_disk_that_is_full_keeps_the_old_files(pinzk, tmp_path):
    (tmp_path / "proof.json").write_text("old proof")
    (tmp_path / "public.json").write_text("old public")
    done = pinzk(
        "prove",
        BN254.zkey,
        BN254.wtns,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)),
    )
    fails(done, 2, "File too large")
    assert files(tmp_path) == {"proof.json", "public.json"}
    assert (tmp_path / "proof.json").read_text() == "old proof" and (
        tmp_path / "public.json"
    ).read_text() == "old public"
    if os.path.exists("/dev/full"):
        fails(pinzk("prove", BN254.zkey, BN254.wtns, "/dev/full", "new.json"), 2, "No space")
        assert files(tmp_path) == {"proof.json", "public.json"}


# ---- the other commands ----


def test_zkey_info_check_and_export(pinzk, tmp_path):
    info = json.loads(succeeds(pinzk("zkey", "info", BN254.zkey, "--json")))
    assert info["curve"] == "bn254" and info["public"] == 2 and info["wires"] == 8 and info["domain"] == 8
    assert info["secure"] is True
    assert "bls12_381" in succeeds(pinzk("zkey", "info", BLS.zkey))
    assert succeeds(pinzk("zkey", "check", BN254.zkey)).startswith("OK: bn254")
    succeeds(pinzk("zkey", "export-vk", BN254.zkey), "")
    assert files(tmp_path) == {"verification_key.json"}
    assert json.loads((tmp_path / "verification_key.json").read_text()) == json.loads(BN254.vkey.read_text())
    assert json.loads(succeeds(pinzk("zkey", "export-vk", BLS.zkey, "-"))) == json.loads(BLS.vkey.read_text())


def test_wtns_info_and_check(pinzk, tmp_path):
    assert json.loads(succeeds(pinzk("wtns", "info", BN254.wtns, "--json"))) == {
        "curve": "bn254",
        "values": 8,
    }
    assert "1155" not in succeeds(pinzk("wtns", "info", BN254.wtns))
    succeeds(pinzk("wtns", "check", BN254.r1cs, BN254.wtns), "OK: all 3 constraints are satisfied\n")
    assert succeeds(pinzk("wtns", "check", BN254.zkey, BN254.wtns)).startswith("OK: ")
    unsatisfying(tmp_path / "bad.wtns", BN254)
    fails(pinzk("wtns", "check", BN254.r1cs, "bad.wtns"), 7, "constraint ")
    fails(pinzk("wtns", "check", BN254.zkey, "bad.wtns"), 7, "does not satisfy")
    fails(pinzk("wtns", "check", BN254.r1cs, BLS.wtns), 5)
    fails(pinzk("wtns", "check", BN254.vkey, BN254.wtns), 6)


def test_calldata_is_that_of_snarkjs(pinzk, snarkjs):
    ours = succeeds(pinzk("proof", "calldata", BN254.public, BN254.proof_fixed))
    theirs = snarkjs("zkey", "export", "soliditycalldata", BN254.public, BN254.proof_fixed, check=True).stdout
    assert ours.strip() == theirs.strip()
    fails(pinzk("proof", "calldata", BLS.public, BLS.proof_fixed), 6, "bn254")


def test_doctor_and_version(pinzk):
    import pinzk as package

    succeeds(pinzk("--version"), f"pinzk {package.__version__}\n")
    found = json.loads(succeeds(pinzk("doctor", "--json")))
    assert found["pinzk"] == package.__version__ and re.fullmatch(r"cpu|cuda:\d+", found["backend"])
    assert int(found["threads"]) >= 1 and found["problems"] == []
    text = succeeds(pinzk("doctor"))
    assert all(name.replace("_", " ") in text for name in found)
    assert "no limit" in text or "GiB" in text
    assert "set PINZK_CACHE_DIR" in succeeds(pinzk("doctor", env={"XDG_CACHE_HOME": str(BN254.zkey)}))


def test_help_names_every_command(pinzk, capsys):
    from pinzk.cli import COMMANDS, main

    text = succeeds(pinzk("--help"))
    for words in COMMANDS:
        assert f"pinzk {' '.join(words)} " in text
        capsys.readouterr()
        assert main([*words, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: pinzk {' '.join(words)} ")


def test_bellman_keys_prove_with_their_circuit(pinzk, tmp_path):
    from pinzk.groth16.constraints import R1cs
    from pinzk.groth16.setup import setup

    setup(R1cs.load(BLS.r1cs), kind="bellman").save(tmp_path / "key.params")
    succeeds(pinzk("zkey", "export-vk", "key.params", "vk.json"), "")
    fails(pinzk("prove", "key.params", BLS.wtns), 2, "--r1cs")
    succeeds(
        pinzk("prove", "key.params", BLS.wtns, "--r1cs", BLS.r1cs, "--vk", "vk.json", "--curve", "bls12381"),
        "",
    )
    succeeds(pinzk("verify", "vk.json", "public.json", "proof.json"), "OK\n")
    succeeds(pinzk("verify", "key.params", "public.json", "proof.json"), "OK\n")
    assert json.loads(succeeds(pinzk("zkey", "info", "key.params", "--json")))["format"] == "bellman"
    assert succeeds(pinzk("zkey", "check", "key.params")).startswith("OK")


def test_with_its_circuit_a_bad_witness_is_told_by_the_constraint(pinzk, tmp_path):
    unsatisfying(tmp_path / "bad.wtns", BN254)
    fails(pinzk("prove", BN254.zkey, "bad.wtns", "--r1cs", BN254.r1cs), 7, "constraint ")
