# SPDX-License-Identifier: Apache-2.0
"""Build step: one unit for one architecture into a file that comes with pinzk. Needs NVRTC, no GPU (docs/kernels.md, 1).

python compile_kernel.py SOURCE_ROOT UNIT CURVE SM OUTPUT
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


def main(root: Path, name: str, curve: str, sm: int, output: Path) -> None:
    """Write `output`; a kernel that does not compile stops the build."""
    # the package's own __init__ wants its compiled modules, which this build is still making
    package = ModuleType("pinzk")
    package.__path__ = [str(root / "pinzk")]
    sys.modules["pinzk"] = package
    from pinzk import kernel_cache, kernel_compiler, kernels

    unit, arch, compiler = kernels.Unit(name, curve), f"sm_{sm}", kernel_compiler.compiler_version()
    builder = kernels.Builder(sources=root / "cuda", shipped=output.parent)
    image, log = kernel_compiler.compile_program(f"{unit}.cu", unit.source, builder.closure(unit), arch)
    key = builder.key(unit, arch, compiler)
    header = {"unit": str(unit), "arch": arch, "compiler": compiler, "key": key, "log": log}
    output.write_bytes(kernel_cache.pack(header, image))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
