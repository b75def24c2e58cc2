# SPDX-License-Identifier: Apache-2.0
"""Makes malformed and odd but valid variants of a good .zkey and .wtns pair."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import oracle

from pinzk.curves import Curve
from pinzk.errors import FormatError, KeyMismatchError, PinzkError, WitnessError


@dataclass
class File:
    """A container taken apart: change what you like, then `pack` it."""

    magic: bytes
    version: int
    sections: list[tuple[int, bytearray]]

    @staticmethod
    def unpack(data: bytes) -> File:
        """Take a good file apart."""
        magic, version, count = struct.unpack_from("<4sII", data)
        at, sections = 12, []
        for _ in range(count):
            number, size = struct.unpack_from("<IQ", data, at)
            sections.append((number, bytearray(data[at + 12 : at + 12 + size])))
            at += 12 + size
        return File(magic, version, sections)

    def __getitem__(self, number: int) -> bytearray:
        return next(payload for n, payload in self.sections if n == number)

    def pack(self, *, count: int | None = None, lengths: dict[int, int] | None = None) -> bytes:
        """The file as bytes; `count` and `lengths` are lies to tell in the section table."""
        out = struct.pack("<4sII", self.magic, self.version, len(self.sections) if count is None else count)
        for number, payload in self.sections:
            size = (lengths or {}).get(number, len(payload))
            out += struct.pack("<IQ", number, size) + payload
        return out


def put(payload: bytearray, at: int, value: int, size: int = 4) -> None:
    """Overwrite a little-endian number."""
    payload[at : at + size] = value.to_bytes(size, "little")


@dataclass
class Variant:
    """A pair of files, and how loading it must end: `error` with `says` in its message, or well (None)."""

    name: str
    zkey: bytes
    wtns: bytes
    error: type[PinzkError] | None
    says: str = ""
    section: int | None = None
    index: int | None = None
    check: str = "curve"


@dataclass
class Maker:
    """Variants of one good pair; `foreign` is a witness over the other curve."""

    curve: Curve
    zkey: bytes
    wtns: bytes
    foreign: bytes
    variants: list[Variant] = field(default_factory=list)

    def __post_init__(self) -> None:
        header = File.unpack(self.zkey)[2]
        self.counts_at = 8 + self.curve.fp.nbytes + 32
        self.n_vars, self.n_public, self.domain = struct.unpack_from("<III", header, self.counts_at)

    def all(self) -> list[Variant]:
        """Every variant."""
        self.variants.clear()
        for part in (self._table, self._header, self._coefficients, self._points, self._witness, self._valid):
            part()
        return self.variants

    def key(self, name: str, says: str, change: Callable[[File], object], **where: int | str) -> None:
        """Add a variant of the key; `change` edits the file, or answers the bytes itself."""
        file = File.unpack(self.zkey)
        data = change(file)
        data = data if isinstance(data, bytes) else file.pack()
        self.variants.append(Variant(name, data, self.wtns, FormatError, says, **where))  # type: ignore[arg-type]

    def _table(self) -> None:
        self.key("key_empty", "empty, too short", lambda f: b"")
        self.key("key_11_bytes", "11 bytes long", lambda f: self.zkey[:11])
        self.key("key_magic", "its magic is b'wtns', expected b'zkey'", lambda f: b"wtns" + self.zkey[4:])
        self.key("key_version", "unsupported zkey version 9", lambda f: setattr(f, "version", 9))
        self.key("key_cut", "bytes, only", lambda f: self.zkey[: len(self.zkey) * 6 // 10])
        self.key("key_cut_in_table", "ends before section 2 of", lambda f: self.zkey[:30])
        self.key("section_2e60", f"needs {1 << 60} bytes", lambda f: f.pack(lengths={5: 1 << 60}), section=5)
        self.key("section_2e64", "bytes, only", lambda f: f.pack(lengths={5: (1 << 64) - 4}), section=5)
        self.key("sections_4e9", "before section 11 of 4000000000", lambda f: f.pack(count=4_000_000_000))
        self.key("sections_many", "at most 1000", lambda f: f.sections.extend([(77, bytearray())] * 5000))
        for number in range(1, 10):

            def missing(f: File, n: int = number) -> None:
                f.sections = [(99 if found == n else found, payload) for found, payload in f.sections]

            def twice(f: File, n: int = number) -> None:
                f.sections.append((n, f[n]))

            self.key(f"missing_{number}", "the section is missing", missing, section=number)
            self.key(f"twice_{number}", "appears twice", twice, section=number)
            for change in ("longer", "shorter"):

                def resize(f: File, n: int = number, longer: bool = change == "longer") -> None:
                    if longer:
                        f[n].extend(bytes(4))
                    else:
                        del f[n][-1:]

                self.key(f"{change}_{number}", "", resize, section=number)
        point = self.curve.g1.nbytes
        says = f"{self.n_vars - 1} points, expected nVars = {self.n_vars}"
        self.key("points_few", says, lambda f: f[5].__delitem__(slice(-point, None)), section=5)
        says = f"{self.domain + 1} points, expected the domain size = {self.domain}"
        self.key("points_many", says, lambda f: f[9].extend(bytes(point)), section=9)

    def _header(self) -> None:
        n8q, r, q = self.curve.fp.nbytes, self.curve.fr.modulus, self.curve.fp.modulus
        counts = self.counts_at

        def header(name: str, says: str, at: int, value: int, size: int = 4) -> None:
            self.key(name, says, lambda f: put(f[2], at, value, size), section=2)

        self.key("plonk", "id 2 (plonk) is not groth16", lambda f: put(f[1], 0, 2), section=1)
        header("base_modulus", "unsupported base field modulus", 4, q - 2, n8q)
        header("scalar_modulus", "unsupported scalar field modulus", 8 + n8q, r - 2, 32)
        header("base_size", f"base field size of {n8q - 1} bytes", 0, n8q - 1)
        header("scalar_size", "scalar field size of 31 bytes", 4 + n8q, 31)
        other = 48 if n8q == 32 else 32
        header("base_size_of_other", "unsupported base field modulus", 0, other)
        header("domain_odd", "7 is not a power of two", counts + 8, 7)
        header("domain_zero", "0 is not a power of two", counts + 8, 0)
        header("domain_half", "expected the domain size", counts + 8, self.domain // 2)
        self.variants[-1].section = 9
        if self.curve.name == "bn254":
            header("domain_2e28", "2^28 is beyond 2^27", counts + 8, 1 << 28)
            header("domain_2e31", "two-adicity 28", counts + 8, 1 << 31)
        else:
            header("domain_2e31", "expected the domain size = 2147483648", counts + 8, 1 << 31)
            self.variants[-1].section = 9
        says = f"nPublic {self.n_vars + 5} >= nVars {self.n_vars}"
        header("public_beyond_vars", says, counts + 4, self.n_vars + 5)
        header("public_is_vars", "nPublic", counts + 4, self.n_vars)
        header("vars_zero", "nVars 0", counts, 0)
        header("vars_4e9", "expected nVars = 4294967295", counts, 0xFFFFFFFF)
        self.variants[-1].section = 5
        at, g1, g2 = counts + 12, self.curve.g1.nbytes, self.curve.g2.nbytes
        for name, size in (("alpha_1", g1), ("beta_1", g1), ("beta_2", g2), ("gamma_2", g2), ("delta_1", g1)):
            header(f"{name}_infinite", f"{name} is the point at infinity", at, 0, size)
            header(f"{name}_unreduced", f"{name}: a coordinate is not reduced", at, (1 << 8 * n8q) - 1, n8q)
            header(f"{name}_off_curve", f"{name}: the point is not on the curve", at, 1, n8q)
            at += size
        wrong = outside_subgroup(self.curve)
        says = "delta_2: the point is on the curve but not in the subgroup"
        header("delta_2_off_subgroup", says, at, int.from_bytes(wrong, "little"), g2)
        self.variants[-1].check = "none"  # the verification key's points are checked in full all the same

    def _coefficients(self) -> None:
        size = 44

        def coefficient(name: str, says: str, i: int, at: int, value: int, width: int = 4) -> None:
            self.key(
                name,
                f"coefficient {i}: {says}",
                lambda f: put(f[4], 4 + size * i + at, value, width),
                section=4,
                index=i,
            )

        count = struct.unpack_from("<I", File.unpack(self.zkey)[4])[0]
        for i in (0, count - 1):
            coefficient(f"matrix_7_{i}", "matrix id 7", i, 0, 7)
            coefficient(f"matrix_2_{i}", "matrix id 2", i, 0, 2)
            coefficient(f"row_domain_{i}", "constraint index", i, 4, self.domain)
            coefficient(f"row_2e31_{i}", "constraint index 0x7fffffff", i, 4, 0x7FFFFFFF)
            says = f"signal index {self.n_vars} >= nVars {self.n_vars}"
            coefficient(f"signal_{i}", says, i, 8, self.n_vars)
            coefficient(f"signal_2e32_{i}", "signal index 4294967295", i, 8, 0xFFFFFFFF)
            coefficient(f"value_r_{i}", "value is not reduced mod r", i, 12, self.curve.fr.modulus, 32)
            coefficient(f"value_max_{i}", "value is not reduced mod r", i, 12, (1 << 256) - 1, 32)
        says = "4294967295 coefficients"
        self.key("coefficients_4e9", says, lambda f: put(f[4], 0, 0xFFFFFFFF), section=4)
        says = f"{count - 1} coefficients"
        self.key("coefficients_fewer", says, lambda f: put(f[4], 0, count - 1), section=4)
        self.key("coefficients_no_count", "too short", lambda f: f[4].__delitem__(slice(3, None)), section=4)

    def _points(self) -> None:
        n8q, g1, g2 = self.curve.fp.nbytes, self.curve.g1.nbytes, self.curve.g2.nbytes
        for number in (3, 5, 6, 7, 8, 9):
            group = g2 if number == 7 else g1
            last = len(File.unpack(self.zkey)[number]) // group - 1
            for i in (0, last):

                def point(name: str, says: str, value: int, check: str, n: int = number, k: int = i) -> None:
                    step = g2 if n == 7 else g1
                    change = lambda f: put(f[n], k * step, value, n8q)  # noqa: E731
                    self.key(f"{name}_{n}_{k}", f"point {k}: {says}", change, section=n, index=k, check=check)

                for value in (self.curve.fp.modulus, (1 << 8 * n8q) - 1):
                    point("unreduced", "a coordinate is not reduced mod q", value, "none")
                point("off_curve", "the point is not on the curve", 12345, "curve")
        wrong = outside_subgroup(self.curve)
        k = self.n_public + 1
        says = f"point {k}: the point is on the curve but not in the subgroup"
        change = lambda f: put(f[7], k * g2, int.from_bytes(wrong, "little"), g2)  # noqa: E731
        self.key("off_subgroup", says, change, section=7, index=k, check="full")
        self.key("ic_infinite", "point 1 is the point at infinity", lambda f: put(f[3], g1, 0, g1), section=3)

    def _witness(self) -> None:
        def witness(
            name: str,
            error: type[PinzkError],
            says: str,
            change: Callable[[File], object],
            **where: int,
        ) -> None:
            file = File.unpack(self.wtns)
            data = change(file)
            data = data if isinstance(data, bytes) else file.pack()
            self.variants.append(Variant(name, self.zkey, data, error, says, **where))  # type: ignore[arg-type]

        n, r = self.n_vars, self.curve.fr.modulus

        def resize(f: File, count: int) -> None:
            f[2][32 * count :] = bytes(max(0, 32 * count - len(f[2])))
            put(f[1], 36, count)

        def add_r(f: File) -> None:
            put(f[2], 32 * (n - 1), int.from_bytes(f[2][-32:], "little") + r, 32)

        witness("wtns_empty", FormatError, "the wtns is empty", lambda f: b"")
        witness("wtns_cut", FormatError, "bytes, only", lambda f: self.wtns[:-16], section=2)
        witness("wtns_magic", FormatError, "its magic is b'zkey'", lambda f: b"zkey" + self.wtns[4:])
        witness("wtns_version", FormatError, "version 1", lambda f: setattr(f, "version", 1))
        witness("wtns_foreign", KeyMismatchError, self.curve.name, lambda f: self.foreign)
        says = "unsupported scalar field modulus"
        witness("wtns_prime", FormatError, says, lambda f: put(f[1], 4, r - 2, 32), section=1)
        says = "scalar field size of 31 bytes"
        witness("wtns_size", FormatError, says, lambda f: put(f[1], 0, 31), section=1)
        says = f"Invalid witness length. Circuit: {n}, witness: {n - 1}"
        witness("wtns_short", WitnessError, says, lambda f: resize(f, n - 1))
        says = f"Invalid witness length. Circuit: {n}, witness: {n + 1}"
        witness("wtns_long", WitnessError, says, lambda f: resize(f, n + 1))
        says = f"holds {n} values, the header says 4294967280"
        witness("wtns_lie", FormatError, says, lambda f: put(f[1], 36, 0xFFFFFFF0), section=2)
        witness("wtns_ragged", FormatError, "and 4 bytes", lambda f: f[2].extend(bytes(4)), section=2)
        says = f"witness[{n - 1}] is not reduced"
        witness("wtns_value", WitnessError, says, add_r, index=n - 1)
        witness("wtns_one", WitnessError, "witness[0] is not 1", lambda f: put(f[2], 0, 2, 32), index=0)
        witness("wtns_none", WitnessError, "witness[0] is not 1", lambda f: resize(f, 0), index=0)
        witness("wtns_no_values", FormatError, "is missing", lambda f: f.sections.pop(), section=2)

    def _valid(self) -> None:
        def valid(name: str, change: Callable[[File], object]) -> None:
            key, wtns = File.unpack(self.zkey), File.unpack(self.wtns)
            for file in (key, wtns):
                change(file)
            self.variants.append(Variant(name, key.pack(), wtns.pack(), None))

        valid("valid_reversed", lambda f: f.sections.reverse())
        valid("valid_unknown_section", lambda f: f.sections.append((77, bytearray(b"hello"))))
        valid("valid_unknown_first", lambda f: f.sections.insert(0, (0, bytearray(b"hello"))))
        valid("valid_unknown_twice", lambda f: f.sections.extend([(77, bytearray())] * 2))
        valid("valid_no_section_10", lambda f: f.sections.__setitem__(slice(None), f.sections[:9]))


def outside_subgroup(curve: Curve) -> bytes:
    """A point of the twist whose order is not r, as a key stores it."""
    twist = oracle.weierstrass(curve.g2)
    point = next(iter(twist.points_near(1)))
    assert twist.mul(curve.fr.modulus, point) is not None
    return curve.g2.encode([point]).tobytes()
