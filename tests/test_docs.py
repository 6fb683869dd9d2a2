"""What the documentation says is true: its examples run, its links lead somewhere, its lists are complete."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from scrubjay.cli.main import COMMANDS, main
from scrubjay.dialects.table import DIALECTS, find
from scrubjay.errors import Error, every_kind
from scrubjay.servers.http.rest import STATUSES
from scrubjay.settings import load, reference

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    if page != ROOT / "README.md"  # whose example is tried below
    for number, code in enumerate(blocks(page, "python"), 1)
]


def surroundings(home: Path) -> dict[str, str]:
    """An empty home, the model at hand, and patience: a busy machine may load it for more than two seconds."""
    return {
        "SCRUBJAY_HOME": str(home),
        "SCRUBJAY_MODELS": str(load().models),
        "SCRUBJAY_EMBED_WAIT": "60",
        "SCRUBJAY_JUDGE_WAIT": "0",
        "PATH": "",
    }


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_python_example_runs(tmp_path, code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_the_readmes_example_prints_what_it_says(tmp_path):
    [code] = blocks(ROOT / "README.md", "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )

    first, second = done.stdout.splitlines()
    assert first == "['User lives in Seattle']"
    assert second.endswith("User moved to Austin")


def test_the_tutorial_shows_what_the_commands_print(tmp_path):
    """Line for line, but for ids, times, and the last digits of scores."""
    program, ids = str(Path(sys.executable).with_name("scrubjay")), {}

    def lines(text):
        text = re.sub(r"20[0-9]{2}-\S+ [0-9:]{5}", "THEN", text)
        return sorted(
            re.sub(r"^([01]\.[0-9]+)\s+(mem_\w+)\s+([^\t]*).*", r"SCORE \2 \3", line) for line in text.splitlines()
        )

    def scores(text):
        return [float(score) for score in re.findall(r"(?m)^[01]\.[0-9]+(?=\s)", text)]

    for block in blocks(ROOT / "docs/tutorial/first-memory.md", "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            for known, real in ids.items():
                command = command.replace(known, real)
            done = subprocess.run(
                [program, *shlex.split(command)[1:]],
                cwd=tmp_path,
                env=surroundings(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=240,
                check=False,
            )
            ids |= zip(re.findall(r"mem_\w{12}", shown), re.findall(r"mem_\w{12}", done.stdout), strict=False)
            for known, real in ids.items():
                shown = shown.replace(known, real)
            assert lines(done.stdout) == lines(shown), command
            assert scores(done.stdout) == pytest.approx(scores(shown), abs=0.15)


LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")


def prose(page: Path) -> str:
    """The text of a page without its code, in which brackets are no links and `#` begins no heading."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]+`", lambda code: code[0].replace("](", "] ("), text)


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings in an address: letters, digits and hyphens, numbered where one repeats."""
    seen: dict[str, int] = {}
    names = set()
    for heading in re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return names


def follow_links(page: Path) -> list[tuple[Path, str]]:
    """Where the relative links of a page lead: a file or folder, and the anchor in it, if any."""
    return [
        ((page.parent / target).resolve() if target else page, anchor or "")
        for target, anchor in LINK.findall(prose(page))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page):
    for target, anchor in follow_links(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target.name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_file_that_a_document_names_exists(page):
    """Below the root, the package, the schemas of a store, the tests or the page's sources."""
    folders = [
        ROOT,
        *(ROOT / name for name in ("src", "src/scrubjay", "src/scrubjay/stores", "tests", "web", "web/src")),
    ]
    named = re.findall(r"`([\w.-]+/[\w./-]+\.(?:npz|py|sql|svelte|ts|yml))`", page.read_text("utf-8"))

    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


def test_the_index_reaches_every_page():
    start = ROOT / "docs" / "index.md"
    reached, waiting = {start}, [start]
    while waiting:
        for target, _ in follow_links(waiting.pop()):
            if target.suffix == ".md" and target not in reached:
                reached.add(target)
                waiting.append(target)

    assert [page for page in (ROOT / "docs").rglob("*.md") if page not in reached] == []


def test_the_index_itself_names_every_page_but_the_decisions():
    named = {target for target, _ in follow_links(ROOT / "docs" / "index.md")}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts}

    assert pages - named == {ROOT / "docs" / "index.md"}


DECISIONS = sorted(set((ROOT / "docs" / "decisions").glob("*.md")) - {ROOT / "docs" / "decisions" / "README.md"})


