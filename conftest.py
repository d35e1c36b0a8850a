"""Examples in the documentation may write files: each document is run in a folder of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder_of_its_own(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run documents, and no other tests, in a temporary folder."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
