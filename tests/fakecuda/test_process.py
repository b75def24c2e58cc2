# SPDX-License-Identifier: Apache-2.0
"""Interpreter exit, fork, no driver, contexts (statements T37 to T43, T46), each in a process of its own."""

from __future__ import annotations

import textwrap

import pytest
from fake_process import TESTS, run

SURVIVORS = {
    "vectors": "v = PinnedVec(BN254.fr, 1000, pool=p); v.push(1); w = v.borrow().numpy()",
    "in a cycle": "v = PinnedVec(BN254.fr, 1000, pool=p); c = [v, v.borrow()]; c.append(c); del c",
    "in flight": "b = p.checkout(2 * MIB); b.record_use(FAKE.stream()); b.release()",
    "being wiped": "b = p.checkout(200 * MIB); b.borrow_mut(); b.release()",
    "default pool": "v = PinnedVec('bytes', 5); v.extend(b'x'); b = PinnedPool.default().checkout(9 * MIB)",
    "registered": "r = p.register(np.zeros(100_000)); keep = r.borrow()",
    "registered in flight": "r = p.register(np.zeros(100_000)); r.record_use(FAKE.stream()); r.release()",
    "a waiter on a daemon thread": (
        "b = p.checkout(p.budget.total); threading.Thread(target=p.checkout, args=(1,), daemon=True).start()"
    ),
    "closed with blocks out": "b = p.checkout(2 * MIB); p.close()",
    "a frame that never ends": "g = (v for v in [PinnedVec('bytes', 9, pool=p)]); next(g)",
    "atexit": "import atexit; b = p.checkout(2 * MIB); atexit.register(b.release); atexit.register(p.checkout, 3 * MIB)",
}


@pytest.mark.parametrize("survivor", SURVIVORS)
def test_t37_t38_t39_live_owners_at_exit(survivor: str) -> None:
    out = run(
        f"""
        p = PinnedPool(MemoryBudget(1 << 30), kind="pinned")
        {SURVIVORS[survivor]}
        print("reached", FAKE.calls("cuMemHostUnregister") + FAKE.calls("cuMemFreeHost"), flush=True)
        """,
        FAKE_REPORT="1",
    )
    lines = out.splitlines()
    assert lines[0].startswith("reached")
    frees = sum(
        int(x.split()[1]) for x in lines[1:] if x.split()[0] in ("cuMemHostUnregister", "cuMemFreeHost")
    )
    assert frees == int(lines[0].split()[1]), "what is pinned at exit stays so until the process is gone"


def test_t41_a_forked_child_leaves_the_parents_memory_alone() -> None:
    run("""
        budget = MemoryBudget(1 << 30)
        p = PinnedPool(budget, kind="pinned")
        v, b, q = PinnedVec(BN254.fr, 100_000, pool=p), p.checkout(300), budget.reserve(5, "x")
        v.push(7)
        s = FAKE.stream()
        flying = p.checkout(2 * MIB); flying.record_use(s); flying.release()
        lease = v.borrow()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                live, calls = FAKE.live_bytes(), FAKE.calls()
                uses = [lambda: v.push(1), lambda: len(v), v.borrow, v.release, v.into_backing, b.release, b.borrow,
                        lambda: b.ptr, lambda: b.record_use(s), lambda: p.checkout(1), p.trim, p.settle, p.stats, p.close,
                        lambda: budget.reserve(1, "x"), budget.stats, q.release, lambda: q.split(1),
                        lambda: PinnedPool(budget), lambda: PinnedPool(MemoryBudget(99999), kind="pinned").checkout(1)]
                for use in uses:
                    try:
                        use()
                    except ForkError as e:
                        assert isinstance(e, RuntimeError)
                    else:
                        raise AssertionError("no ForkError")
                assert not lease.numpy().any(), "the parent's secrets are not the child's"
                del lease, v, b, q, flying, p, budget
                gc.collect()
                assert (FAKE.live_bytes(), FAKE.calls()) == (live, calls)
                own = PinnedPool.default()
                with PinnedVec(BN254.fr, 3, pool=own) as w:
                    w.push(5)
                    assert w.kind == "pageable"
                own.close()
                code = 0
            finally:
                sys.stderr.flush()
                if code:
                    import traceback
                    traceback.print_exc()
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert BN254.fr.decode(lease.numpy()) == [7]
        del lease
        for x in (v, b, q):
            x.release()
        s.advance()
        p.settle(5)
        p.close()
        assert FAKE.live_bytes() == 0
        """)


