"""Runs the code of notebooks.

    python3 notebooks.py NOTEBOOK.ipynb
    python3 notebooks.py --write NOTEBOOK.ipynb ...

The first command prints the outputs of the notebook's cells, as a JSON list
with a list for each cell. The second stores the outputs in each notebook. The
code is plain Python, so no kernel is needed: a cell is executed as a kernel
executes it, in the notebook's folder, and shows what it prints and the repr of
its last line. Every notebook is run in a process of its own.
"""

import ast
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys


def read(path):
    """Returns a notebook, and its cells of code."""
    notebook = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    return notebook, [cell for cell in notebook["cells"]
                      if cell["cell_type"] == "code"]


def execute(source, names):
    """Executes a cell, and returns what it prints and the repr of its value."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"),
                         names)
    return printed.getvalue(), "" if value is None else repr(value)


def outputs_of(printed, shown, count):
    """Returns the outputs of a cell as notebooks store them."""
    outputs = []
    if printed:
        outputs.append({"name": "stdout", "output_type": "stream",
                        "text": printed.splitlines(True)})
    if shown:
        outputs.append({"data": {"text/plain": shown.splitlines(True)},
                        "execution_count": count, "metadata": {},
                        "output_type": "execute_result"})
    return outputs


def run(path):
    """Returns the outputs of every cell of code. Changes the current folder."""
    path = pathlib.Path(path).resolve()
    os.chdir(path.parent)
    names = {"__name__": "__main__"}
    return [outputs_of(*execute("".join(cell["source"]), names), count)
            for count, cell in enumerate(read(path)[1], 1)]


def run_alone(path):
    """Runs a notebook in a process of its own, and returns its outputs.

    Raises ``RuntimeError`` with the traceback if a cell fails.
    """
    ran = subprocess.run([sys.executable, __file__, path], capture_output=True,
                         text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"{path}: {ran.stderr}")
    return json.loads(ran.stdout)


def write(path):
    """Runs a notebook, and stores the outputs in its file."""
    notebook, cells = read(path)
    for count, (cell, outputs) in enumerate(zip(cells, run_alone(path)), 1):
        cell["execution_count"], cell["outputs"] = count, outputs
    pathlib.Path(path).write_text(
        json.dumps(notebook, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        for name in sys.argv[2:]:
            write(name)
    else:
        print(json.dumps(run(sys.argv[1])))
