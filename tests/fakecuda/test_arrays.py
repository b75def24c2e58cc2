# SPDX-License-Identifier: Apache-2.0
"""Device memory passed between libraries: DLPack and `__cuda_array_interface__`, out and in; order, lifetime, refusals."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_cuda import FAKE, Fake

from pinzk._core.device import Device, DeviceVec, Stream, view
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import BLS12_381, BN254
from pinzk.errors import BorrowError, DeviceError, UseAfterRelease, WaitTimeout

FR = BN254.fr
LEGACY = 1


@pytest.fixture
def device(fake: Fake) -> Iterator[Device]:
    d = Device(0)
    Stream(d).close()
    gc.collect()
    before = fake.live_device(), d.budget.stats().used
    yield d
    fake.reset()
    gc.collect()
    d.settle(5)
    assert (fake.live_device(), d.budget.stats().used) == before


@pytest.fixture
def stream(fake: Fake, device: Device) -> Iterator[Stream]:
    """Its work is done when the test says so."""
    fake.manual()
    s = Stream(device)
    fake.manual(False)
    handle = s.handle
    yield s
    gc.collect()
    s.close()
    FAKE.advance_handle(handle)


def filled(device: Device, stream: Stream, rows: np.ndarray, elem: Any = FR) -> DeviceVec:
    pool = PinnedPool(MemoryBudget(1 << 24), kind="pageable")
    v = DeviceVec(elem, len(rows), device)
    v.upload(PinnedVec.from_array(elem, rows, pool=pool), stream)
    return v


def contents(array: Any) -> np.ndarray:
    """What a reader on the host of the fake device sees through the DLPack capsule."""

    class Host:
        def __dlpack__(self, **options: Any) -> Any:
            return Tensor(array.__dlpack__(stream=-1)).capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    return np.from_dlpack(Host())


_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Tensor:
    """A reader's eyes on an unversioned capsule; the device is made the host's, which the fake one is."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule
        self.record = _DLTensor.from_address(_get(capsule, b"dltensor"))
        self.device = tuple(self.record.device)
        self.record.device[0] = 1


