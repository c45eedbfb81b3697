"""The documentation that ships inside Python, as a corpus."""

import ast
import inspect
import os
import sysconfig
from collections.abc import Iterator

_NOT_DOCUMENTATION = {
    *("__pycache__", "config", "dist-packages", "ensurepip", "idlelib", "lib2to3"),
    *("lib-dynload", "pydoc_data", "site-packages", "test", "tests", "turtledemo"),
}


def python_documents() -> Iterator[list[str]]:
    """Streams the documents, each a list of paragraphs.

    First the topics of `pydoc`, then the docstrings of each module of the standard
    library. Files are parsed, never imported. The order is the same each time.

    Yields:
        The paragraphs of a document, at least one.
    """
    library = sysconfig.get_paths()["stdlib"]
    topics = os.path.join(library, "pydoc_data", "topics.py")
    if os.path.exists(topics):
        yield from filter(None, map(_paragraphs, _string_table(topics)))
    for path in _library_modules(library):
        if paragraphs := _paragraphs("\n\n".join(_docstrings(path))):
            yield paragraphs


def _library_modules(library: str) -> Iterator[str]:
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _NOT_DOCUMENTATION and not name.startswith("config-")
        )
        for name in sorted(names):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def _docstrings(path: str) -> Iterator[str]:
    tree = _parse(path)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    pending = [tree] if tree else []
    while pending:
        node = pending.pop()
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text
        # Reversed, so that the stack gives the order of the file.
        pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _string_table(path: str) -> Iterator[str]:
    """Streams the string values of the dictionaries a module holds."""
    tree = _parse(path)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Dict):
            for value in node.values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield inspect.cleandoc(value.value)


def _parse(path: str) -> ast.Module | None:
    with open(path, "rb") as file:
        try:
            return ast.parse(file.read())
        except (SyntaxError, ValueError):
            return None


def _paragraphs(text: str) -> list[str]:
    """Joins the wrapped lines of each paragraph, without underlines of headings."""
    paragraphs: list[list[str]] = [[]]
    for line in map(str.strip, text.split("\n")):
        if not line:
            paragraphs.append([])
        elif any(map(str.isalnum, line)):
            paragraphs[-1].append(" ".join(line.split()))
    return [" ".join(lines) for lines in paragraphs if lines]
