# SPDX-License-Identifier: Apache-2.0
"""Machine code, counted: which instructions each kernel of a cubin has, and what should not be among them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path


def disassembler() -> str | None:
    """Where nvdisasm is: in the wheel nvidia-cuda-nvdisasm, or on the path."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        if (tool := Path(root) / "cu13" / "bin" / "nvdisasm").exists():
            return str(tool)
    return shutil.which("nvdisasm")


def instructions(image: bytes, folder: Path) -> dict[str, Counter[str]]:
    """Counts of instructions by kernel; ``IMAD.WIDE``, ``IMAD.HI`` and ``IMAD`` apart, others by their first word."""
    tool = disassembler()
    assert tool is not None
    file = folder / "image.cubin"
    file.write_bytes(image)
    text = subprocess.run([tool, "-c", file], capture_output=True, text=True, check=True).stdout
    found: dict[str, Counter[str]] = {}
    for section in re.split(r"^\s*\.text\.", text, flags=re.M)[1:]:
        name = section[: section.index(":")]
        # an address in a comment, a predicate perhaps, the instruction
        words = re.findall(r"^\s+/\*[0-9a-f]{4,6}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)", section, re.M)
        found[name] = Counter(_kind(word) for word in words)
    return found


def _kind(word: str) -> str:
    for fused in ("IMAD.WIDE", "IMAD.HI"):
        if word.startswith(fused):
            return fused
    if word.startswith(("IMAD.MOV", "IMAD.SHL", "IMAD.IADD")):
        return "move"  # the multiplier lent for a move
    return word.split(".")[0]


def traps(counts: Counter[str]) -> list[str]:
    """What makes products slow without making them wrong (docs/kernels.md, 2)."""
    found = []
    # a product of words is one IMAD.WIDE; pulled apart, it is a low IMAD and an IMAD.HI
    if counts["IMAD.HI"] > counts["IMAD.WIDE"] / 4:
        found.append(
            f"products not fused: {counts['IMAD.HI']} IMAD.HI beside {counts['IMAD.WIDE']} IMAD.WIDE"
        )
    if counts["P2R"] + counts["R2P"] > 2:
        found.append(f"carries saved in registers: {counts['P2R']} P2R, {counts['R2P']} R2P")
    if counts["CALL"]:
        found.append(f"{counts['CALL']} calls")
    return found
