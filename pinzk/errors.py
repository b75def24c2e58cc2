# SPDX-License-Identifier: Apache-2.0
"""Every error pinzk raises on purpose, and the exit code the command line gives it."""

from __future__ import annotations


class PinzkError(Exception):
    """Base of all errors of pinzk.

    Attributes
    ----------
    exit_code : int
        What ``pinzk`` exits with when this error ends a command.
    """

    exit_code: int = 3


class FormatError(PinzkError, ValueError):
    """A file or value is malformed.

    Parameters
    ----------
    reason : str
        What is wrong, with the numbers.
    path : str, optional
        The file, where there is one.
    section : int or str, optional
        Section of the file (or field of the JSON document).
    index : int, optional
        Index of the element inside the section.
    """

    exit_code = 6

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        section: int | str | None = None,
        index: int | None = None,
    ) -> None:
        self.reason = reason
        self.path = path
        self.section = section
        self.index = index
        super().__init__(reason)

    def __str__(self) -> str:
        where = [] if self.path is None else [self.path]
        if self.section is not None:
            where.append(f"section {self.section}" if isinstance(self.section, int) else self.section)
        return ": ".join([*where, self.reason])


class WitnessError(PinzkError, ValueError):
    """The witness does not fit the circuit. Never shows a value of the witness.

    Attributes
    ----------
    index : int or None
        Index of the offending witness value or constraint, where one can be named.
    """

    exit_code = 7

    def __init__(self, reason: str, *, index: int | None = None) -> None:
        self.index = index
        super().__init__(reason)


class KeyMismatchError(PinzkError, ValueError):
    """A verification key or a witness belongs to another proving key."""

    exit_code = 5


class InsecureKeyError(PinzkError, ValueError):
    """The key has delta_2 = gamma_2: a set-up without a second phase, anyone can forge proofs for it."""

    exit_code = 5


class SelfCheckError(PinzkError):
    """The proof made does not verify, and the backend is to blame. No proof is returned."""

    exit_code = 4


class DeviceError(PinzkError, RuntimeError):
    """A device failed, or cannot be used.

    Attributes
    ----------
    code : int or None
        Status code of the driver.
    name : str or None
        Name of that code.
    call : str or None
        The driver call that returned it.
    """

    exit_code = 3

    def __init__(
        self, reason: str, *, code: int | None = None, name: str | None = None, call: str | None = None
    ) -> None:
        self.code = code
        self.name = name
        self.call = call
        super().__init__(reason)


class BackendUnavailable(DeviceError):
    """The device that was asked for is not there."""


class CompileError(DeviceError):
    """NVRTC refused a kernel; `log` holds what it said."""

    def __init__(self, reason: str, *, log: str = "") -> None:
        self.log = log
        super().__init__(reason)


class ForkError(DeviceError):
    """CUDA was used before a fork and cannot be used in the child; start children with "spawn"."""


class ContextLost(DeviceError):
    """The device context is broken by an earlier error; restart the process."""


class MemoryPlanError(PinzkError, MemoryError):
    """The work does not fit the memory it may use; the message has the numbers."""

    exit_code = 8


class BudgetExceeded(MemoryPlanError):
    """A memory budget cannot grant a request."""


class PinningError(MemoryPlanError):
    """Page-locked memory was asked for by name and the system refused it."""


class WaitTimeout(PinzkError, TimeoutError):
    """A wait reached its timeout."""

    exit_code = 9


class Cancelled(PinzkError, TimeoutError):
    """A wait or a proof was cancelled."""

    exit_code = 9


class OwnershipError(PinzkError, ValueError):
    """An owner was used against its contract: a bug of the caller."""


class UseAfterMove(OwnershipError):
    """The owner was moved into another one and is empty."""


class UseAfterRelease(OwnershipError):
    """The owner was released before."""


class BorrowError(PinzkError, BufferError):
    """The memory is borrowed, so it can be neither moved, grown nor released."""


class InFlightError(BorrowError):
    """An asynchronous copy still uses the memory."""
