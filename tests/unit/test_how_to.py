"""Every how-to guide runs as it stands, in an empty folder."""

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs/how-to"
# the others take half a second and more
QUICK = {
    "register-a-table",
    "rotate-models",
    "several-rows-per-person",
    "stop",
    "use-any-model",
}


@pytest.mark.parametrize(
    "guide",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else [pytest.mark.slow])
        for path in sorted(GUIDES.glob("*.md"))
        if "```python" in path.read_text()
    ],
)
def test_it_runs_as_it_stands(guide, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code = "".join(re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL))
    exec(compile(code, str(guide), "exec"), {"__name__": guide.stem})


def test_every_guide_begins_with_what_the_reader_can_do():
    for guide in GUIDES.glob("*.md"):
        if guide.stem != "index":
            assert guide.read_text(encoding="utf-8").split("\n\n")[1].startswith("After this page"), guide.name
