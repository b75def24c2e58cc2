# SPDX-License-Identifier: Apache-2.0
"""Threads of the CPU backend: their number, same bytes for any number, Ctrl-C, forks, calls from many Python threads."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import oracle
import pytest
from references import CURVES, GROUPS, by_name, known_multiples, random_ints

from pinzk._core import control_group, cpu
from pinzk._core.memory import MemoryBudget
from pinzk.curves import BN254

# ---- how many ----


@pytest.fixture
def no_variable(monkeypatch):
    monkeypatch.delenv("PINZK_NUM_THREADS", raising=False)


def test_the_argument_wins_over_the_variable(monkeypatch):
    monkeypatch.setenv("PINZK_NUM_THREADS", "5")
    assert cpu.num_threads() == 5
    assert cpu.num_threads(3) == 3
    monkeypatch.setenv("PINZK_NUM_THREADS", " 7 ")
    assert cpu.num_threads() == 7


@pytest.mark.parametrize("bad", ["0", "-1", "1.5", "two", "1e3", "+2", "0x4", "２", "1 2", "nan", "²"])  # noqa: RUF001
def test_a_junk_variable_is_an_error_that_names_it(monkeypatch, bad):
    monkeypatch.setenv("PINZK_NUM_THREADS", bad)
    with pytest.raises(ValueError, match="PINZK_NUM_THREADS must be a positive whole number"):
        cpu.num_threads()
    with pytest.raises(ValueError, match="PINZK_NUM_THREADS"):
        cpu.msm(BN254.g1, BN254.g1.encode([]), BN254.fr.encode([]))
    assert cpu.num_threads(2) == 2


@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "2"])
def test_a_junk_argument_is_an_error_that_names_it(bad):
    with pytest.raises(ValueError, match="threads must be a positive int"):
        cpu.num_threads(bad)
    with pytest.raises(ValueError, match="threads must be a positive int"):
        cpu.to_montgomery(BN254.fr, BN254.fr.encode([1]), threads=bad)


@pytest.mark.usefixtures("no_variable")
def test_an_empty_variable_counts_as_none(monkeypatch):
    usual = cpu.num_threads()
    monkeypatch.setenv("PINZK_NUM_THREADS", "  ")
    assert cpu.num_threads() == usual


@pytest.mark.usefixtures("no_variable")
def test_affinity_is_respected():
    allowed = os.sched_getaffinity(0)
    assert 1 <= cpu.num_threads() <= len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert cpu.num_threads() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_huge_numbers_are_bounded():
    assert cpu.num_threads(10**9) == 1024


# where a quota is written, and what it means: None is no limit
QUOTAS = [
    ({}, None),
    ({"cpu.max": "max 100000\n"}, None),
    ({"cpu.max": "150000 100000\n"}, 1.5),
    ({"cpu.max": "50000 100000\n"}, 0.5),
    ({"cpu.max": "junk\n"}, None),
    ({"cpu.max": ""}, None),
    ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3.0),
    ({"cpu/cpu.cfs_quota_us": "300000\n"}, None),
    # this process's own group, and the ones above it
    ({"proc": "0::/user/job\n", "user/job/cpu.max": "200000 100000"}, 2.0),
    ({"proc": "0::/user/job\n", "user/job/cpu.max": "max 100000", "user/cpu.max": "250000 100000"}, 2.5),
    ({"proc": "0::/user/job\n", "user/job/cpu.max": "800000 100000", "user/cpu.max": "250000 100000"}, 2.5),
    ({"proc": "0::/elsewhere\n", "other/cpu.max": "100000 100000"}, None),
    ({"proc": "0::/not/seen/here\n", "cpu.max": "400000 100000"}, 4.0),
    (
        {
            "proc": "4:memory:/a\n3:cpu,cpuacct:/a\n",
            "cpu/a/cpu.cfs_quota_us": "100000",
            "cpu/a/cpu.cfs_period_us": "50000",
        },
        2.0,
    ),
    ({"proc": "3:cpuset:/a\n", "cpu/a/cpu.cfs_quota_us": "1", "cpu/a/cpu.cfs_period_us": "1"}, None),
]


@pytest.mark.parametrize(("files", "cores"), QUOTAS)
def test_the_quota_of_a_control_group_is_read(tmp_path, files, cores):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert control_group.cpu_quota(str(tmp_path / "proc"), str(tmp_path)) == cores


LIMITS: list[tuple[dict[str, str], int | None]] = [
    ({"proc": "0::/\n", "memory.max": "max\n"}, None),
    ({"proc": "0::/user/job\n", "user/job/memory.max": "3000\n", "user/memory.max": "2000\n"}, 2000),
    ({"proc": "0::/not/seen/here\n", "memory.max": "4096\n"}, 4096),
    ({"proc": "4:memory:/a\n", "memory/a/memory.limit_in_bytes": "5000\n"}, 5000),
    ({"proc": "4:memory:/a\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
    ({"proc": "3:cpu:/a\n", "memory/a/memory.limit_in_bytes": "1\n"}, None),
]


@pytest.mark.parametrize(("files", "limit"), LIMITS)
def test_the_memory_limit_of_a_control_group_is_read(tmp_path, files, limit):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert control_group.memory_limit(str(tmp_path / "proc"), str(tmp_path)) == limit


def test_a_budget_without_a_total_stays_below_the_control_groups_limit(monkeypatch):
    monkeypatch.setattr(control_group, "memory_limit", lambda: 8 << 30)
    assert MemoryBudget().total <= 7 << 30


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize(("quota", "threads"), [(0.1, 1), (1.0, 1), (1.2, 2), (1000.0, None), (None, None)])
def test_a_quota_bounds_the_number_rounded_up(monkeypatch, quota, threads):
    monkeypatch.setattr(control_group, "cpu_quota", lambda: quota)
    cores = len(os.sched_getaffinity(0))
    assert cpu.num_threads() == (cores if threads is None else min(threads, cores))


# ---- same bytes ----


def all_results(threads: int) -> dict[str, bytes]:
    """Every loop over more than one chunk, both curves and the toy."""
    out: dict[str, bytes] = {}
    n = 1 << 15
    for curve in CURVES:
        f, r = curve.fr, curve.fr.modulus
        x = cpu.powers(f, 3, n, first=5, threads=threads)
        y = cpu.powers(f, 7, n, threads=threads)
        rows = {
            "powers": x,
            "canonical": cpu.from_montgomery(f, x, threads=threads),
            "montgomery": cpu.to_montgomery(f, x, threads=threads),
            "multiply": cpu.multiply(f, x, y, threads=threads),
            "multiply_subtract": cpu.multiply_subtract(f, x, y, x, threads=threads),
            "invert": cpu.invert(f, x, threads=threads),
        }
        log_n = min(15, f.two_adicity)
        for name in ("dif", "dit", "bit_reverse"):
            data = x[: 1 << log_n].copy()
            w = cpu.twiddles(f, oracle.root_of_unity(r, 5, log_n), len(data), threads=threads)
            getattr(cpu, name)(f, data, *([w] if name != "bit_reverse" else []), threads=threads)
            rows[name] = data
        indices = np.arange(2 * n, dtype=np.uint32) * np.uint32(7) % np.uint32(n)
        rows["sparse"] = cpu.sparse_rows(
            f,
            np.arange(0, 2 * n + 1, 2, dtype=np.uint64),
            indices,
            np.repeat(x, 2, axis=0),
            y,
            threads=threads,
        )
        for group in oracle.groups(curve):
            _, points = known_multiples(group, 1025)
            scalars = f.encode_canonical(random_ints(r, 4100, 3))
            rows[f"msm {group.number}"] = cpu.msm(group, np.tile(points, (4, 1)), scalars, threads=threads)
            some = scalars[:1500].copy()
            rows[f"fixed {group.number}"] = cpu.fixed_base(group, cpu.generator(group), some, threads=threads)
        out |= {f"{curve.name} {name}": a.tobytes() for name, a in rows.items()}
    return out


@pytest.fixture(scope="module")
def single() -> dict[str, bytes]:
    return all_results(1)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_any_number_of_threads_gives_the_same_bytes(single, threads):
    several = all_results(threads)
    assert [k for k in single if single[k] != several[k]] == []


def test_python_threads_may_call_at_the_same_time(single):
    with ThreadPoolExecutor(4) as pool:
        for several in pool.map(all_results, [1, 2, 2, 3]):
            assert several == single


@functools.cache
def big_input(group, n: int):
    _, rows = known_multiples(group, 1025)
    scalars = group.scalar.encode_canonical(random_ints(group.scalar.modulus, 2048, 9))
    return np.tile(rows, (n // len(rows) + 1, 1))[:n].copy(), np.tile(scalars, (n // 2048, 1))


@pytest.mark.unsanitized
def test_other_python_threads_run_during_a_call():
    bases, scalars = big_input(BN254.g2, 1 << 14)
    beats, done = [0], threading.Event()

    def beat():
        while not done.is_set():
            beats[0] += 1
            time.sleep(0.001)

    clock = threading.Thread(target=beat)
    clock.start()
    try:
        before, begun = beats[0], time.monotonic()
        cpu.msm(BN254.g2, bases, scalars, threads=1)
        during, lasted = beats[0] - before, time.monotonic() - begun
    finally:
        done.set()
        clock.join()
    assert lasted < 0.05 or during >= 3


# ---- Ctrl-C ----

CHILD = """
    import os, sys, time
    import numpy as np
    from pinzk._core import cpu
    from pinzk.curves import BLS12_381 as curve

    f, g = curve.fr, curve.g2
    calls = {
        "msm": lambda n: cpu.msm(g, points[:n], scalars[:n], threads=2),
        "fixed_base": lambda n: cpu.fixed_base(g, cpu.generator(g), scalars[:n], threads=2),
        "subgroup": lambda n: cpu.first_bad_point(g, points[:n], "subgroup", threads=2),
        "ntt": lambda n: [cpu.dif(f, scalars[:n], twiddles[: n // 2], threads=1) for _ in range(10)],
        "sparse": lambda n: [cpu.sparse_rows(f, indptr[: n + 1], indices[:n], scalars[:n], scalars[:n]) for _ in range(200)],
    }
    n = 1 << 19
    scalars = cpu.from_montgomery(f, cpu.powers(f, 12345678901234567890, n))
    points = np.tile(cpu.fixed_base(g, cpu.generator(g), scalars[:4096].copy()), (n // 4096, 1))
    twiddles = cpu.twiddles(f, pow(5, (f.modulus - 1) >> 19, f.modulus), n)
    indptr, indices = np.arange(n + 1, dtype=np.uint64), np.arange(n, dtype=np.uint32)
    def running():
        return len(os.listdir("/proc/self/task"))

    before = running()
    print("ready", flush=True)
    try:
        calls[sys.argv[1]](n)
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
    else:
        print("finished", flush=True)
    left = running() - before
    again = cpu.msm(g, np.repeat(cpu.generator(g), 40, axis=0), f.encode_canonical([1] * 40), threads=2)
    print(left, g.decode(again)[0] == g.decode(cpu.fixed_base(g, cpu.generator(g), f.encode_canonical([40])))[0])
"""


@pytest.mark.unsanitized
@pytest.mark.parametrize("call", ["msm", "fixed_base", "subgroup", "ntt", "sparse"])
def test_ctrl_c_stops_a_long_call_within_a_second(call, tmp_path):
    """And leaves no thread behind, nor anything broken. On a busy machine one of three tries must do."""
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD))
    for delay in (0.1, 0.3, 0.6):
        with subprocess.Popen([sys.executable, script, call], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(delay)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            stopped = child.stdout.readline().strip()
            rest = child.stdout.readline().split()
        assert stopped != "finished", "the call ended before the signal: make it longer"
        assert rest == ["0", "True"]
        assert child.returncode == 0
        if float(stopped) - sent < 1:
            return
    pytest.fail(f"{call} took {float(stopped) - sent:.2f} s to stop")


# ---- forks, and threads that cannot be had ----


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *args]
    # glibc: keep no freed blocks and no reserves of other threads, so that a limit of the address space is felt
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=240, env=env)


def test_a_forked_child_can_use_what_its_parent_used():
    done = run("""
        import os, warnings
        import numpy as np
        from pinzk._core import cpu
        from pinzk.curves import BN254 as curve

        g, n = curve.g1, 5000
        scalars = cpu.from_montgomery(curve.fr, cpu.powers(curve.fr, 3, n))
        def total():
            bases = cpu.fixed_base(g, cpu.generator(g), scalars, threads=3)
            return cpu.msm(g, bases, scalars, threads=3).tobytes()
        expected = total()
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if total() == expected else 1)
            assert total() == expected
            assert os.waitpid(pid, 0)[1] == 0
        print("same")
    """)
    assert (done.stdout, done.returncode) == ("same\n", 0), done.stderr


@pytest.mark.unsanitized
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_fewer_threads_than_asked_for_do_the_work():
    """Where the system gives no more threads: here, where their stacks do not fit the address space."""
    done = run("""
        import resource
        import numpy as np
        from pinzk._core import cpu
        from pinzk.curves import BN254 as curve

        f, n = curve.fr, 1 << 20
        x = cpu.powers(f, 3, n)
        out = np.empty_like(x)
        expected = cpu.multiply(f, x, x, threads=1).tobytes()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), hard))
        cpu.multiply(f, x, x, out, threads=64)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        print("same" if out.tobytes() == expected else "different")
    """)
    assert (done.stdout, done.returncode) == ("same\n", 0), done.stderr


@pytest.mark.unsanitized
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_no_memory_is_a_memory_error_and_nothing_worse(threads):
    done = run(
        """
        import resource, sys
        import numpy as np
        from pinzk._core import cpu
        from pinzk.curves import BN254 as curve

        g, f, n = curve.g2, curve.fr, 1 << 18
        scalars = cpu.from_montgomery(f, cpu.powers(f, 3, n))
        bases = np.repeat(cpu.generator(g), n, axis=0)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        soft = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 20), soft[1]))
        try:
            cpu.msm(g, bases, scalars, threads=int(sys.argv[1]))
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, soft)
            print("MemoryError", g.decode(cpu.msm(g, bases[:50], f.encode_canonical([2] * 50)))[0]
                  == g.decode(cpu.fixed_base(g, cpu.generator(g), f.encode_canonical([100])))[0])
        """,
        threads,
    )
    assert (done.stdout, done.returncode) == ("MemoryError True\n", 0), done.stderr


@pytest.mark.parametrize("group", GROUPS, ids=by_name)
def test_more_threads_than_points(group):
    _, rows = known_multiples(group, 1025)
    for n in (1, 2, 33, 40):
        scalars = group.scalar.encode_canonical(random_ints(group.scalar.modulus, n, 6))
        one, many = (cpu.msm(group, rows[:n].copy(), scalars, threads=t) for t in (1, 100))
        assert np.array_equal(one, many)
