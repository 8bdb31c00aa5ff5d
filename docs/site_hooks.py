"""Hooks of the documentation site: pages of the repository that live outside docs/, and notebooks, become pages of the site."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"(?<!\[)!\[[^\]]*\]\(([^)\s]+\.png)\)")


def on_config(config: Any) -> Any:
    """Add the proofs to the navigation, by their titles."""
    proofs = [{title: f"proofs/{name}"} for name, title in sorted(_titles_of_proofs().items())]
    config["nav"].append({"Proofs": ["proofs/README.md", *proofs]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the proofs, the pages of the repository's root and the gallery's notebooks."""
    for proof in sorted((ROOT / "proofs").glob("*.md")):
        files.append(_page(config, f"proofs/{proof.name}", proof))
    if not (ROOT / "proofs" / "README.md").exists():
        files.append(File.generated(config, "proofs/README.md", content=_list_of_proofs()))
    for source, target in ROOT_PAGES.items():
        files.append(_page(config, target, ROOT / source))
    for notebook in sorted((ROOT / "docs/gallery").glob("*.ipynb")):
        for name, content in rendered(notebook):
            files.append(File.generated(config, f"gallery/{name}", content=content))
    return files


def rendered(notebook: Path) -> Iterator[tuple[str, str | bytes]]:
    """A stored notebook as a Markdown page and its pictures: (file name, content) each."""
    parts, pictures = [], 0
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            if picture := output.get("data", {}).get("image/png"):
                pictures += 1
                name = f"{notebook.stem}-{pictures}.png"
                yield name, base64.b64decode("".join(picture))
                parts.append(f"![What the cell above draws]({name})")
    parts.append(
        f'<a href="../{notebook.name}" download>This page as a notebook</a>, with the outputs shown here; `make gallery` runs it again.'
    )
    yield f"{notebook.stem}.md", "\n\n".join(parts)


def _page(config: Any, target: str, source: Path) -> File:
    return File.generated(config, target, content=source.read_text(encoding="utf-8"))


def _titles_of_proofs() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for path in (ROOT / "proofs").glob("*.md")}


def _list_of_proofs() -> str:
    return "# Proofs\n\n" + "\n".join(f"- [{title}]({name})" for name, title in sorted(_titles_of_proofs().items()))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links between the repository's folders as links between pages of the site; a picture links to itself in full size."""
    del config, files
    depth = page.file.src_uri.count("/")
    markdown = _PICTURE.sub(lambda picture: f"[{picture.group()}]({picture.group(1)})", markdown)
    return _LINK.sub(lambda link: f"]({_on_site(link.group(1), depth)})", markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Mark the cells of tables that hold sentences, so that the style sheet can keep them readable on a phone."""
    del page, config, files
    return re.sub(r"<td(?=[^>]*>([^<]|<(?!/td>)){60,}</td>)", "<td data-sentence", html)


def _on_site(target: str, depth: int) -> str:
    up = "../" * depth
    path, _, anchor = target.partition("#")
    named = re.sub(r"^(\.\.?/)+", "", path)
    if named in ("proofs/", "proofs"):
        moved = f"{up}proofs/README.md"
    elif named.startswith("proofs/"):
        moved = up + named
    elif named in ROOT_PAGES:
        moved = up + ROOT_PAGES[named]
    elif depth == 0 and path.startswith("docs/"):
        moved = path.removeprefix("docs/")
    elif depth == 1 and path.startswith("../docs/"):
        moved = "../" + path.removeprefix("../docs/")
    elif path.endswith(".ipynb"):
        moved = path.removesuffix(".ipynb") + ".md"
    else:
        return target
    return moved + (f"#{anchor}" if anchor else "")
