"""The files around the code: workflows, templates, changelog, release notes."""

from __future__ import annotations

import ast
import io
import re
import runpy
import subprocess
import sys
import tokenize
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

import scrubjay

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
parse = cache(ast.parse)  # half of the tests below read the whole program
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")


def jobs(name: str) -> dict:
    return yaml.safe_load((GITHUB / "workflows" / name).read_text("utf-8"))["jobs"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_can_be_read_and_names_its_actions_by_tag(file):
    workflow = yaml.safe_load(file.read_text("utf-8"))

    assert {"name", True, "jobs", "permissions"} <= workflow.keys()  # YAML 1.1 reads the key `on` as true
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] > 0
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+){0,2}", step["uses"]), step


def test_ci_covers_three_systems_and_every_supported_python():
    test = jobs("ci.yml")["test"]
    matrix = test["strategy"]["matrix"]

    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert "matrix.os != 'ubuntu-latest'" in test["continue-on-error"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_what_a_workflow_makes_is_a_target_of_the_makefile(file):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for job in jobs(file.name).values():
        for step in job["steps"]:
            for wanted in re.findall(r"\bmake ([a-z -]+)", step.get("run", "")):
                assert set(wanted.split()) <= targets, wanted


def test_only_the_jobs_that_publish_may_prove_who_they_are():
    workflow = jobs("release.yml")

    assert [name for name, job in workflow.items() if "id-token" in job.get("permissions", {})] == [
        "publish",
        "registry",
    ]
    assert workflow["publish"]["environment"]["name"] == "pypi"
    assert not any("actions/checkout" in step.get("uses", "") for step in workflow["publish"]["steps"])
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text("utf-8")


@pytest.mark.parametrize("file", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda file: file.name)
def test_an_issue_template_can_be_read(file):
    template = yaml.safe_load(file.read_text("utf-8"))
    if file.name == "config.yml":
        return
    assert template["name"]
    assert template["description"]
    for part in template["body"]:
        assert part["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert part["type"] == "markdown" or (part["id"] and part["attributes"]["label"])


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "RELEASING.md", "CONTRIBUTING.md"])
def test_the_files_that_people_look_for_are_there(name):
    assert (ROOT / name).read_text("utf-8").startswith("# ")


def test_the_changelog_is_kept_as_keep_a_changelog_says():
    versions = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    kinds = re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)

    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_release_notes_are_the_changelogs_section():
    script = runpy.run_path(str(GITHUB / "release_notes.py"))
    changelog = CHANGELOG.replace("## [Unreleased]", "## [Unreleased]\n\n## [9.8.7] - 2026-01-31", 1)
    text = script["notes"](changelog + "\n## [9.8.6] - 2026-01-01\n\n- Before\n", "9.8.7")

    assert text.endswith("\n")
    assert "### Added" in text
    assert "Before" not in text
    assert script["package_version"]((ROOT / "src/scrubjay/__init__.py").read_text("utf-8")) == scrubjay.__version__


def test_release_notes_refuse_a_tag_that_is_not_the_version():
    done = subprocess.run(
        [sys.executable, GITHUB / "release_notes.py", "v99.0.0"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "The tag says 99.0.0" in done.stderr


def test_the_package_claims_no_system_that_it_was_not_run_on():
    """The jobs for other systems may fail; see `continue-on-error` in ci.yml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    systems = [name for name in project["classifiers"] if name.startswith("Operating System")]

    assert systems == ["Operating System :: POSIX :: Linux"]


def find_imports(file: Path) -> set[str]:
    """Modules that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def those_who_import(*modules: str) -> set[str]:
    source = ROOT / "src" / "scrubjay"
    return {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if any(name == module or name.startswith(f"{module}.") for name in find_imports(file) for module in modules)
    }


def test_only_the_wiring_picks_a_backend():
    who = those_who_import("scrubjay.stores.sqlite", "scrubjay.stores.postgres")

    assert {file for file in who if not file.startswith(("stores/sqlite/", "stores/postgres/"))} == {"wiring.py"}


def test_only_one_package_knows_the_sdk_of_mcp():
    assert {file.rpartition("/")[0] for file in those_who_import("mcp")} == {"servers/mcp"}


def modules() -> dict[str, ast.Module]:
    source = ROOT / "src"
    return {
        ".".join(file.relative_to(source).with_suffix("").parts): parse(file.read_text("utf-8"))
        for file in source.rglob("*.py")
    }


def test_no_module_uses_a_private_name_of_another():
    known = modules()
    used = []
    for name, tree in known.items():
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        ours = [(one.module, alias) for one in imports if one.module.startswith("scrubjay") for alias in one.names]
        used += [f"{name}: {module}.{alias.name}" for module, alias in ours if re.match("_[^_]", alias.name)]
        aliases = {alias.asname or alias.name for module, alias in ours if f"{module}.{alias.name}" in known}
        attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        used += [
            f"{name}: {node.value.id}.{node.attr}"
            for node in attributes
            if isinstance(node.value, ast.Name) and node.value.id in aliases and re.match("_[^_]", node.attr)
        ]

    assert used == []


# These are longer: each is a list of one thing after the other, without a branch that could be a function.
LONG = {"postgres.checkup.check", "engine.parts.__init__", "conflicts.differences.differences", "http.app.build_app"}


def test_no_function_is_longer_than_sixty_lines():
    long = {
        f"{'.'.join(name.split('.')[-2:])}.{node.name}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    }

    assert long <= LONG


# --- The ratchet ------------------------------------------------------------------------------------------------------
# These numbers only fall. A commit that raises one adds a feature, and says how much it adds and why.

MOST_CODE = 45_566  # lines of src that hold code: neither blank, nor only a comment, nor part of a docstring
MOST_CONSTANTS = 601  # assignments at the top level of a module whose value holds a number, tables included
MOST_LATE_IMPORTS = 80  # import statements inside functions
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of_code(text: str) -> int:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def numeric_constants(text: str) -> int:
    def is_number(node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and type(node.value) in (int, float)

    assigned = (node.value for node in parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign))
    return sum(any(map(is_number, ast.walk(value))) for value in assigned if value is not None)


def late_imports(text: str) -> int:
    functions = (node for node in ast.walk(parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inner = {
        id(node)
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(inner)


def test_the_rules_of_the_ratchet_count_what_they_say():
    text = '"""Module."""\n\nimport os  # why\n\nA = 3\nB = ("x", {"y": 2.5})\nC = "z"\nD = True\n\n\ndef f():\n'
    text += '    """Function,\n\n    at length."""\n    # a comment\n    import re\n\n    return re\n'

    assert lines_of_code(text) == 8
    assert numeric_constants(text) == 2
    assert late_imports(text) == 1


@pytest.mark.parametrize(
    ("count", "most"),
    [(lines_of_code, MOST_CODE), (numeric_constants, MOST_CONSTANTS), (late_imports, MOST_LATE_IMPORTS)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_program_does_not_grow(count, most):
    found = sum(count(file.read_text("utf-8")) for file in sorted((ROOT / "src").rglob("*.py")))

    assert found <= most
