"""Execute the gallery's notebooks and store their outputs: `python -m tests.gallery [name …]`, or `make gallery`."""

import base64
import io
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parents[1] / "docs/gallery"


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def code_of(notebook: Path) -> str:
    """The code of all cells, as one program."""
    cells = nbformat.read(notebook, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def execute(notebook: Path) -> float:
    """Run a notebook in an empty folder and write its outputs into the file. Returns seconds."""
    document = nbformat.read(notebook, as_version=4)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(document, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in document.cells:
        _tidy(cell)
    document.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(document, notebook)
    return time.perf_counter() - started


def _tidy(cell) -> None:
    """Leave what a reader needs: outputs without log lines and times, pictures with few colours."""
    cell.metadata = {}
    if cell.cell_type != "code":
        return
    cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            output.data = {"image/png": _smaller(output.data["image/png"])}


def _smaller(picture: str) -> str:
    written = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize(128).save(written, "PNG", optimize=True)
    return base64.b64encode(written.getvalue()).decode()


if __name__ == "__main__":
    for path in notebooks():
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            print(f"{path.name}: {execute(path):.1f} s")
