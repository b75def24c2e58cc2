# SPDX-License-Identifier: Apache-2.0
"""Imports go one way: what each room of the source may touch (docs/architecture.md), read from the source itself."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from cases import ROOT

PACKAGE = ROOT / "pinzk"
CUDA = ROOT / "cuda"

# room -> rooms of pinzk it may import; files of one room may always import each other
LEAVES = {"errors", "curves"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "curves": {"errors"},
    "_core": set(),
    "_core.control_group": set(),
    "_core.cpu": {*LEAVES, "_core.control_group"},
    "_core.pairing": LEAVES,
    "_core.driver": {"errors"},
    "_core.memory": {"errors", "_core.control_group", "_core.driver"},
    "_core.assignment": {*LEAVES, "_core.memory"},
    "_core.device": {"errors", "_core.driver", "_core.memory"},
    "kernels": {"errors", "_core.device"},
    "backend": {"errors", "_core.device", "kernels"},
    "stages": {*LEAVES, "_core.cpu", "_core.memory", "_core.device", "backend"},
    "formats": {*LEAVES, "_core.cpu"},
    "groth16": {
        *LEAVES,
        *("_core.cpu", "_core.pairing", "_core.assignment", "_core.memory", "_core.device"),
        *("backend", "stages", "formats"),
    },
    "cli": {
        *LEAVES,
        "_core.control_group",
        "_core.cpu",
        "backend",
        "kernels",
        "formats",
        "groth16",
        "stages",
        "pinzk",
    },
    "_testing": {*LEAVES, "groth16"},
    "pinzk": {
        *LEAVES,
        *("_core.assignment", "_core.memory", "_core.device", "stages", "groth16"),
    },
}
# packages from outside: the standard library and these
EVERYWHERE = {"numpy"}
CUDA_DOORS = {"_core.driver": {"cuda"}, "kernels": {"cuda"}}
CYTHON = {"cython", "cpython", "libc", "libcpp", "posix"}

SOURCES = sorted(p for p in PACKAGE.rglob("*.py*") if p.suffix in (".py", ".pyi", ".pyx", ".pxd"))
CPP = sorted([*CUDA.glob("*.cu*"), *(PACKAGE / "_core").rglob("*.hpp"), *(PACKAGE / "_core").rglob("*.cpp")])


def room_of(module: str) -> str:
    """``pinzk.groth16.keys`` is in room ``groth16``; ``pinzk`` itself is the room of the public names."""
    parts = module.split(".")[1:]
    if not parts:
        return "pinzk"
    if parts[0] == "_core":
        return ".".join(parts[:2])
    for room in ("cli", "kernel"):  # rooms of several files: cli_prove, kernel_cache
        if parts[0].startswith(f"{room}_"):
            return "kernels" if room == "kernel" else room
    return parts[0]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def absolute(module: str, is_package: bool, level: int, name: str | None) -> str:
    """The module that ``from <level dots><name> import`` names inside `module`."""
    if level == 0:
        return name or ""
    base = module.split(".")
    base = base[: len(base) - level + (1 if is_package else 0)]
    return ".".join([*base, name] if name else base)


def is_module(dotted: str) -> bool:
    path = ROOT.joinpath(*dotted.split("."))
    return path.is_dir() or any(path.with_suffix(s).exists() for s in (".py", ".pyx"))


def targets(base: str, names: list[str]) -> set[str]:
    """What ``from base import names`` loads: submodules where a name is one, else `base`."""
    return {f"{base}.{n}" if is_module(f"{base}.{n}") else base for n in names}


def imports_of(path: Path) -> set[str]:
    """Absolute names of all modules a source file imports or cimports, inside functions too."""
    module, is_package = module_of(path), path.stem == "__init__"
    found: set[str] = set()
    if path.suffix in (".py", ".pyi"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = absolute(module, is_package, node.level, node.module)
                found |= targets(base, [a.name for a in node.names])
        return found
    text = re.sub(
        r"\\\n", " ", path.read_text()
    )  # Cython is not Python: statements, one a line or in parentheses
    for dots, base, names in re.findall(
        r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n]*)", text, re.M
    ):
        words = [
            n.split()[0] for n in re.sub(r"#.*|[()]", "", names).replace("\n", " ").split(",") if n.strip()
        ]
        found |= targets(absolute(module, is_package, len(dots), base or None), words)
    for names in re.findall(r"^[ \t]*c?import[ \t]+([^\n#]*)", text, re.M):
        found |= {n.split()[0] for n in names.split(",") if n.strip()}
    return found


def faults(room: str, imported: set[str]) -> list[str]:
    """Imports that the room may not make."""
    bad = []
    for name in sorted(imported):
        root = name.split(".")[0]
        if root == "pinzk":
            if room_of(name) not in {room, *MAY_IMPORT[room]}:
                bad.append(name)
        elif root not in sys.stdlib_module_names | EVERYWHERE | CYTHON | CUDA_DOORS.get(room, set()):
            bad.append(name)
    return bad


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(module_of(path))
    assert room in MAY_IMPORT, f"{path.name} opens a new room: say in MAY_IMPORT what it may touch"
    assert faults(room, imports_of(path)) == []


def test_the_rooms_are_ordered() -> None:
    """No two rooms may import each other, not even by way of a third (`pinzk` and `cli` look at everything)."""
    done: set[str] = set()
    left = {r: MAY_IMPORT[r] - {"pinzk"} for r in MAY_IMPORT}
    while ready := {r for r, needs in left.items() if needs <= done}:
        done |= ready
        left = {r: needs for r, needs in left.items() if r not in ready}
    assert left == {}


def test_a_wrong_import_is_seen(tmp_path: Path) -> None:
    """The tests above can fail: each way to write an import is read."""
    assert faults("formats", {"pinzk.stages.ntt"}) == ["pinzk.stages.ntt"]
    assert faults("stages", {"cuda.bindings.nvrtc", "numpy", "os"}) == ["cuda.bindings.nvrtc"]
    assert faults("_core.memory", {"pinzk.curves"}) == ["pinzk.curves"]
    assert absolute("pinzk.formats.zkey", False, 2, "stages") == "pinzk.stages"
    assert targets("pinzk.stages", ["ntt", "nothing"]) == {"pinzk.stages.ntt", "pinzk.stages"}


@pytest.mark.parametrize("path", CPP, ids=lambda p: str(p.relative_to(ROOT)))
def test_includes_stay_in_their_rooms(path: Path) -> None:
    text = path.read_text()
    system = re.findall(r"^\s*#\s*include\s*<([^>]+)>", text, re.M)
    own = re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M)
    if path.parent == CUDA:
        assert system == []  # NVRTC has no headers but those it is given
        assert [i for i in own if not (CUDA / i).exists()] == []
        assert path.name == "limbs.cuh" or "__CUDA_ARCH__" not in text  # the one place where machines differ
    else:
        core = PACKAGE / "_core"
        allowed = [CUDA, core, core / "cpu_loops", path.parent]
        assert [i for i in own if not any((folder / i).exists() for folder in allowed)] == []
        assert [i for i in system if i.startswith(("cuda", "nvrtc"))] == []


def test_every_source_is_installed() -> None:
    """`meson.build` names each file of the package and of `cuda/`, once."""
    build = (ROOT / "meson.build").read_text()
    wanted = [p for p in [*SOURCES, *CPP] if p.suffix in (".py", ".pyi", ".pyx", ".cpp", ".cu", ".cuh")]
    assert [str(p.relative_to(ROOT)) for p in wanted if build.count(f"'{p.relative_to(ROOT)}'") != 1] == []