def test_the_index_of_decisions_names_each_page_with_its_title():
    titles = {page.name: page.read_text("utf-8").partition("\n")[0].removeprefix("# ") for page in DECISIONS}
    index = (ROOT / "docs" / "decisions" / "README.md").read_text("utf-8")

    assert {name: title for title, name in re.findall(r"^- \[(.+)\]\(([\w-]+\.md)\)$", index, re.MULTILINE)} == titles


def test_every_decision_ends_with_what_was_rejected_and_what_would_change_it():
    for page in DECISIONS:
        headings = re.findall(r"^## (.+)$", prose(page), re.MULTILINE)
        assert headings[-2:] == ["Tried and rejected", "What would change our mind"], page.name


def tracked_texts() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kinds = {".md", ".py", ".sh", ".sql", ".svelte", ".toml", ".ts", ".yaml", ".yml", ""}  # data quote other projects
    paths = [ROOT / name for name in listed.splitlines()]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8", errors="replace")
        for path in paths
        if path.suffix in kinds and path.is_file()
    }


def test_whatever_names_a_document_names_one_that_exists():
    """In comments, docstrings and messages as well as in documents, with the heading if one is named."""
    missing = []
    for name, text in tracked_texts().items():
        for path, anchor in re.findall(r"(?<![\w/.])(docs/[\w./-]+\.md)(?:#([\w-]+))?", text):
            page = ROOT / path
            if not page.exists() or (anchor and anchor not in anchors(page)):
                missing.append((name, path, anchor))

    assert missing == []


def test_nothing_cites_a_decision_by_a_number():
    """The papers with numbers are gone: a page is named by its topic."""
    cited = re.compile(r"decisions?/0\d{3}\b|\bdecisions? \(?0\d{3}\b|\[0\d{3}\]\(", re.IGNORECASE)

    assert {name: cited.findall(text) for name, text in tracked_texts().items() if cited.search(text)} == {}


