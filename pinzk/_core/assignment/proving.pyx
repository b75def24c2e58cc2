# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""ProvingAssignment: the values that synthesis makes and the prover takes, in pinned memory, with their densities."""

import operator
import os

cimport cython
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool

from pinzk._core.assignment.capacity import Capacity, capacity_hints
from pinzk._core.assignment.densities cimport DensityTracker, Variable
from pinzk._core.memory.pool cimport PinnedPool
from pinzk._core.memory.vec cimport PinnedVec
from pinzk.errors import FormatError, UseAfterMove, UseAfterRelease, WitnessError


cdef extern from "cpu_loops/python_glue.hpp" namespace "pinzk::cpu" nogil:
    cbool poll_signals()
    void translate_exception()


cdef extern from "assignment/loops.hpp" namespace "pinzk::assignment" nogil:
    cdef cppclass Job:
        int threads
        cbool (*poll)()

    size_t copy_reduced(const uint64_t*, uint64_t*, size_t, const uint64_t*, const Job&) except +translate_exception


cdef enum:
    LIVE = 0
    MOVED = 1
    RELEASED = 2


# ---- a, b, c ----

@cython.final
cdef class Evaluations:
    """a, b and c with an end of their own: they go home when the last read of them is done, long before the rest."""
    cdef readonly PinnedVec a, b, c
    cdef int readers
    cdef bint wanted
    cdef readonly bint released

    def release(self):
        if self.released:
            return
        if self.readers:
            self.wanted = True
            return
        for v in self.vecs():
            v._check_unborrowed()
        self.released = True
        for v in self.vecs():
            v.release()

    cdef list vecs(self):
        return [self.a, self.b] if self.c is None else [self.a, self.b, self.c]

    def __enter__(self):
        if self.released:
            raise UseAfterRelease("a, b and c were given back before")
        self.readers += 1
        return self

    def __exit__(self, *exc):
        self.readers -= 1
        if self.wanted and not self.readers:
            self.wanted = False
            self.release()


# ---- the assignment ----

