"""Conventions are tests: what documents and proofs point at, and that README's example runs as written."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from PIL import Image
from typer.main import get_command

import dpexplain
import import_graph
from dpexplain import errors
from dpexplain.cli import app

ROOT = Path(__file__).parents[2]


# What takes long to load waits until something needs it: a release is read, and --help shown, without any of these.
LATER = {
    "fastapi", "lime", "matplotlib", "narwhals", "numba", "pandas", "polars", "psycopg", "pyarrow", "ray", "rich", "scipy.linalg", "scipy.optimize",
    "scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats", "shap", "sklearn", "urllib.request", "uvicorn",
}  # fmt: skip


@pytest.mark.parametrize(("module", "needed"), [("dpexplain", set()), ("dpexplain.cli", {"rich"})])
def test_what_takes_long_to_load_is_not_loaded_with_the_library(module, needed):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "dpexplain.release.release" in loaded
    assert set(loaded) & LATER == needed


@pytest.mark.slow
def test_the_readme_examples_run_as_written(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    exec(compile(example, "README.md", "exec"), {})
    assert dpexplain.load("income.dpx").guarantee.epsilon == pytest.approx(0.1)
    assert (tmp_path / "income.html").exists()
    said = capsys.readouterr().out
    assert "This release, and every explanation from it, satisfies (ε=0.1, δ=1e-06)-differential privacy" in said
    assert "The model's answer here is about 8" in said


@pytest.mark.parametrize(
    "document", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("proofs/*.md")]), ids=lambda p: p.name
)
def test_links_and_named_files_exist(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith(("http", "mailto")):
            assert (document.parent / target).exists(), target
    for named in re.findall(r"`((?:tests|proofs|docs|experiments|benchmarks)/[\w/.-]+\.(?:py|md))", text):
        assert (ROOT / named).exists(), named
    for named in re.findall(
        r"`((?:core|estimation|privacy|mechanisms|backends|registration|release|evaluation|service|ledger|noise)/\w+\.py)", text
    ):
        assert (ROOT / "src/dpexplain" / named).exists(), named


def test_the_index_has_every_page():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


def test_options_of_commands_that_guides_name_exist():
    """Options of other programs are named in lines of their own command."""
    known, others = {"--help", *_options(get_command(app))}, re.compile(r"curl|kubectl|ray start|docker|until|pip|make")
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]
    measured = ("benchmark-history.md", "cluster.md", "faithfulness.md", "performance.md", "reproduction.md")  # by other commands
    about = [page for page in pages if page.name not in measured]
    lines = [line for page in about for line in page.read_text(encoding="utf-8").splitlines() if not others.search(line)]
    named = {option for line in lines if "experiments." not in line for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line)}
    assert sorted(named - known) == []


def _options(command) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for inner in getattr(command, "commands", {}).values():
        yield from _options(inner)


def test_proofs_named_in_code_exist():
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src/dpexplain").rglob("*.py")}
    named = {(path.name, proof) for path, text in texts.items() for proof in re.findall(r"proofs/[\w-]+\.md", text)}
    assert named
    assert [one for one in sorted(named) if not (ROOT / one[1]).exists()] == []


def test_every_proof_says_where_it_is_used_and_tested():
    for proof in (ROOT / "proofs").glob("*.md"):
        text = proof.read_text(encoding="utf-8")
        assert "**Used by**" in text, proof.name
        assert "**Tested by**" in text, proof.name


def test_files_that_start_first_exist():
    listed = [
        ast.literal_eval(node.value) for node in _assignments(ROOT / "tests/conftest.py") if node.targets[0].id == "LONGEST"
    ]
    assert [name for name in listed[0] if not (ROOT / "tests" / name).exists()] == []


def _assignments(path: Path) -> list[ast.Assign]:
    return [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]


def test_errors_are_one_tree_in_one_file():
    named = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.DpexplainError)}
    drawn = re.findall(r"^ {4}[│├└─ ]*(\w+)", errors.__doc__, re.MULTILINE)
    assert sorted(drawn) == sorted(named)
    for path, tree in _parse("src"):
        for node in _nodes(tree):
            if isinstance(node, ast.ClassDef) and path != "src/dpexplain/errors.py":
                assert not {base.id for base in node.bases if isinstance(base, ast.Name)} & named, f"{path}: {node.name}"


def test_no_two_classes_have_the_same_name():
    names = [node.name for _, tree in _parse("src") for node in tree.body if isinstance(node, ast.ClassDef)]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def _room_and_name(path: str) -> tuple[str, str]:
    """(the folder's name, the name that an import uses) of a module or of a package."""
    module = Path(path.removesuffix("/__init__.py").removesuffix(".py"))
    return module.parent.name, module.name.removeprefix("_")


def test_no_two_modules_have_the_same_name():
    """Exceptions: a command's module is named after the command, and a package's main module after the package."""
    modules = [_room_and_name(path) for path, _ in _parse("src")]
    names = [name for room, name in modules if room not in ("cli", name) and not name.startswith("_main__")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
    assert {name for room, name in modules if room == "cli" and name in names} <= get_command(app).commands.keys()


@cache
def _parse(*folders: str) -> list[tuple[str, ast.Module]]:
    """Each Python file under these folders, with its path from the root."""
    return [one for folder in folders for one in _parse_folder(folder)]


@cache
def _parse_folder(folder: str) -> list[tuple[str, ast.Module]]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


@cache
def _nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(module, names taken from it) of each import of the library."""
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names if alias.name.split(".")[0] == "dpexplain")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpexplain":
            yield node.module, tuple(alias.name for alias in node.names)


LISTED = ("answers", "backends", "core", "data", "estimation", "mechanisms", "privacy", "registration", "release")


@pytest.mark.parametrize("folder", LISTED)
def test_a_folder_says_what_each_of_its_files_holds(folder):
    files = sorted((ROOT / "src" / "dpexplain" / folder).glob("*.py"))
    said = ast.get_docstring(ast.parse((files[0].parent / "__init__.py").read_text(encoding="utf-8"))) or ""
    unlisted = [
        file.name for file in files if not file.name.startswith("__") and not re.search(rf"\b{re.escape(file.name)}", said)
    ]
    assert [name for name in unlisted if not name.startswith("_")] == []


PUBLIC = {
    "dpexplain", "dpexplain.errors", "dpexplain.evaluation", "dpexplain.noise", "dpexplain.plots", "dpexplain.plots.style", "dpexplain.privacy",
    "dpexplain.progress",
}  # fmt: skip


def test_experiments_import_the_public_api_only():
    imported = [(path, *one) for path, tree in _parse("experiments") for one in _imports(tree)]
    assert [f"{path} imports {module}" for path, module, _ in imported if module not in PUBLIC] == []
    for _, module, names in imported:
        for name in names:
            assert hasattr(importlib.import_module(module), name) or importlib.import_module(f"{module}.{name}")


def _attributes(tree: ast.Module) -> Iterator[ast.Attribute]:
    return (node for node in _nodes(tree) if isinstance(node, ast.Attribute))


def _own_names(tree: ast.Module) -> set[str]:
    """Every name that the module defines: functions, variables, fields, and what its methods set on `self`."""
    nodes = _nodes(tree)
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return (
        defined | stored | {node.attr for node in _attributes(tree) if isinstance(node.ctx, ast.Store) and _is_self(node.value)}
    )


def _is_self(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id in {"self", "cls"}) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


FOREIGN = {
    "_repr_html_": "IPython's protocol",
    "_predictors": "scikit-learn keeps the trees of gradient boosting there, and nowhere else",
    "_baseline_prediction": "… and what they start from",
}


def _reached_names(path: str, tree: ast.Module) -> list[str]:
    own, private = _own_names(tree), re.compile("_(?!_)")
    return [
        f"{path}:{node.lineno} reaches for {node.attr}"
        for node in _attributes(tree)
        if private.match(node.attr) and not _is_self(node.value) and node.attr not in own | FOREIGN.keys()
    ]


def test_private_names_stay_in_their_module():
    faults = "src/dpexplain/evaluation/audit/mutants.py"  # puts faults into private parts on purpose
    parsed = [(path, tree) for path, tree in _parse("src", "experiments", "benchmarks") if path != faults]
    assert [one for path, tree in parsed for one in _reached_names(path, tree)] == []


# Modules that may ask private rows without paying: the door, and what is for the owner's own eyes.
READS_ROWS = re.compile(r"src/dpexplain/(data|evaluation/(audit|baselines|metrics|rehearsal)/\w+)\.py|benchmarks/\w+\.py")


def test_only_the_door_and_offline_evaluation_read_private_rows():
    users = [
        path
        for path, tree in _parse("src", "experiments", "benchmarks")
        if any(n.attr == "private_rows" for n in _attributes(tree))
    ]
    assert users
    assert [path for path in users if not READS_ROWS.fullmatch(path)] == []


def test_the_picture_of_imports_is_current():
    with Image.open(import_graph.PICTURE) as picture:
        shown = picture.text[import_graph.KEYWORD]
    assert shown == import_graph.as_text(import_graph.drawn_arrows()), "draw it again: python -m tests.import_graph"


# Compiled kernels take plain arrays, and commands their options, one by one.
MANY_PARAMETERS = re.compile(r"(cli|plots)/|backends/_\w+|estimation/(tree|boosted)_shapley|estimation/_(plane|record)_kernels")


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    """(positional ones, all), without self and cls."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    positional = len(names) - (names[:1] in (["self"], ["cls"]))
    return positional, positional + len(function.args.kwonlyargs)


def test_functions_have_at_most_seven_parameters_unless_they_are_public_keywords():
    found = []
    for path, tree in _parse("src"):
        module = path.removeprefix("src/dpexplain/").removesuffix(".py")
        for node in _nodes(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not MANY_PARAMETERS.match(f"{module}:{node.name}"):
                positional, all_of_them = _parameters(node)
                if all_of_them > 7 and (positional > 4 or node.name.startswith("_")):
                    found.append(f"{module}.{node.name}")
    assert found == []


PARTICIPLE = re.compile(
    r"\w+(ed|ing)|told|kept|made|shown|known|found|given|taken|seen|held|sent|built|bought|paid|left|chosen|drawn|hidden|forgotten|gone|"
    r"lost|met|spent|ours|theirs|once|twice|both"
)
PREPOSITION = re.compile(
    r"across|along|alone|apart|around|at|before|after|between|by|each|from|into|onto|one|others|out|over|together|what|within|without"
)
NAMES_TO_KEEP = {
    "encoded": "`Domain.encoded` is public",
    "highlighted": "`plots.highlighted` is public",
    "listening": "`evaluation.listening` is public",
    "settled": "the noun of a ledger: entries that are settled",
    "normalised": "`Rows.normalised`: named like the moments it returns, as `raw` and `local` are",
    "after": "`NormalisedMoments.after`: the query after stage 1",
}  # fmt: skip
NOUNS = {"heading", "setting", "spending", "warning"}


# of one word, with its decorators
FUNCTION = re.compile(r"^((?:[ \t]*@.*\n)*)[ \t]*(?:async )?def (?!__)_*([a-z]+)_*\(", re.MULTILINE)


def _is_riddle(name: str) -> bool:
    return bool(PARTICIPLE.fullmatch(name) or PREPOSITION.fullmatch(name)) and name not in NAMES_TO_KEEP.keys() | NOUNS


def test_functions_are_verbs_or_nouns_and_no_bare_participles():
    """A property may be an adjective (`spent`, `passed`); nested functions, methods and fixtures count as well."""
    found = []
    for path in (
        one for folder in ("src", "tests", "experiments", "benchmarks") for one in sorted((ROOT / folder).rglob("*.py"))
    ):
        named = FUNCTION.findall(path.read_text(encoding="utf-8"))
        found += [f"{path}: {name}" for decorators, name in named if _is_riddle(name) and "property" not in decorators]
    assert found == []


# A remedy is a sentence of its own: the command line prints it on the second line, after the first full stop.
REMEDY = re.compile(
    r"[:;] (add|ask|check|choose|convert|correct|create|declare|explain|export|fit|give|install|join|leave|list|load|make|mount|name|open|"
    r"pass|put|read|register|remove|rename|repair|resize|restore|save|say|split|spend|try|upgrade|use|wrap|write) "
)


def _raised_text(node: ast.Raise) -> str:
    """The message with … for each value in it."""
    call = node.exc if isinstance(node.exc, ast.Call) else None
    first = call.args[0] if call is not None and call.args else None
    parts = first.values if isinstance(first, ast.JoinedStr) else [first]
    return "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in parts if one is not None)


def test_a_message_states_its_remedy_in_a_sentence_of_its_own():
    found = []
    for path, tree in _parse("src"):
        raised = [(node.lineno, _raised_text(node)) for node in _nodes(tree) if isinstance(node, ast.Raise)]
        found += [f"{path}:{line} {text}" for line, text in raised if REMEDY.search(text) and not text.startswith("…: ")]
    assert found == []