def test_the_glossary_is_short_and_its_nouns_are_classes():
    drawn = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    glossary = drawn.partition("\n## The nouns\n")[2].partition("\n## ")[0]
    to_search, others = (re.findall(r"^- `(\w+)`: (.+)$", part, re.MULTILINE) for part in glossary.split("The rest"))
    sources = "\n".join(file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py"))

    assert 0 < len(to_search) <= 12
    assert len(to_search) + len(others) <= 40
    assert [noun for noun, _ in to_search + others if not re.search(rf"^class {noun}\b", sources, re.MULTILINE)] == []
    assert [noun for noun, said in to_search + others if not re.fullmatch(r"[A-Z][^.]*\.", said)] == []


MOST_OTHER_CLASSES = 123  # that another room imports, made of no noun of the glossary; this number only falls


def test_a_class_that_another_room_imports_is_made_of_the_nouns():
    """What can go wrong has names of its own, drawn at the top of `errors.py`."""
    source = ROOT / "src" / "scrubjay"
    nouns = set(re.findall(r"^- `(\w+)`:", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE))
    words = {word for noun in nouns for word in re.findall("[A-Z][a-z]+", noun)}
    strangers = set()
    for file in source.rglob("*.py"):
        room = file.relative_to(source).parts[0]
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("scrubjay."):
                continue
            target = source.joinpath(*node.module.split(".")[1:]).with_suffix(".py")
            if not target.is_file() or node.module == "scrubjay.errors" or node.module.split(".")[1] == room:
                continue
            classes = {one.name for one in ast.parse(target.read_text("utf-8")).body if isinstance(one, ast.ClassDef)}
            imported = classes & {alias.name for alias in node.names}
            strangers |= {name for name in imported if words.isdisjoint(re.findall("[A-Z][a-z]+", name))}

    assert len(strangers) <= MOST_OTHER_CLASSES, sorted(strangers)


# Words that read as translated, with what an engineer would write instead.
TRANSLATED = {
    "somebody": "someone",
    "nobody": "no one",
    "anew": "again",
    "put away": "archived",
    "shall": "must, will",
    "deed": "bulk operation",
    "softly deleted": "soft-deleted",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_document_reads_as_if_it_was_written_in_english(page):
    """Code and names of tests, which stand in italics, keep their words."""
    text = re.sub(r"`[^`\n]+`|(?<!\*)\*[^*\n]+\*(?!\*)", "", prose(page)).lower()

    assert {word: better for word, better in TRANSLATED.items() if re.search(rf"\b{word}\b", text)} == {}


def test_the_map_of_the_code_names_every_module_in_its_room():
    source = ROOT / "src" / "scrubjay"
    drawn = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w/.]+)` \| .* \| ([\w, ]+) \|$", drawn, re.MULTILINE)
    there = {}
    for file in source.rglob("*.py"):
        if file.stem != "__init__":
            there.setdefault(file.parent.relative_to(source).as_posix(), set()).add(file.stem)

    assert {room: set(modules.split(", ")) for room, modules in rows} == there


def test_the_table_of_changes_names_what_is_in_the_files_that_it_names():
    """Each row: its files and folders exist, and what it names besides is written in one of them."""
    drawn = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    table = drawn.partition("\n## Where common changes go\n")[2].partition("\n## ")[0]
    missing = []
    for row in re.findall(r"^\| (?!change|---)(.+) \|$", table, re.MULTILINE):
        quoted = re.findall(r"`([\w/.…]+)`", row)
        tops = (ROOT / "src/scrubjay", ROOT)
        paths = {name: [top / name for top in tops if (top / name).exists()] for name in quoted}
        files = [found[0] for found in paths.values() if found]
        files += [file for folder in files if folder.is_dir() for file in folder.rglob("*.py")]
        text = "\n".join(file.read_text("utf-8") for file in files if file.is_file())
        names = [name for name, found in paths.items() if not found]
        missing += [name for name in names if not re.search(rf"\b{name.rstrip('…')}", text)]

    assert missing == []
    assert table.count("\n| ") > 10


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_tool_is_on_its_dialects_page(dialect):
    page = (ROOT / "docs" / "reference" / f"{dialect}.md").read_text("utf-8")

    assert [name for name, one in find(dialect).operations.items() if one.listed and f"`{name}`" not in page] == []


def test_every_status_is_on_the_page_of_rest():
    page = (ROOT / "docs" / "reference" / "rest.md").read_text("utf-8")

    assert {status for status in STATUSES.values() if not re.search(rf"^\|.*\b{status}\b", page, re.MULTILINE)} == set()


def test_every_error_is_on_the_page_of_errors_with_its_status_and_whether_to_try_again():
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (yes)? ?\|", page, re.MULTILINE)
    kinds = [kind for kind in every_kind() if kind is not Error and kind.__module__ == Error.__module__]

    assert {code: (int(status), again == "yes") for code, status, again in rows} == {
        kind.code: (next(STATUSES[base] for base in kind.__mro__ if base in STATUSES), kind.retryable) for kind in kinds
    }


def test_every_command_is_on_the_page_of_commands():
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")

    assert [name for name in COMMANDS if not re.search(rf"scrubjay {name}\b", page)] == []


def commands(page: Path) -> list[list[str]]:
    """The commands of ours that the page tells to type, in words; without what follows a pipe or a comment."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    lines = "".join(code for language, code in fenced if language in {"", "sh", "console"})
    typed = re.findall(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*scrubjay (.*)$", lines, re.MULTILINE)
    return [shlex.split(re.split(r"\s(?:\||>>?|&&)\s", line)[0].replace("…", ""), comments=True) for line in typed]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_command_in_the_documents_exists_with_its_options(page):
    for words in commands(page):
        command: click.Command = main
        context = click.Context(main)
        options = {name for one in main.params for name in (*one.opts, *one.secondary_opts)}
        for word in words:
            if isinstance(command, click.Group) and (found := command.get_command(context, word)) is not None:
                command = found
                options |= {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
            elif word.startswith("--"):
                assert word.partition("=")[0] in options, f"scrubjay {' '.join(words)}"
        assert command is not main or words[0].startswith("-"), f"scrubjay {' '.join(words)}"


def test_the_settings_page_is_up_to_date():
    assert (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8") == reference()


def test_nothing_in_the_repository_names_this_machine():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in filter(None, tracked):
        path = ROOT / name
        if path.suffix in {".npz", ".png"} or not path.is_file():
            continue
        text = path.read_text("utf-8", errors="replace")
        assert str(Path.home()) + "/" not in text or Path.home() == Path("/"), name
        assert str(ROOT) not in text, name


def test_every_fact_that_the_faults_name_is_a_test():
    """`file.py`: *the fact*; *another* stands for tests of these names in that file."""
    text = (ROOT / "docs" / "lab" / "faults.md").read_text("utf-8")
    missing = []
    for cell in re.findall(r"`[a-z_/]+\.py`:[^|]*", text):
        for file, facts in re.findall(r"`([a-z_/]+\.py)`:((?:[^`])*)", cell):
            code = (ROOT / "tests" / file).read_text("utf-8")
            for fact in re.findall(r"\*([^*]+)\*", facts):
                name = f"def test_{fact.replace(' ', '_')}("
                missing += [] if name in code else [f"{file}: {fact}"]

    assert missing == []
    assert text.count("*;") > 20, "the names are no longer read"