def test_t41_a_forked_child_ends_by_itself() -> None:
    run("""
        p = PinnedPool(MemoryBudget(1 << 30), kind="pinned")
        v = PinnedVec(BN254.fr, 100_000, pool=p)
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """)


def test_t41_a_fork_before_the_driver_started_leaves_it_usable() -> None:
    run("""
        child = os.fork()
        p = PinnedPool(kind="pinned")
        with p.checkout(100) as b:
            assert b.kind == "pinned"
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """)


NO_DRIVER = """
import sys, threading
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import BN254
from pinzk.errors import *
"""


@pytest.mark.parametrize("why", ["no libcuda", "no device"])
def test_t42_without_a_driver_every_call_says_the_same(why: str) -> None:
    script = """
        p = PinnedPool(MemoryBudget(1 << 30), kind="pinned")
        said = []
        def ask():
            for _ in range(20):
                try:
                    p.checkout(100)
                except PinningError as e:
                    assert isinstance(e.__cause__, BackendUnavailable), e.__cause__
                    said.append(str(e.__cause__))
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert len(said) == 160 and len(set(said)) == 1, set(said)
        assert p.stats().total == p.budget.stats().used == 0
        print(said[0])
        q = PinnedPool(MemoryBudget(1 << 30))
        v = PinnedVec(BN254.fr, 9, pool=q)
        v.push(4)
        assert v.kind == "pageable" and q.stats().fallbacks == 1
        """
    if why == "no libcuda":
        empty = str(TESTS / "no-such-folder")
        text = run(script, NO_DRIVER, LD_LIBRARY_PATH=empty)
        if "no CUDA driver" not in text:
            pytest.skip("this machine has a driver of its own")
    else:
        text = run('FAKE.fail("cuInit", 1, 100, True)\n' + textwrap.dedent(script))
        assert "CUDA_ERROR_NO_DEVICE" in text


def test_t43_import_and_pool_objects_touch_no_gpu() -> None:
    run("""
        import pinzk
        p = PinnedPool(kind="pinned")
        p.default(), p.stats(), p.budget.stats(), PinnedVec("bytes", pool=p)
        r = p.budget.reserve(100, "x")
        assert FAKE.calls() == 0, FAKE.called()
        """)


def test_t43_the_pool_binds_to_the_callers_device_and_leaves_the_context() -> None:
    run("""
        FAKE.make_current(3)                       # some context of device 1
        p = PinnedPool(MemoryBudget(1 << 30), kind="pinned")
        b, c = p.checkout(100), p.checkout(9 * MIB)
        b.record_use(FAKE.stream(0, automatic=True))
        assert FAKE.current() == FAKE.context(3)
        assert (FAKE.retained(0), FAKE.retained(1)) == (0, 1)
        FAKE.make_current(None)
        b.release(), c.release()
        p.checkout(20 * MIB).release()
        p.settle()
        p.trim()
        assert FAKE.current() is None
        assert (FAKE.retained(0), FAKE.retained(1)) == (0, 1)
        q = PinnedPool(MemoryBudget(1 << 30), kind="pinned")
        q.checkout(1)
        assert (FAKE.retained(0), FAKE.retained(1), FAKE.current()) == (1, 1, None)
        """)


@pytest.mark.parametrize(
    "missing", ["cuStreamIsCapturing", "cuEventRecord", "cuEventQuery", "cuMemHostRegister", "cuCtxGetId"]
)
def test_t46_a_function_that_the_driver_lacks_is_an_error_by_name(missing: str) -> None:
    text = run(
        """
        p = PinnedPool(MemoryBudget(1 << 30), kind="pinned")
        for _ in range(2):
            try:
                b = p.checkout(4 * MIB)
                print(b.kind)
                b.record_use(FAKE.stream(automatic=True))
                b.release()
                p.settle(5)
                print(p.stats().quarantined)
            except (DeviceError, PinningError) as e:
                print(type(e).__name__, e)
        """,
        FAKE_MISSING=missing,
    )
    if missing == "cuEventQuery":
        assert text.splitlines()[1] == str(4 << 20)
    elif missing == "cuMemHostRegister":
        assert text.startswith("pinned"), "cuMemHostAlloc is there"
    else:
        assert "DeviceError" in text
        assert "update it" in text
