# SPDX-License-Identifier: Apache-2.0
"""Python's hand on the fake driver: clocks, faults, counters."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

_lib = ctypes.CDLL("libcuda.so.1")


def _function(name: str, result: object, *arguments: object) -> Callable[..., int]:
    f = getattr(_lib, name)
    f.restype, f.argtypes = result, arguments
    return f


_P, _L, _I, _S, _Z = ctypes.c_void_p, ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
_fail = _function("fake_fail", None, _S, _L, _I, _I)
_block = _function("fake_block", None, _S, _I)
_blocked = _function("fake_blocked", _L, _S)
_calls = _function("fake_calls", _L, _S)
_called = _function("fake_called", _S, _I)
_live_bytes = _function("fake_live_bytes", _Z)
_limit = _function("fake_limit", None, _Z)
_find = _function("fake_find", _I, _S, _Z)
_context = _function("fake_context", _P, _I)
_stream = _function("fake_stream", _P, _P, _I)
_capture = _function("fake_capture", None, _P, _I)
_advance = _function("fake_advance", None, _P, _L)
_live_events = _function("fake_live_events", _L)
_current = _function("fake_current", _P)
_make_current = _function("fake_make_current", None, _P)
_retained = _function("fake_retained", _L, _I)
_forget_ranges = _function("fake_forget_ranges", None)
_manual = _function("fake_manual", None, _I)
_live_device = _function("fake_live_device", _Z)
_live_streams = _function("fake_live_streams", _L)
_waited = _function("fake_waited", _L, _P)
_launched = _function("fake_launched", _S, _P, _P)
_argument = _function("fake_argument", _P, _I)
_copy = _function("fake_copy", _I, _P, _P, _Z, _P)
_device = _function("fake_device", None, _Z, _I)
_fault = _function("fake_fault", _S)
_late = _function("fake_late", None, _I)
_order = _function("simt_order", None, ctypes.c_ulonglong)


class Stream:
    """A stream whose work is done when `advance` says so (or by itself: automatic)."""

    def __init__(self, context: int = 0, automatic: bool = False) -> None:
        self.handle = _stream(_context(context), automatic)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def advance(self, steps: int = -1) -> None:
        _advance(self.handle, steps)

    def capture(self, on: bool) -> None:
        _capture(self.handle, on)

    def copy(self, to: int, source: int, nbytes: int) -> None:
        assert _copy(to, source, nbytes, self.handle) == 0


class Fake:
    """The driver as a whole."""

    def __init__(self) -> None:
        self.streams: list[Stream] = []

    def reset(self) -> None:
        """Faults and blocks off, no limit, all streams done, no current context."""
        for name in self.called():
            _fail(name.encode(), 0, 0, 0)
            _block(name.encode(), 0)
        _limit(2**63)
        _manual(0)
        for s in self.streams:
            s.capture(False)
            s.advance()
        self.streams = []
        _make_current(None)

    def stream(self, context: int = 0, automatic: bool = False) -> Stream:
        self.streams.append(Stream(context, automatic))
        return self.streams[-1]

    def fail(self, name: str, nth: int = 1, code: int = 999, all_later: bool = False) -> None:
        """Let the nth call from now fail (0: none)."""
        _fail(name.encode(), nth, code, all_later)

    def block(self, name: str, on: bool = True) -> None:
        """Let calls wait until switched off."""
        _block(name.encode(), on)

    def wait_blocked(self, name: str, n: int = 1) -> None:
        deadline = time.monotonic() + 10
        while _blocked(name.encode()) < n:
            assert time.monotonic() < deadline, f"nobody is blocked in {name}"
            time.sleep(0.001)

    def calls(self, name: str | None = None) -> int:
        return _calls(name.encode() if name else None)

    def called(self) -> list[str]:
        names: list[str] = []
        while (name := _called(len(names))) is not None:
            names.append(name.decode())  # type: ignore[attr-defined]
        return names

    def live_bytes(self) -> int:
        return _live_bytes()

    def live_events(self) -> int:
        return _live_events()

    def limit(self, nbytes: int) -> None:
        """Refuse to page-lock more than that in all."""
        _limit(nbytes)

    def find(self, needle: bytes) -> bool:
        """Whether any page-locked memory holds the bytes."""
        return bool(_find(needle, len(needle)))

    def current(self) -> int | None:
        return _current()

    def make_current(self, context: int | None) -> None:
        _make_current(None if context is None else _context(context))

    def context(self, i: int) -> int:
        return _context(i)

    def retained(self, device: int) -> int:
        return _retained(device)

    def manual(self, on: bool = True) -> None:
        """Let streams that pinzk makes from now on wait to be advanced."""
        _manual(on)

    def advance_handle(self, handle: int, steps: int = -1) -> None:
        """As `Stream.advance`, for a stream that pinzk made."""
        _advance(handle, steps)

    def live_device(self) -> int:
        """Bytes of device memory that are allocated."""
        return _live_device()

    def live_streams(self) -> int:
        return _live_streams()

    def waited(self, stream: int) -> int:
        """How often the stream was told to wait for an event."""
        return _waited(stream)

    def launched(self, widths: tuple[int, ...]) -> tuple[str, list[int], int | None, list[bytes]]:
        """The latest launch: kernel, sizes (grid, block, shared), stream, arguments of these widths."""
        sizes, stream = (ctypes.c_uint * 7)(), ctypes.c_void_p()
        name = _launched(sizes, ctypes.byref(stream))
        values = [ctypes.string_at(_argument(i), n) for i, n in enumerate(widths)]
        return name.decode(), list(sizes), stream.value, values  # type: ignore[attr-defined]

    def device(self, nbytes: int, multiprocessors: int) -> None:
        """What the devices have of both."""
        _device(nbytes, multiprocessors)

    def fault(self) -> str | None:
        """What a simulated kernel did wrong since this was last asked."""
        text = _fault()
        return None if text is None else text.decode()  # type: ignore[attr-defined]

    def late(self, how: int) -> None:
        """When streams of pinzk's run: 0 at once, 1 when somebody waits, 2 now and then as well."""
        _late(how)

    def order(self, seed: int) -> None:
        """Of threads and blocks in simulated kernels: 0 as numbered, 1 backwards, else shuffled."""
        _order(seed)

    def forget_ranges(self) -> None:
        """Strike quarantined memory off the books."""
        _forget_ranges()


FAKE = Fake()
