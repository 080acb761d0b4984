#!/usr/bin/env python3
"""docs.py <folder of binaries> [<repository>]

Checks the documents: flags of our commands are in the --help of the command;
targets of relative links, linked headings and files named in code style exist;
and versions are those of the code. Prints one line per violation, and fails if
there is one.
"""

import pathlib
import re
import subprocess
import sys

# These command lines list flags with --help. A command accepts the flags of
# its subcommands.
COMMANDS = {
    "mtplan": [[], ["fit-hardware"], ["fit-software"]],
    "mtrun": [[], ["data", "info"], ["data", "check"], ["data", "convert"],
              ["data", "steps"], ["ckpt", "info"], ["ckpt", "verify"],
              ["ckpt", "diff"], ["ckpt", "convert"], ["calibrate"]],
    "mtplan-validate": [[]],
    "mtplan-opt": [[]],
}
# Lists the flags of launchers and profilers that documents mention.
LAUNCHERS = {"--mpi", "--mca", "--allow-run-as-root", "--oversubscribe",
             "--kill-on-bad-exit", "--nproc-per-node", "--no-python",
             "--kernel-name"}
# Says where documents state versions, and which constants define them.
VERSIONS = [
    ("docs/executable-plan.md", r'(?:"version": |`version` \| )(\d+)',
     "runtime/plan/plan.h", r"kPlanVersion = (\d+)"),
    ("docs/model-format.md", r'"mtplan": (\d+)',
     "ir/model/load.h", r"kNativeVersion = (\d+)"),
    ("docs/plan-files.md", r'"mtplan_constraints": (\d+)',
     "tools/driver/constraints.cpp", r"kConstraintsVersion = (\d+)"),
    ("docs/packages.md", r"mtplan-(\d+\.\d+\.\d+)",
     "CMakeLists.txt", r"project\(mtplan VERSION (\S+)"),
]
FLAG = re.compile(r"(?<![\w-])(--[a-z][\w-]*|-[a-zA-Z])(?![\w-])")
# Lists the folders whose names in code style are paths of this repository.
FOLDERS = ("base", "bench", "cmake", "codegen", "docs", "examples", "ir",
           "passes", "planner", "python", "runtime", "scripts", "tests",
           "tools")
PATH = re.compile(r"(?:%s)/[\w./*{},-]+" % "|".join(FOLDERS))


def help_flags(binaries):
    """Returns the flags of each command, by its name."""
    flags = {}
    for name, subcommands in COMMANDS.items():
        flags[name] = set()
        for words in subcommands:
            text = subprocess.run([str(binaries / name), *words, "--help"],
                                  capture_output=True, text=True,
                                  check=True).stdout
            flags[name] |= set(FLAG.findall(text))
    return flags


def other_flags(root):
    """Returns flags of launchers, scripts, and Megatron-LM (those we read)."""
    flags = set(LAUNCHERS)
    for folder in ("scripts", "bench", "tests"):
        for script in (root / folder).rglob("*.py"):
            flags |= set(re.findall(r"""["'](--[a-z][\w-]*)["']""",
                                    script.read_text(encoding="utf-8")))
    for source in (root / "tools/exchange").glob("megatron*.cpp"):
        flags |= {"--" + name
                  for name in re.findall(r'"([a-z][\w-]+)"',
                                         source.read_text(encoding="utf-8"))}
    return flags


def documents(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "*.md"],
                            capture_output=True, text=True, check=True)
    return [root / name for name in listed.stdout.split()]


def command_lines(text):
    """Yields (line number, line) for code lines, with continuations joined."""
    lines = text.split("\n")
    fenced, at = False, 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            number = at + 1
            while line.endswith("\\") and at + 1 < len(lines):
                at += 1
                line = line[:-1] + " " + lines[at]
            yield number, line
        else:
            for code in re.findall(r"`([^`]+)`", line):
                yield at + 1, code
        at += 1


def our_flags(line):
    """Yields (command, flag) for every flag of our commands in the line."""
    for part in re.split(r"\||&&|;|\s#", line):
        words = part.replace("$(", " ").replace(")", " ").split()
        for at, word in enumerate(words):
            name = word.rsplit("/", 1)[-1]
            if name not in COMMANDS:
                continue
            for flag in words[at + 1:]:
                if FLAG.fullmatch(flag.split("=")[0]):
                    yield name, flag.split("=")[0]
            break


def slug(heading):
    """Returns the anchor that GitHub gives a heading."""
    plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading).strip()
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def anchors(text):
    return {slug(heading)
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def expand(path):
    """Returns the paths that "a/{b,c}.h" stands for."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        return [path]
    return [one for choice in braces.group(1).split(",")
            for one in expand(path[:braces.start()] + choice +
                              path[braces.end():])]


def check_versions(root):
    for document, stated, source, defined in VERSIONS:
        text = (root / document).read_text(encoding="utf-8")
        code = (root / source).read_text(encoding="utf-8")
        version = re.search(defined, code).group(1)
        for found in re.findall(stated, text):
            if found != version:
                yield f"{document}: has version {found}, {source} {version}"


def check(document, root, flags, others):
    text = document.read_text(encoding="utf-8")
    name = document.relative_to(root)
    any_flag = set().union(*flags.values())
    for number, line in command_lines(text):
        for command, flag in our_flags(line):
            if flag not in flags[command]:
                yield f"{name}:{number}: {command} has no flag {flag}"
        alone = re.match(r"(--[a-z][\w-]*)(?![\w*{.-])", line)
        if alone and alone.group(1) not in any_flag | others:
            yield f"{name}:{number}: no command has the flag {alone.group(1)}"
        if PATH.fullmatch(line):
            for path in expand(line.rstrip("/")):
                if not any(root.glob(path)):
                    yield f"{name}:{number}: no file {path}"
    for number, line in enumerate(text.split("\n"), 1):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = document.parent / file if file else document
            if not target.exists():
                yield f"{name}:{number}: no file {link}"
            elif anchor and target.suffix == ".md" and \
                    anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{name}:{number}: no heading {link}"


def main():
    binaries = pathlib.Path(sys.argv[1])
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                        pathlib.Path(__file__).resolve().parents[2])
    flags = help_flags(binaries)
    others = other_flags(root)
    violations = [violation for document in documents(root)
                  for violation in check(document, root, flags, others)]
    violations += check_versions(root)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
