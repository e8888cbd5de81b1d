"""Pages and docstrings mean the same on GitHub and on the documentation site."""

import importlib.util
from pathlib import Path, PurePosixPath

import pytest

EXTENSIONS = Path(__file__).resolve().parent.parent / "docs" / "extensions"
PAGE = PurePosixPath("docs/derivations/adjoint.md")
REPOSITORY = "https://example.org/project"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(text, source=PAGE, onto=PAGE):
    return load("github_markdown").translate(text, source, onto, REPOSITORY)


def docstring(*lines):
    translated = list(lines)
    load("markdown_docstrings").translate(None, "function", "package.f", None, None, translated)
    return translated


@pytest.mark.parametrize(
    ("github", "site"),
    [
        ("a $`x_1`$ b", "a $x_1$ b"),
        ("[a](rods.md#limits)", "[a](rods.md#limits)"),
        ("[a](#limits)", "[a](#limits)"),
        ("[a](../../CONTRIBUTING.md#slow-tests)", "[a](../contributing.md#slow-tests)"),
        ("[a](../../README.md)", "[a](../index.md)"),
        ("[a](../../notebooks/trot.ipynb)", "[a](../notebooks/trot.ipynb)"),
        ("[a](../../cpp/tree)", f"[a]({REPOSITORY}/blob/main/cpp/tree)"),
        ("[a](https://mujoco.org)", "[a](https://mujoco.org)"),
        ("```\n[a](../../cpp/tree) $`x`$\n```", "```\n[a](../../cpp/tree) $`x`$\n```"),
        ("<!-- site:\ntext\n-->", "text\n"),
        ("<!-- text -->", "<!-- text -->"),
    ],
)
def test_page(github, site):
    assert page(github) == site


def test_included_page_keeps_its_links():
    text = "![a](docs/demo.png) [b](docs/rods.md)"
    included = page(text, PurePosixPath("README.md"), PurePosixPath("docs/index.md"))
    assert included == "![a](demo.png) [b](rods.md)"


def test_indented_block_of_a_docstring_is_literal():
    block = docstring("Return y.", "", "    y = |x|", "", "with `Name`s, |x| and `|y|`.")
    assert block == [
        "Return y.",
        "",
        "::",
        "",
        "    y = |x|",
        "",
        "with `Name`\\ s, \\|x\\| and `|y|`.",
    ]


def test_sections_of_a_docstring_are_no_blocks():
    lines = ["Return y.", "", "Args:", "  x: number", "    of things", "", "Example:", "  >>> |x|"]
    assert docstring(*lines) == lines


def test_signature_of_a_compiled_function_is_removed():
    assert docstring("f(x: object) -> None", "", "Return y.") == ["", "Return y."]
