"""Run the notebooks from top to bottom and write their outputs into them; `make notebooks`."""

import argparse
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
INSTALLS = "skip-execution"
"""The tag of cells that only install: what they install is there."""


def run_notebook(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; its kernel is this Python and works in the folder."""
    notebook = nbformat.read(path, as_version=4)
    # The kernel imports what this program would, whatever environment is active.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    client = NotebookClient(
        notebook,
        timeout=1_800,
        kernel_name="python3",
        skip_cells_with_tag=INSTALLS,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        # When each cell ran would make every run a change.
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            # Warnings of libraries name folders of this machine.
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    nbformat.validate(notebook)
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(HERE.glob("*.ipynb")))
    parser.add_argument("--out", type=Path, help="A folder for the results; default: in place.")
    options = parser.parse_args()
    for path in options.notebooks:
        folder = options.out or path.parent
        nbformat.write(run_notebook(path, folder), folder / path.name)
        print(path.name)


if __name__ == "__main__":
    main()
