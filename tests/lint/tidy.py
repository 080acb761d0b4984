#!/usr/bin/env python3
"""tidy.py <build folder> rooms|tests|mlir: runs clang-tidy-14 on our files in
compile_commands.json. `mlir` checks the files that include an MLIR header,
directly or through our headers; these files take longest. `rooms` checks the
other files of the rooms, and `tests` the other files of tests/ and bench/.

Nearly all of clang-tidy's time goes into third-party headers. So files with
equal flags whose own names do not clash are checked as one file that includes
them. If such a bundle has complaints, its halves are checked, down to single
files; only complaints about single files are reported.

Device code is not checked, because clang-tidy 14 cannot read CUDA 13's headers.
nvcc and g++ (tests/emulator) compile it with warnings as errors.

A clean file is not checked again until it, a header of the project or the
configuration changes; the build folder keeps a digest of all of them.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("base", "ir", "passes", "planner", "codegen", "runtime", "tools")
TESTS = ("tests", "bench")
# Matches our headers, by the regular expression in .clang-tidy.
HEADERS = re.search(r"^HeaderFilterRegex: '(.*)'$",
                    (ROOT / ".clang-tidy").read_text(encoding="utf-8"),
                    re.MULTILINE)[1]
# Limits the files per bundle. Larger bundles share more headers but balance
# cores worse.
BUNDLE = 16


class Reached:
    """Says whether a file of ours includes an MLIR header, directly or through
    our headers, and which names those headers declare. `known` is a cache."""

    def __init__(self, path, known):
        known[path] = self  # ends a cycle
        self.text = path.read_text(encoding="utf-8")
        self.mlir = False
        self.names = set()
        for name in re.findall(r'^#\s*include "([^"]+)"', self.text,
                               re.MULTILINE):
            self.mlir |= (name.startswith(("mlir/", "llvm/"))
                          or name.endswith(".inc"))
            for file in (path.parent / name, ROOT / name):
                if file.is_file():
                    header = known.get(file) or Reached(file, known)
                    self.mlir |= header.mlir
                    self.names |= header.names | declared(header.text)


def declared(text):
    """Returns the names that a text declares at namespace scope, which
    clang-format does not indent. The result is approximate: missed clashes
    only cost time."""
    text = re.sub(r"^template <[^;{=]*>\n", "", text, flags=re.MULTILINE)
    heads = re.findall(r"^(?!namespace|using|template|public:|private:|"
                       r"protected:|TEST|BENCHMARK|INSTANTIATE)(\w[^{;=]*[{;=])",
                       text, re.MULTILINE)
    names = set(re.findall(r"^#define (\w+)|^using (\w+) =", text,
                           re.MULTILINE))
    names = {first or second for first, second in names}
    for head in heads:
        kind = re.match(r"(?:class|struct|enum|union)\b(?: class)?\s+(\w+)",
                        head)
        name = re.search(r"(::)?(\w+)\s*[(\[]|()(\w+)\s*[={;]", head)
        if kind and "(" not in head:
            if head[-1] != ";":
                names.add(kind[1])
        elif name and not name[1]:
            names.add(name[2] or name[4])
    return names


def digest(paths, start=b""):
    state = hashlib.sha256(start)
    for path in paths:
        content = pathlib.Path(path).read_bytes()
        state.update(f"{path}\0{len(content)}\0".encode() + content)
    return state.hexdigest()


def flags(commands):
    """Returns {file: flags} of compile_commands.json. All files get all include
    folders and definitions, so that more files have equal flags. Optimisation
    and GCC's precompiled headers, which clang cannot read, are dropped."""
    words = {}
    for c in commands:
        text = re.sub(r" -Winvalid-pch| -fpch-preprocess"
                      r"| -include \S*cmake_pch\S*| -O\d| -o \S+ -c \S+$", "",
                      c["command"]).replace("-isystem ", "-isystem")
        words[c["file"]] = shlex.split(text)[1:]
    seen = sorted(set(sum(words.values(), [])))
    names = [w.split("=")[0] for w in seen]
    apart = [w for w, name in zip(seen, names)
             if w[:2] in ("-f", "-m") or names.count(name) > 1]
    common = [w for w in seen if w not in apart]
    return {file: common + [w for w in words[file] if w in apart]
            for file in words}


