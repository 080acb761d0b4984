#!/usr/bin/env python3
"""Tests that the packages run on a system with nothing but a C library.

    package_test.py <cmake> <build folder>

Installs what cmake/package.cmake packs, checks that each file's libraries are
in the package or the C library, and plans and trains in a root file system with
only the C library and the packages. Without the right to change the root,
the test uses an empty environment.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

C_LIBRARY = re.compile(r"(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util))\.so\.\d+$")
DRIVERS = re.compile(r"lib(cuda|cublas|cublasLt|cudnn|nccl|nvrtc|mpi)\.so\.\d+$")
# Only these files may need NVIDIA's or MPI's libraries.
WITH_DRIVERS = {"libmtplan_cuda.so", "libmtplan_mpi.so", "cuda_tests", "cudnn_tests"}
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home"}

faults = []


def expect(holds, what):
    if not holds:
        faults.append(what)
        print(f"FAILED: {what}", flush=True)


def installed(cmake, build, prefix):
    for component in "run", "plan", "tests":
        subprocess.run([cmake, "--install", build, "--prefix", prefix, "--component", component],
                       check=True, stdout=subprocess.DEVNULL)


def dynamic(path):
    """Returns the libraries that a file needs and its search paths."""
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return (re.findall(r"\(NEEDED\).*\[(.*)\]", text),
            ":".join(re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", text)).split(":"))


def check_closed(prefix):
    here = {path.name for path in (prefix / "lib").iterdir()}
    files = [path for folder in ("bin", "lib") for path in (prefix / folder).iterdir()]
    for path in files:
        needed, folders = dynamic(path)
        for name in needed:
            comes = name in here or C_LIBRARY.match(name)
            if path.name in WITH_DRIVERS:
                comes = comes or DRIVERS.match(name)
            expect(comes, f"{path.name} needs {name}, which is not in the package")
        for folder in folders:
            expect(not folder or folder.startswith(("$ORIGIN", "/usr/local/cuda/")),
                   f"{path.name} looks for libraries in {folder}")
    print(f"{len(files)} files ask for what is there")


class Bare:
    """Holds a root with the C library, the packages in /mtplan and /home."""

    def __init__(self, root):
        self.root = root
        (root / "home").mkdir(parents=True)
        libraries = subprocess.run(["ldd", "/bin/true"], capture_output=True, text=True,
                                   check=True).stdout
        loader = re.search(r"^\s*(/\S*ld-linux\S*)", libraries, re.M).group(1)
        folder = pathlib.Path(re.search(r"libc\.so\.\d+ => (\S+)", libraries).group(1)).parent
        for path in sorted(folder.glob("lib*.so.*")) + [pathlib.Path(loader)]:
            if C_LIBRARY.match(path.name):
                to = root / path.relative_to("/")
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, to)
        shutil.copytree("/bin", root / "bin", ignore=lambda folder, names: set(names) - {"true"})
        (root / "proc").mkdir()  # The loader finds $ORIGIN in /proc.
        change = ["sh", "-c", 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"', root]
        self.change = None
        for user in [], ["--map-root-user"]:
            changed = ["unshare", "--mount", *user, *change]
            if subprocess.run([*changed, "/bin/true"], capture_output=True, env=ENVIRONMENT,
                              check=False).returncode == 0:
                self.change = changed
                break
        print("in a root of its own" if self.change
              else "no root can be changed to: in an empty environment")

    def place(self, words):
        """Returns a command that runs in the root, or with paths into it."""
        if self.change:
            return [*self.change, *words]
        return [str(self.root) + word if word.startswith("/") else word for word in words]

    def start(self, *words, **variables):
        return subprocess.Popen(self.place(words), env={**ENVIRONMENT, **variables}, cwd="/",
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words, status=0, **variables):
        process = self.start(*words, **variables)
        out, err = process.communicate(timeout=120)
        expect(process.returncode == status,
               f"{' '.join(words)} ended with {process.returncode}: {err}{out[-500:]}")
        return out, err


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def last_loss(out):
    return re.findall(r"loss ([0-9.]+)", out)[-1:]


def main():
    cmake, build = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        prefix = root / "root" / "mtplan"
        installed(cmake, build, prefix)
        check_closed(prefix)
        bare = Bare(root / "root")
        mtrun, text = "/mtplan/bin/mtrun", "/mtplan/examples/data/opticks.txt"
        bare.run("/mtplan/bin/mtplan", "/mtplan/examples/tiny-gpt2.json", "--hardware", "cpu",
                 "--gpus", "2", "--tp", "2", "-o", "/home/run")
        train = [mtrun, "/home/run", "--data", text, "--steps", "3", "--threads", "1"]
        threads, _ = bare.run(*train)
        port = str(free_port())
        ranks = [bare.start(*train, RANK=rank, WORLD_SIZE="2", LOCAL_RANK=rank,
                            LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
                 for rank in "01"]
        said = [rank.communicate(timeout=120) for rank in ranks]
        expect(all(rank.returncode == 0 for rank in ranks), f"two processes ended with {said}")
        expect(last_loss(threads) and last_loss(said[0][0]) == last_loss(threads),
               f"two processes end at {last_loss(said[0][0])}, threads at {last_loss(threads)}")
        _, err = bare.run(*train, "--backend", "cuda", status=2)
        expect(err.count("\n") == 1 and err.startswith("error: --backend cuda: "), err)
        if bare.change and (prefix / "lib" / "libmtplan_cuda.so").exists():
            expect(re.search(r"lib\w+\.so\.\d+: cannot open", err), err)
            _, err = bare.run(*train, status=1, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2",
                              OMPI_COMM_WORLD_LOCAL_RANK="0", OMPI_COMM_WORLD_LOCAL_SIZE="2")
            expect("libmpi" in err, err)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
