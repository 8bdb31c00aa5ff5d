"""Every notebook of the gallery runs as it stands, in an empty folder, and is stored with its outputs."""

import json
import warnings
from contextlib import nullcontext

import pytest

import gallery
from process_support import ray_start


@pytest.mark.slow
@pytest.mark.parametrize("notebook", gallery.notebooks(), ids=lambda p: p.stem)
def test_it_runs_as_it_stands(notebook, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    with warnings.catch_warnings(), ray_start() if notebook.stem == "cluster" else nullcontext():
        warnings.filterwarnings("ignore", category=ResourceWarning)  # Ray's own
        exec(compile(gallery.code_of(notebook), str(notebook), "exec"), {"__name__": notebook.stem})


@pytest.mark.parametrize("notebook", gallery.notebooks(), ids=lambda p: p.stem)
def test_its_outputs_are_stored_and_it_begins_with_what_the_reader_can_do(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [one for one in outputs if one["output_type"] == "error"]
    assert any("image/png" in one.get("data", {}) for one in outputs)
    assert "After this notebook you can" in "".join(cells[0]["source"])
    assert all(len(line.rstrip("\n")) <= 120 for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"])


def test_there_is_one_for_each_task():
    assert {one.stem for one in gallery.notebooks()} == {
        "auditor", "cluster", "credit", "faces", "readmission", "texts", "two-models"
    }  # fmt: skip