@cython.final
cdef class ProvingAssignment:
    """What synthesis leaves: every constraint's values in A, B and C, every variable's value, and which variables occur.

    ::

        synthesis --enforce / extend_rows--> a, b, c                 pinned; home when the prover has read them
                  --alloc / extend_aux-----> input_, aux_assignment  pinned; home when the proof is done
                  '-------------------------> a_aux, b_input, b_aux

    One synthesis fills it from one thread; parts made on several threads are put together by `extend`. `seal` ends the
    synthesis; `Prover.prove_start` takes the assignment, after which only `release_abc` and `abc_released` work on it.
    A call that fails leaves everything as it was. Not copyable, not picklable.

    Parameters
    ----------
    curve : Curve
    constraints, aux, inputs : int
        Room to take at once; the constant one counts as an input. Waits for the budget if need be.
    pool : PinnedPool, optional
        Default: the process's.
    with_c : bool, default True
        Whether c is kept. A bellman key needs it, a snarkjs key does not (c = a b).

    Attributes
    ----------
    curve : Curve
    a, b, c : PinnedVec of curve.fr
        One value a constraint, Montgomery form, natural order, not padded. `c` is None without it.
    input_assignment, aux_assignment : PinnedVec of curve.fr
        Montgomery form; input 0 is the constant one.
    a_aux, b_input, b_aux : DensityTracker
        Of A only the auxiliary variables are told apart: every input occurs in it. Of C nothing is.
    """
    ONE = Variable(True, 0)

    cdef readonly object curve
    cdef object modulus
    cdef uint64_t modulus_words[4]
    cdef int state
    cdef bint is_sealed
    cdef size_t own_rows          # constraints before `seal` added its own
    cdef object circuit_id
    cdef Evaluations abc
    cdef PinnedVec inputs
    cdef PinnedVec aux
    cdef DensityTracker _a_aux, _b_input, _b_aux
    cdef object __weakref__

    def __init__(self, curve, *, constraints=0, aux=0, inputs=1, PinnedPool pool=None, bint with_c=True):
        if self.abc is not None:
            raise TypeError("a ProvingAssignment is made once")
        fr = curve.fr
        rows = _size(constraints, "constraints") + max(1, _size(inputs, "inputs"))  # and those that `seal` adds
        sizes = [rows, rows, *([rows] if with_c else []), max(1, inputs), _size(aux, "aux")]
        pool = PinnedPool.default() if pool is None else pool
        vecs = [b.into_vec(fr) for b in pool.checkout_many([n * fr.nbytes for n in sizes])]
        self.curve, self.modulus = curve, fr.modulus
        for i in range(4):
            self.modulus_words[i] = (fr.modulus >> 64 * i) & 0xFFFFFFFFFFFFFFFF
        self.aux, self.inputs = vecs.pop(), vecs.pop()
        abc = Evaluations()
        abc.a, abc.b = vecs[0], vecs[1]
        abc.c = vecs[2] if with_c else None
        self._a_aux, self._b_input, self._b_aux = DensityTracker(), DensityTracker(1), DensityTracker()
        self.inputs.push(1)
        self.abc = abc

    @classmethod
    def with_capacity(cls, curve, constraints, aux, inputs, **options):
        """An assignment with that much room; `options` as of the class."""
        return cls(curve, constraints=constraints, aux=aux, inputs=inputs, **options)

    @classmethod
    def for_circuit(cls, circuit_id, curve, *, constraints=0, aux=0, inputs=1, **options):
        """An assignment with the room that earlier ones of the same name took, which `seal` remembers in `capacity_hints`.

        Parameters
        ----------
        circuit_id : str
            The caller's name for the circuit.
        curve : Curve
        constraints, aux, inputs : int
            Room to take at least.
        """
        known = capacity_hints.get(circuit_id) or Capacity(0, 0, 1)
        sizes = map(max, known, (constraints, aux, inputs))
        out = cls(curve, **dict(zip(Capacity._fields, sizes)), **options)
        (<ProvingAssignment>out).circuit_id = circuit_id
        return out

    # ---- parts ----

    @property
    def a(self):
        """Values of A's rows."""
        return self._live_abc().a

    @property
    def b(self):
        """Values of B's rows."""
        return self._live_abc().b

    @property
    def c(self):
        """Values of C's rows, or None."""
        return self._live_abc().c

    @property
    def input_assignment(self):
        """Values of the inputs, the constant one first."""
        self.check_live()
        return self.inputs

    @property
    def aux_assignment(self):
        """Values of the auxiliary variables."""
        self.check_live()
        return self.aux

    # the setters are for `a_aux |= mask`, which assigns what it changed
    @property
    def a_aux(self):
        """Which auxiliary variables occur in A."""
        self.check_live()
        return self._a_aux

    @a_aux.setter
    def a_aux(self, value):
        _same(value, self.a_aux)

    @property
    def b_input(self):
        """Which inputs occur in B."""
        self.check_live()
        return self._b_input

    @b_input.setter
    def b_input(self, value):
        _same(value, self.b_input)

    @property
    def b_aux(self):
        """Which auxiliary variables occur in B."""
        self.check_live()
        return self._b_aux

    @b_aux.setter
    def b_aux(self, value):
        _same(value, self.b_aux)

    @property
    def sealed(self):
        """Whether `seal` was called."""
        self.check_live()
        return self.is_sealed

    @property
    def sizes(self):
        """`Capacity`: constraints (without those of `seal`), auxiliary variables, inputs (with the constant one)."""
        self.check_live()
        return Capacity(self.own_rows if self.is_sealed else len(self.a), len(self.aux), len(self.inputs))

    # ---- synthesis, one by one ----

    def alloc(self, value):
        """A new auxiliary variable.

        Parameters
        ----------
        value : int
            Canonical.

        Raises
        ------
        WitnessError
            Not in [0, r).
        """
        self.check_open()
        cdef Py_ssize_t i = self.aux.n
        self._append(self.aux, self._montgomery(value, "auxiliary variable", i))
        self._a_aux.add()
        self._b_aux.add()
        return Variable(False, i)

    def alloc_input(self, value):
        """A new public input; parameters and errors are those of `alloc`."""
        self.check_open()
        cdef Py_ssize_t i = self.inputs.n
        self._append(self.inputs, self._montgomery(value, "input", i))
        self._b_input.add()
        return Variable(True, i)

    def enforce(self, la, lb, lc):
        """A new constraint, la * lb = lc; whether it holds is not looked at.

        Parameters
        ----------
        la, lb, lc : iterable of (Variable, int)
            Linear combinations; coefficients are taken mod r. One that is zero is skipped: its variable does not occur.

        Raises
        ------
        IndexError
            A variable is not of this assignment.
        """
        self.check_open()
        cdef list in_a = [], in_b = [], rows = [self._dot(la, in_a), self._dot(lb, in_b)]
        cdef list vecs = self.abc.vecs()
        if self.abc.c is not None:
            rows.append(self._dot(lc, []))
        self._room(1, 0, 0)
        for v, row in zip(vecs, rows):
            self._append(v, row)
        for v in in_a:
            if not (<Variable>v).is_input:
                self._a_aux.set_bit((<Variable>v).index)
        for v in in_b:
            (self._b_input if (<Variable>v).is_input else self._b_aux).set_bit((<Variable>v).index)

    def extend(self, ProvingAssignment other not None):
        """Append another assignment, whose memory goes home: its variables and constraints come behind the present ones.

        The constant ones become one. Its auxiliary variable i is then number ``len(aux_assignment) + i`` of before, its
        input i > 0 number ``len(input_assignment) + i - 1``.

        Raises
        ------
        ValueError
            Of another curve, with or without c unlike this one, one of the two is sealed, or both are the same.
        BorrowError
            A vector of either is borrowed.
        """
        self.check_open()
        other.check_open()
        if other is self:
            raise ValueError("an assignment cannot be appended to itself")
        if other.curve is not self.curve:
            raise ValueError(f"an assignment over {other.curve.name} does not fit one over {self.curve.name}")
        if (other.abc.c is None) != (self.abc.c is None):
            raise ValueError("c is kept by one assignment and not by the other")
        pairs = [*zip(self.abc.vecs(), other.abc.vecs()), (self.aux, other.aux)]
        other._check_unborrowed()
        self._room(len(other.abc.a), len(other.inputs) - 1, len(other.aux))
        self._bulk([(to, source.borrow().numpy(), "") for to, source in pairs], None)
        self._bulk([(self.inputs, other.inputs.borrow().numpy()[1:], "")], None)
        self._a_aux.extend(other._a_aux, False)
        self._b_input.extend(other._b_input, True)
        self._b_aux.extend(other._b_aux, False)
        other.release()
        other.state = MOVED

    # ---- synthesis, many at once; Montgomery rows, off the GIL, on threads ----

    def extend_rows(self, a, b, c=None, *, threads=None):
        """New constraints by their values; which variables occur in them is said by ``a_aux |= mask`` and its likes.

        Parameters
        ----------
        a, b, c : ndarray of uint64, shape (n, 4)
            Montgomery form; `c` exactly where the assignment keeps it.
        threads : int, optional

        Raises
        ------
        FormatError
            A value is not below r; nothing was appended.
        """
        self.check_open()
        if (c is None) != (self.abc.c is None):
            raise ValueError("c is needed: this assignment keeps it" if c is None else "this assignment keeps no c")
        parts = [(self.abc.a, a, "a"), (self.abc.b, b, "b"), *([] if c is None else [(self.abc.c, c, "c")])]
        if len({len(rows) for _, rows, _ in parts}) != 1:
            raise ValueError(f"lengths differ: {', '.join(str(len(rows)) for _, rows, _ in parts)}")
        self._bulk(parts, threads)

    def extend_inputs(self, x, *, threads=None):
        """New inputs by their values; parameters and errors as of `extend_rows`."""
        self.check_open()
        self._bulk([(self.inputs, x, "inputs")], threads)
        self._b_input.add(len(x))

    def extend_aux(self, x, *, threads=None):
        """New auxiliary variables by their values; parameters and errors as of `extend_rows`."""
        self.check_open()
        self._bulk([(self.aux, x, "aux")], threads)
        self._a_aux.add(len(x))
        self._b_aux.add(len(x))

    def _spare(self, rows, inputs, aux):
        """Room behind the last elements, laid open to be written in place: arrays for a, b, c, inputs, aux."""
        self.check_open()
        sizes = [(self.abc.a, rows), (self.abc.b, rows), (self.abc.c, rows), (self.inputs, inputs), (self.aux, aux)]
        return [None if v is None else v.spare_mut(n).numpy() for v, n in sizes]

    def _commit(self, rows, inputs, aux):
        """What was written to `_spare` becomes part of the assignment."""
        for v in self.abc.vecs():
            v.commit(rows)
        self.inputs.commit(inputs)
        self.aux.commit(aux)
        self._b_input.add(inputs)
        self._a_aux.add(aux)
        self._b_aux.add(aux)

    # ---- the end of synthesis ----

    def seal(self):
        """End the synthesis: add one constraint input_i * 0 = 0 for every input, as every key expects. Idempotent.

        They keep the inputs' polynomials independent. Sizes are remembered where `for_circuit` gave the name.

        Raises
        ------
        ValueError
            a, b, c or the variables and their densities differ in length.
        """
        self.check_live()
        if self.is_sealed:
            return
        cdef size_t rows = len(self.a), n = self.inputs.n
        lengths = {"a": [len(v) for v in self.abc.vecs()], "aux": [len(self.aux), len(self._a_aux), len(self._b_aux)],
                   "inputs": [n, len(self._b_input)]}
        for name, found in lengths.items():
            if len(set(found)) != 1:
                raise ValueError(f"vectors beside {name} differ in length: {', '.join(map(str, found))}")
        self._room(n, 0, 0)
        first, *others = self.abc.vecs()
        first.extend(self.inputs.borrow().numpy())
        for v in others:
            v.resize(rows + n)
        self._sealed(rows)

    def _sealed(self, rows):
        """`seal` for who wrote the inputs' constraints already; `rows` is the number of the others."""
        self.own_rows = rows
        self.is_sealed = True
        if self.circuit_id is not None:
            capacity_hints.learn(self.circuit_id, self)

    def _take(self):
        """Everything, moved into a new owner; of this one only `release_abc` and `abc_released` work on."""
        self._check_unborrowed()
        cdef ProvingAssignment out = ProvingAssignment.__new__(ProvingAssignment)
        out.curve, out.modulus = self.curve, self.modulus
        out.modulus_words = self.modulus_words
        out.is_sealed, out.own_rows = self.is_sealed, self.own_rows
        out.abc, out.inputs, out.aux = self.abc, self.inputs, self.aux
        out._a_aux, out._b_input, out._b_aux = self._a_aux, self._b_input, self._b_aux
        self.inputs = self.aux = None
        self.state = MOVED
        return out

    def _check_unborrowed(self):
        """BorrowError where a vector could not be moved now."""
        for v in (*self._live_abc().vecs(), self.inputs, self.aux):
            v._check_unborrowed()

    def _reading(self):
        """A context in which a, b, c stay: `release_abc` during it takes effect at its end."""
        return self._live_abc()

    @property
    def abc_released(self):
        """Whether a, b and c went home."""
        return self.abc.released

    def release_abc(self):
        """Give a, b and c back to the pool, at once or, while the prover reads them, right after. Idempotent, any thread.

        Raises
        ------
        BorrowError
            One of them is borrowed; none was given back.
        """
        self.abc.release()

    def release(self):
        """Give all memory back, once.

        Raises
        ------
        UseAfterRelease, UseAfterMove
        BorrowError
            A vector is borrowed; none was given back.
        """
        self.check_live()
        for v in (self.inputs, self.aux):
            v._check_unborrowed()
        self.abc.release()
        self.inputs.release()
        self.aux.release()
        self.state = RELEASED

    def __enter__(self):
        self.check_live()
        return self

    def __exit__(self, *exc):
        if self.state == LIVE:
            self.release()

    def __reduce__(self):
        raise TypeError("a ProvingAssignment cannot be copied or pickled: it has one owner")

    def __repr__(self):
        if self.state != LIVE:
            return f"<ProvingAssignment {'moved' if self.state == MOVED else 'released'}>"
        abc = "a, b, c given back" if self.abc.released else f"{len(self.abc.a)} constraints"
        return f"<ProvingAssignment {self.curve.name}: {abc}, {len(self.inputs)} inputs, {len(self.aux)} aux>"

    # ---- inside ----

    cdef int check_live(self) except -1:
        if self.state == MOVED:
            raise UseAfterMove("this assignment was moved into another owner")
        if self.state == RELEASED:
            raise UseAfterRelease("this assignment was released before")
        if self.abc is None:
            raise TypeError("this assignment was never made")
        return 0

    cdef int check_open(self) except -1:
        self._live_abc()
        if self.is_sealed:
            raise ValueError("the assignment is sealed: its synthesis has ended")
        return 0

    cdef Evaluations _live_abc(self):
        self.check_live()
        if self.abc.released:
            raise UseAfterRelease("a, b and c were given back before")
        return self.abc

    def _room(self, size_t rows, size_t inputs, size_t aux):
        # grows all or says why not; vectors that grew before another failed have room to spare, no more
        for v in self.abc.vecs():
            v.ensure((<PinnedVec>v).n + rows)
        self.inputs.ensure(self.inputs.n + inputs)
        self.aux.ensure(self.aux.n + aux)

    def _montgomery(self, value, kind, i):
        value = operator.index(value)
        if not 0 <= value < self.modulus:
            raise WitnessError(f"the value of {kind} {i} is not in [0, r)", index=i)
        return (value << 256) % self.modulus

    def _append(self, PinnedVec v, row):
        cdef const unsigned char[::1] raw = row.to_bytes(32, "little")
        v.open(v.n + 1)
        try:
            memcpy(v.write(v.n + 1), &raw[0], 32)
            v.n += 1
        finally:
            v.close()

    def _dot(self, terms, list used):
        # a plain coefficient times a Montgomery value is a Montgomery value
        cdef PinnedVec v
        total = 0
        for variable, coefficient in terms:
            if not isinstance(variable, Variable):
                raise TypeError(f"a linear combination is of (Variable, int), not ({type(variable).__name__}, ...)")
            coefficient = operator.index(coefficient) % self.modulus
            v = self.inputs if (<Variable>variable).is_input else self.aux
            if <size_t>(<Variable>variable).index >= v.n:
                raise IndexError(f"{variable!r} is not of this assignment")
            if coefficient:
                used.append(variable)
                total += coefficient * int.from_bytes(_row(v, (<Variable>variable).index), "little")
        return total % self.modulus

    def _bulk(self, list parts, threads):
        """Append rows to vectors, to all or to none: [(vector, rows, name)]."""
        cdef Job job
        cdef PinnedVec v
        cdef const uint64_t[:, ::1] rows
        cdef const uint64_t* source
        cdef uint64_t* to
        cdef size_t n, bad
        cdef const uint64_t* modulus = self.modulus_words
        job.threads, job.poll = _threads(threads), poll_signals
        views = []
        for _target, array, name in parts:
            rows = array
            if rows.shape[1] != 4:
                raise ValueError(f"{name} must have shape (n, 4), not ({rows.shape[0]}, {rows.shape[1]})")
            views.append(rows)
        opened = []
        try:
            for (target, _, _), rows in zip(parts, views):
                v = target
                v.open(v.n + <size_t>rows.shape[0])
                opened.append(v)
            for (target, _, name), rows in zip(parts, views):
                v, n = target, rows.shape[0]
                if n == 0:
                    continue
                source, to = &rows[0, 0], <uint64_t*>v.write(v.n + n)
                with nogil:
                    bad = copy_reduced(source, to, n, modulus, job)
                if bad < n:
                    raise FormatError(f"row {bad} of {name} is not below r", index=bad)
            for (target, _, _), rows in zip(parts, views):
                (<PinnedVec>target).n += <size_t>rows.shape[0]
        finally:
            for v in opened:
                v.close()


cdef bytes _row(PinnedVec v, size_t i):
    return (<const char*>v.backing.block.ptr)[32 * i:32 * (i + 1)]


def _same(new, old):
    if new is not old:
        raise AttributeError("a density changes by inc and |=, it is not replaced")


def _size(value, name):
    n = operator.index(value)
    if n < 0:
        raise ValueError(f"{name} must not be negative")
    return n


def _threads(threads):
    # a copy is limited by memory: a few threads reach its speed
    if threads is None:
        text = os.environ.get("PINZK_NUM_THREADS", "")
        threads = int(text) if text.isdigit() and int(text) else min(8, len(os.sched_getaffinity(0)))
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive int, not {threads!r}")
    return min(threads, 1024)
