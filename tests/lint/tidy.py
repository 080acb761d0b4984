#!/usr/bin/env python3
"""tidy.py <build folder> without-mlir|with-mlir: clang-tidy-14 over those of
our files in compile_commands.json that include no MLIR header, themselves or
through our headers, or over those that do; the latter take far longer each.

Device code is not read: clang-tidy 14 does not know CUDA 13's headers. nvcc and
g++ (tests/emulator) judge it, warnings as errors.

A file that was clean is not read again until it, a header of the project or
the configuration changes: the build folder remembers a digest of all that.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("ir", "passes", "planner", "codegen", "runtime", "tools", "tests",
         "bench")


def includes_mlir(path, known):
    """Whether a file of ours reaches an MLIR header; `known` remembers."""
    if path not in known:
        known[path] = False  # ends a cycle
        text = path.read_text(encoding="utf-8")
        names = re.findall(r'^#\s*include "([^"]+)"', text, re.MULTILINE)
        known[path] = any(
            name.startswith(("mlir/", "llvm/")) or name.endswith(".inc")
            or any(file.is_file() and includes_mlir(file, known)
                   for file in (path.parent / name, ROOT / name))
            for name in names)
    return known[path]


def digest(paths, start=b""):
    state = hashlib.sha256(start)
    for path in paths:
        content = pathlib.Path(path).read_bytes()
        state.update(f"{path}\0{len(content)}\0".encode() + content)
    return state.hexdigest()


def without_precompiled(command):
    """The command without GCC's precompiled header, which clang cannot read;
    each file includes what it needs."""
    return re.sub(r" -Winvalid-pch| -fpch-preprocess| -include \S*cmake_pch\S*",
                  "", command)


def tidy(database, file):
    """The complaints about one file; empty when there are none."""
    run = subprocess.run(["clang-tidy-14", "-p", database, "--quiet",
                          # GCC's names are not all clang's.
                          "--extra-arg=-Wno-unknown-warning-option", file],
                         capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return ""
    # stderr counts the warnings in system headers; errors are on stdout,
    # unless clang-tidy itself could not run.
    return run.stdout or run.stderr or f"{file}: clang-tidy-14 failed\n"


def main():
    build, kind = sys.argv[1], sys.argv[2]
    commands = json.loads((pathlib.Path(build) / "compile_commands.json")
                          .read_text(encoding="utf-8"))
    ours = tuple(f"{ROOT / room}/" for room in ROOMS)
    known = {}
    for c in commands:
        c["command"] = without_precompiled(c["command"])
    files = {c["file"]: c["command"] for c in commands
             if c["file"].startswith(ours) and not c["file"].endswith(".cu")
             and includes_mlir(pathlib.Path(c["file"]), known)
             == (kind == "with-mlir")}
    headers = sorted(h for room in ROOMS for h in (ROOT / room).rglob("*.h"))
    shared = digest([ROOT / ".clang-tidy"] + headers).encode()

    memory = pathlib.Path(build) / "tidy" / kind
    memory.mkdir(parents=True, exist_ok=True)
    (memory / "compile_commands.json").write_text(json.dumps(commands),
                                                  encoding="utf-8")
    keys = {f: digest([f], shared + command.encode())
            for f, command in files.items()}
    todo = sorted(f for f in files if not (memory / keys[f]).exists())
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(
            int(os.environ.get("JOBS", 2))) as pool:
        for file, complaints in zip(
                todo, pool.map(lambda f: tidy(memory, f), todo)):
            if complaints:
                failed += 1
                print(complaints, end="")
            else:
                (memory / keys[file]).touch()
    print(f"{len(files)} files, {len(todo)} read, {failed} with complaints")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