class Foreign:
    """Another library's array in the fake device's memory."""

    def __init__(self, vec: DeviceVec, **changes: Any) -> None:
        self.owner = vec
        self.about = {
            "version": 3,
            "shape": (len(vec), 4),
            "typestr": "<i8",
            "data": (vec.ptr, False),
            "strides": None,
            **changes,
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.about


ROWS = np.arange(40, dtype=np.uint64).reshape(10, 4)


# ---- out ----


def test_dlpack_shows_the_elements_without_a_copy(device: Device, stream: Stream) -> None:
    v = filled(device, stream, ROWS)
    FAKE.advance_handle(stream.handle)
    assert v.__dlpack_device__() == (2, 0)
    seen = Tensor(v.__dlpack__())
    assert seen.device == (2, 0)
    assert (seen.record.data, seen.record.ndim, seen.record.code, seen.record.bits) == (v.ptr, 2, 1, 64)
    assert seen.record.shape[:2] == [10, 4]
    assert seen.record.strides[:2] == [4, 1]
    del seen
    array = contents(v)
    assert array.dtype == np.uint64
    assert np.array_equal(array, ROWS)
    assert array.ctypes.data == v.ptr
    del array
    b = filled(device, stream, np.arange(7, dtype=np.uint8), "bytes")
    FAKE.advance_handle(stream.handle)
    assert contents(b).tolist() == list(range(7))
    points = DeviceVec(BLS12_381.g2, 3, device)
    assert contents(points).shape == (0, 24)


def test_both_kinds_of_capsule(device: Device) -> None:
    v = DeviceVec(FR, 1, device)
    for version, name in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned")):
        assert f'"{name}"' in repr(v.__dlpack__(max_version=version))
    assert '"dltensor_versioned"' in repr(v.__dlpack__(max_version=(1, 3), dl_device=(2, 0), copy=False))
    v.release()


def test_what_dlpack_made_holds_the_vector(device: Device, stream: Stream) -> None:
    v = filled(device, stream, ROWS)
    FAKE.advance_handle(stream.handle)
    one, two = contents(v), contents(v)
    with pytest.raises(BorrowError, match="exported by DLPack \\(2 times\\)"):
        v.release()
    del one
    with pytest.raises(BorrowError):
        v.release()
    part = two[3:]
    del two
    with pytest.raises(BorrowError):
        v.release()
    del part
    v.release()
    with pytest.raises(UseAfterRelease):
        v.__dlpack__()
    with pytest.raises(UseAfterRelease):
        v.__dlpack_device__()
    # a vector that nobody else knows lives on in the array
    w = filled(device, stream, ROWS)
    FAKE.advance_handle(stream.handle)
    array, ref, live = contents(w), weakref.ref(w), FAKE.live_device()
    del w
    gc.collect()
    assert ref() is not None
    assert np.array_equal(array, ROWS)
    del array
    assert ref() is None
    device.settle(5)
    assert FAKE.live_device() < live


def test_a_capsule_that_nobody_takes_lets_go(device: Device) -> None:
    v = DeviceVec(FR, 1, device)
    capsules = [v.__dlpack__(), v.__dlpack__(max_version=(1, 0))]
    with pytest.raises(BorrowError):
        v.release()
    capsules.clear()
    v.release()


def test_readers_come_behind_the_uses(fake: Fake, device: Device, stream: Stream) -> None:
    v = filled(device, stream, ROWS)
    assert v.__cuda_array_interface__["stream"] == stream.handle
    before = fake.waited(LEGACY)
    v.__dlpack__()
    assert fake.waited(LEGACY) == before + 1
    v.__dlpack__(stream=-1)
    assert fake.waited(LEGACY) == before + 1
    other = Stream(device)
    v.__dlpack__(stream=other.handle)
    assert fake.waited(other.handle) == 1
    # used on two streams: no single one is behind both
    v.upload(PinnedVec.from_array(FR, ROWS), other)
    assert v.__cuda_array_interface__["stream"] == LEGACY
    assert fake.waited(LEGACY) == before + 3
    v.release()
    unused = DeviceVec(FR, 1, device)
    assert unused.__cuda_array_interface__["stream"] is None
    assert fake.waited(LEGACY) == before + 3


def test_the_stream_of_the_interface_is_one_that_is_there(fake: Fake, device: Device, stream: Stream) -> None:
    fake.manual()
    gone = Stream(device)
    fake.manual(False)
    v = filled(device, gone, ROWS)
    handle = gone.handle
    gone.close()
    assert v.__cuda_array_interface__["stream"] == LEGACY
    fake.advance_handle(handle)
    foreign = fake.stream(automatic=True)
    w = DeviceVec(FR, 10, device)
    w.upload(PinnedVec.from_array(FR, ROWS), foreign)
    assert w.__cuda_array_interface__["stream"] == LEGACY


def test_what_was_shown_to_others_is_freed_behind_everything(
    fake: Fake, device: Device, stream: Stream
) -> None:
    theirs = fake.stream()
    for show in (lambda v: v.__cuda_array_interface__, lambda v: v.__dlpack__()):
        v = filled(device, stream, ROWS)
        fake.advance_handle(stream.handle)
        show(v)
        memory = np.zeros(10, np.uint64)
        theirs.copy(memory.ctypes.data, v.ptr, 80)  # a use that pinzk is not told of
        live = fake.live_device()
        v.release()
        fake.advance_handle(stream.handle)
        with pytest.raises(WaitTimeout):
            device.settle(0.01)
        theirs.advance()
        device.settle(5)
        assert fake.live_device() < live
        assert np.array_equal(memory, np.arange(10))


def test_memory_whose_uses_cannot_be_followed_is_kept(fake: Fake) -> None:
    device = Device(1)  # where nobody counts
    v = DeviceVec(FR, 10, device)
    v.__dlpack__()
    live, used = fake.live_device(), device.budget.stats().used
    fake.fail("cuCtxRecordEvent")
    v.release()
    device.settle(5)
    assert (fake.live_device(), device.budget.stats().used) == (live, used)


def test_exports_that_are_refused(device: Device) -> None:
    v = DeviceVec(FR, 4, device)
    with pytest.raises(BufferError, match="without a copy"):
        v.__dlpack__(copy=True)
    for wanted in ((1, 0), (2, 1)):
        with pytest.raises(BufferError, match="CUDA device 0"):
            v.__dlpack__(dl_device=wanted)
    for wrong in (0, -2, True, 1.5, "1"):
        with pytest.raises(ValueError, match="stream must be"):
            v.__dlpack__(stream=wrong)  # type: ignore[arg-type]
    v.release()


# ---- in ----


def test_a_view_reads_the_librarys_memory(fake: Fake, device: Device, stream: Stream) -> None:
    owner = filled(device, stream, ROWS)
    fake.advance_handle(stream.handle)
    live = fake.live_device()
    for shape in ((10, 4), (2, 5, 4), (1, 10, 4)):
        v, told = view(FR, Foreign(owner, shape=shape), device, stream)
        assert (told, len(v), v.capacity, v.ptr, v.elem) == (shape, 10, 10, owner.ptr, FR)
        out = PinnedVec(FR, 10)
        v.download(out, stream)
        fake.advance_handle(stream.handle)
        assert np.array_equal(out.borrow().numpy(), ROWS)
        with pytest.raises(BorrowError, match="for reading"):
            v.upload(out, stream)
        with pytest.raises(BufferError, match="not exported"):
            v.__dlpack__()
        assert v.__cuda_array_interface__["data"] == (owner.ptr, True)
        v.release()
        with pytest.raises(UseAfterRelease):
            v.ptr  # noqa: B018
    assert fake.live_device() == live
    v, told = view(FR, owner, device, stream)  # by DLPack
    assert (told, v.ptr) == ((10, 4), owner.ptr)
    with pytest.raises(BorrowError, match="exported"):
        owner.release()
    v.release()
    owner.release()
    b, _ = view("bytes", filled(device, stream, np.zeros(3, np.uint8), "bytes"), device, stream)
    assert len(b) == 3
    b.release()
    fake.advance_handle(stream.handle)


def test_a_view_keeps_the_array_until_its_uses_are_complete(
    fake: Fake, device: Device, stream: Stream
) -> None:
    owner = filled(device, stream, ROWS)
    fake.advance_handle(stream.handle)
    array = Foreign(owner)
    alive = weakref.ref(array)
    v, _ = view(FR, array, device, stream)
    del array
    out = PinnedVec(FR, 10)
    v.download(out, stream)
    v.release()
    gc.collect()
    assert alive() is not None
    fake.advance_handle(stream.handle)
    device.settle(5)
    assert alive() is None
    assert np.array_equal(out.borrow().numpy(), ROWS)
    # dropped, never used
    array = Foreign(owner)
    alive = weakref.ref(array)
    v, _ = view(FR, array, device, stream)
    del v, array
    device.settle(5)
    assert alive() is None


def test_a_view_comes_behind_the_stream_of_the_interface(fake: Fake, device: Device, stream: Stream) -> None:
    owner = filled(device, stream, ROWS)
    fake.advance_handle(stream.handle)
    theirs, before = fake.stream(), fake.waited(stream.handle)
    cases: list[tuple[dict[str, Any], int]] = [
        ({"stream": theirs.handle}, 1),
        ({"stream": 1}, 1),
        ({"stream": 2}, 1),
        ({"stream": None}, 0),
        ({}, 0),
        ({"version": 2}, 1),  # knows of no streams: behind all work of the context
    ]
    for changes, waits in cases:
        v, _ = view(FR, Foreign(owner, **changes), device, stream)
        assert fake.waited(stream.handle) == before + waits, changes
        before += waits
        v.release()


def test_libraries_of_before_2024(device: Device, stream: Stream) -> None:
    class Old:
        def __init__(self, vec: DeviceVec) -> None:
            self.vec = vec

        def __dlpack__(self, stream: int | None = None) -> Any:
            return self.vec.__dlpack__(stream=stream)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.vec.__dlpack_device__()

    owner = DeviceVec(FR, 3, device)
    owner.commit(3)
    v, shape = view(FR, Old(owner), device, stream)
    assert (shape, v.ptr) == ((3, 4), owner.ptr)
    v.release()
    owner.release()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typestr": "<f8"}, "uint64 or int64, not f8"),
        ({"typestr": "<u4"}, "uint64 or int64, not u4"),
        ({"typestr": ">u8"}, "uint64 or int64, not >u8"),
        ({"shape": (10, 6)}, r"shape \(\.\.\., 4\)"),
        ({"shape": ()}, r"shape \(\.\.\., 4\)"),
        ({"shape": (-1, 4)}, "is no shape"),
        ({"shape": (2.0, 4)}, "is no shape"),
        ({"shape": (1 << 50, 4)}, "is no shape"),
        ({"strides": (64, 8)}, "one behind the other"),
        ({"strides": (8, 80)}, "one behind the other"),
        ({"strides": (-32, 8)}, "one behind the other"),
        ({"mask": 1}, "masked"),
        ({"data": (8, False)}, "multiple of 16"),
        ({"data": (4096, False)}, "not one of device memory"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_arrays_that_are_refused(
    device: Device, stream: Stream, changes: dict[str, Any], message: str
) -> None:
    owner = DeviceVec(FR, 10, device)
    owner.commit(10)
    with pytest.raises(ValueError, match=message):
        view(FR, Foreign(owner, **changes), device, stream)
    owner.release()


def test_protocols_that_are_broken(device: Device, stream: Stream) -> None:
    owner = DeviceVec(FR, 10, device)
    owner.commit(10)
    for name in ("version", "shape", "typestr", "data"):
        array = Foreign(owner)
        del array.about[name]
        with pytest.raises(ValueError, match=f"has no '{name}'"):
            view(FR, array, device, stream)
    for wrong in ({"data": None}, {"data": (-16, False)}, {"strides": (8,)}, {"stream": -5}, {"stream": "1"}):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            view(FR, Foreign(owner, **wrong), device, stream)

    class Broken:
        def __init__(self, answer: object) -> None:
            self.answer = answer

        def __dlpack__(self, **options: Any) -> Any:
            return self.answer

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    for answer in (None, 3, "dltensor", object()):
        with pytest.raises((ValueError, TypeError)):
            view(FR, Broken(answer), device, stream)
    taken = owner.__dlpack__()
    view(FR, Broken(taken), device, stream)[0].release()  # only looked at: it can be taken again
    view(FR, Broken(taken), device, stream)[0].release()
    del taken
    FAKE.advance_handle(stream.handle)
    device.settle(5)
    owner.release()


def test_arrays_elsewhere_are_refused(device: Device, stream: Stream) -> None:
    with pytest.raises(ValueError, match="in host memory, not on CUDA device 0"):
        view(FR, ROWS, device, stream)
    other = DeviceVec(FR, 1, Device(1))
    with pytest.raises(ValueError, match=r"DLPack device \(2, 1\), not on CUDA device 0"):
        view(FR, other, device, stream)
    for wrong in (None, 3, [1, 2]):
        with pytest.raises(TypeError, match="__dlpack__ or __cuda_array_interface__"):
            view(FR, wrong, device, stream)
    with pytest.raises(ValueError, match="elem must be"):
        view("scalars", other, device, stream)
    with pytest.raises(ValueError, match="device 1"):
        view(FR, other, device, Stream(Device(1)))
    other.release()


def test_strides_of_single_rows_mean_nothing(device: Device, stream: Stream) -> None:
    owner = DeviceVec(FR, 10, device)
    owner.commit(10)
    for shape, strides in (((1, 4), (999, 8)), ((0, 4), (1, 1)), ((10, 4), (32, 8))):
        v, told = view(FR, Foreign(owner, shape=shape, strides=strides), device, stream)
        assert told == shape
        v.release()
    owner.release()


def test_a_driver_that_fails_loses_nothing(fake: Fake, device: Device, stream: Stream) -> None:
    owner = DeviceVec(FR, 10, device)
    owner.commit(10)
    for call in ("cuPointerGetAttribute", "cuStreamWaitEvent", "cuEventRecord"):
        array = Foreign(owner, stream=stream.handle)
        alive = weakref.ref(array)
        fake.fail(call)
        with pytest.raises(DeviceError, match="CUDA_ERROR_UNKNOWN"):
            view(FR, array, device, stream)
        fake.fail(call, 0)
        del array
        gc.collect()
        assert alive() is None
    owner.release()


def test_the_callers_context_stays(fake: Fake, device: Device, stream: Stream) -> None:
    fake.make_current(3)
    owner = filled(device, stream, ROWS)
    fake.advance_handle(stream.handle)
    v, _ = view(FR, Foreign(owner, version=2), device, stream)
    v.release()
    owner.__dlpack__()
    assert owner.__cuda_array_interface__["stream"] == stream.handle
    device.memory()
    assert fake.current() == fake.context(3)
    owner.release()
    assert fake.current() == fake.context(3)
