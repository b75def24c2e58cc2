# SPDX-License-Identifier: Apache-2.0
"""Owners of device memory at interpreter exit and in a forked child, each in a process of its own."""

from __future__ import annotations

import pytest
from fake_process import PREAMBLE, run

HERE = (
    PREAMBLE
    + """
from pinzk._core.device import Device, DeviceVec, Module, Stream, launch
device = Device(0)
FAKE.manual()
s = Stream(device)
p = PinnedPool(MemoryBudget(1 << 30), kind="pinned")
v = PinnedVec(BN254.fr, 1000, pool=p)
v.push(7)
d = DeviceVec(BN254.fr, 1000, device)
"""
)

SURVIVORS = {
    "idle": "e = s.record()",
    "in flight": "d.upload(v, s)",
    "released in flight": "d.upload(v, s); d.release(); v.release()",
    "in a cycle": "d.upload(v, s); c = [d, s, v]; c.append(c); del c, d, s, v",
    "a frame that never ends": "g = (x for x in [d, s]); next(g)",
    "a module": "f = Module(device, b'fake;f:8').function('f'); launch(f, 1, 1, [d], stream=s)",
    "a waiter on a daemon thread": "threading.Thread(target=s.synchronize, daemon=True).start()",
    "atexit": "import atexit; atexit.register(d.release); atexit.register(d.upload, v, s)",
}
FREES = ("cuMemFreeAsync", "cuStreamDestroy_v2", "cuEventDestroy_v2")


@pytest.mark.parametrize("survivor", SURVIVORS)
def test_live_owners_at_exit(survivor: str) -> None:
    out = run(
        f"""
        {SURVIVORS[survivor]}
        print(sum(FAKE.calls(name) for name in {FREES}), flush=True)
        """,
        preamble=HERE,
        FAKE_REPORT="1",
    ).splitlines()
    at_exit = sum(int(x.split()[1]) for x in out[1:] if x.split()[0] in FREES)
    if survivor != "atexit":
        assert at_exit == int(out[0]), "no driver call while Python goes away"


def test_a_forked_child_leaves_the_parents_device_alone() -> None:
    run(
        """
        e = s.record()
        module = Module(device, b"fake;f:8")
        f = module.function("f")
        flying = DeviceVec(BN254.fr, 1000, device)
        flying.upload(v, s)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                live, calls = FAKE.live_device(), FAKE.calls()
                uses = [lambda: Device(0), Device.all, device.settle, device.trim, lambda: Stream(device), s.synchronize,
                        s.record, s.close, lambda: s.wait(e), lambda: s.handle, e.done, e.synchronize,
                        lambda: e.elapsed_ms(e), lambda: DeviceVec("bytes", 1, device), lambda: d.upload(v, s),
                        lambda: d.download(v, s), d.release, lambda: d.ptr, lambda: len(d), lambda: module.function("g"),
                        lambda: launch(f, 1, 1, [d], stream=s), lambda: Module(device, b"fake;")]
                for use in uses:
                    try:
                        use()
                    except ForkError:
                        pass
                    else:
                        raise AssertionError("no ForkError")
                del d, s, e, v, p, flying, module, f, device
                gc.collect()
                assert (FAKE.live_device(), FAKE.calls()) == (live, calls)
                code = 0
            finally:
                sys.stderr.flush()
                if code:
                    import traceback
                    traceback.print_exc()
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        flying.release(); d.release()
        FAKE.advance_handle(s.handle)
        device.settle(5)
        assert FAKE.live_device() == 0
        """,
        preamble=HERE,
    )