def bundles(files, known):
    """Returns the files ({path: flags}) in lists with equal flags, in which no
    file declares a name that another declares or includes. The function uses
    first fit, in O(files * lists)."""
    made = []
    for file in sorted(files):
        reached = known[pathlib.Path(file)]
        own = declared(reached.text) - reached.names
        # Files of a folder include the same headers.
        folder = pathlib.Path(file).relative_to(ROOT).parent.parts[:2]
        for bundle in made:
            if (bundle["folder"] == folder and bundle["flags"] == files[file]
                    and len(bundle["files"]) < BUNDLE
                    and not own & (bundle["own"] | bundle["seen"])
                    and not bundle["own"] & reached.names):
                break
        else:
            bundle = {"folder": folder, "flags": files[file],
                      "own": set(), "seen": set(), "files": []}
            made.append(bundle)
        bundle["own"] |= own
        bundle["seen"] |= reached.names
        bundle["files"].append(file)
    return [bundle["files"] for bundle in made]


def run(folder, files, flags_of):
    """Returns clang-tidy's complaints about the files as one, or ""."""
    name = hashlib.sha256("\0".join(files).encode()).hexdigest()[:16]
    whole = folder / f"{name}.cpp"
    whole.write_text("".join(f'#include "{f}"\n' for f in files),
                     encoding="utf-8")
    file = files[0] if len(files) == 1 else str(whole)
    tidy = ["clang-tidy-14", f"--config-file={ROOT / '.clang-tidy'}", "--quiet",
            # clang does not know all of GCC's warnings.
            "--extra-arg=-Wno-unknown-warning-option"]
    if len(files) > 1:
        # Names of different files of a bundle may shadow each other.
        tidy += ["--extra-arg=-Wno-shadow",
                 "--checks=-bugprone-suspicious-include",
                 "--header-filter=" + HEADERS + r"|/[^.]*\.cpp$"]
    done = subprocess.run(tidy + [file, "--"] + flags_of[files[0]],
                          cwd=folder, capture_output=True, text=True,
                          check=False)
    whole.unlink()
    if done.returncode == 0:
        return ""
    # stderr counts the warnings in system headers; errors are on stdout,
    # unless clang-tidy itself could not run.
    return done.stdout or done.stderr or f"{file}: clang-tidy-14 failed\n"


def complaints(folder, files, flags_of):
    """Returns {file: complaints about it alone} of the files that have any."""
    said = run(folder, files, flags_of)
    if not said:
        return {}
    if len(files) == 1:
        return {files[0]: said}
    half = len(files) // 2
    return (complaints(folder, files[:half], flags_of)
            | complaints(folder, files[half:], flags_of))


def main():
    build, kind = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    commands = json.loads((build / "compile_commands.json")
                          .read_text(encoding="utf-8"))
    known = {}

    def kind_of(file):
        """Returns the kind of one of our files, else None."""
        room = pathlib.Path(file).relative_to(ROOT).parts[0]
        if room not in ROOMS + TESTS or file.endswith(".cu"):
            return None
        if Reached(pathlib.Path(file), known).mlir:
            return "mlir"
        return "rooms" if room in ROOMS else "tests"

    flags_of = flags([c for c in commands if c["file"].startswith(f"{ROOT}/")
                      and kind_of(c["file"]) == kind])
    headers = sorted(h for room in ROOMS + TESTS
                     for h in (ROOT / room).rglob("*.h"))
    shared = digest([ROOT / ".clang-tidy"] + headers).encode()

    memory = build / "tidy" / kind
    memory.mkdir(parents=True, exist_ok=True)
    keys = {f: digest([f], shared + " ".join(flags_of[f]).encode()) for f in flags_of}
    todo = {f: flags_of[f] for f in flags_of
            if not (memory / keys[f]).exists()}
    work = bundles(todo, known)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(
            int(os.environ.get("JOBS", 2))) as pool:
        for bundle, said in zip(
                work, pool.map(lambda b: complaints(memory, b, todo), work)):
            for file in bundle:
                if file in said:
                    failed += 1
                    print(said[file], end="")
                else:
                    (memory / keys[file]).touch()
    print(f"{len(flags_of)} files, {len(todo)} read in {len(work)} bundles, "
          f"{failed} with complaints")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
