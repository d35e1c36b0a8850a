"""Ctrl-C and SIGTERM: the first one stops a run and keeps what it has."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that stop a run and keep what it has."""


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Let the first ctrl-C or SIGTERM set an event, and a second one interrupt at once.

    Only the main thread can do so. A signal that is ignored, as SIGHUP under `nohup`, stays ignored.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    handlers = {number: signal.getsignal(number) for number in STOPPING}
    before = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}

    def ask(signum: int, frame: Any) -> None:
        asked.set()
        for number, handler in before.items():
            signal.signal(number, signal.default_int_handler if handler is signal.SIG_DFL else handler)

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
