"""Pages of the site that are generated from other files: the changelog and the examples."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
ELSEWHERE = {
    r"\.\./examples/(\w+)\.py": r"examples.md#\1",
    r"\.\./examples/?(?=\))": "examples.md",
    r"\.\./CHANGELOG\.md": "changelog.md",
    r"\.\./README\.md": "index.md",
}
"""Links of the pages to files outside this folder, and what they are in the site."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from other files of the project."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=changelog))
    files.append(File.generated(config, "examples.md", content=examples_page()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Point links to files outside this folder at their pages in the site."""
    for pattern, page in ELSEWHERE.items():
        markdown = re.sub(rf"(?<=\]\(){pattern}", page, markdown)
    return markdown


def examples_page() -> str:
    """Return a page with every script of the folder `examples`."""
    folder = ROOT / "examples"
    parts = [
        "# Examples\n\nAll files of the folder `examples`, in full. Run a script with `python examples/NAME.py`.\n"
    ]
    for script in sorted(folder.glob("*.py")):
        source = script.read_text(encoding="utf-8")
        parts.append(f"## {script.name} {{#{script.stem}}}\n\n```python\n{source}```\n")
    return "\n".join(parts)
