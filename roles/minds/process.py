"""One run of somebody else's command line: clean environment, deadline, nothing left afterwards, no key on disk."""

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

MAX_FILE = 1 << 30  # bytes of any file that the command writes, its transcript included
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True)
class Ended:
    """How a run ended: ``status`` is None when it was killed at its deadline."""

    status: int | None
    transcript: str


def run_command(
    words: tuple[str, ...],
    folder: Path,
    text: str,
    extra: Mapping[str, str],
    keys: tuple[str, ...],
    seconds: float,
    transcript: Path,
) -> Ended:
    """Run ``words`` in ``folder`` with ``text`` on stdin. It sees the environment variables named in ``keys`` and
    those of ``extra`` beside a plain few. Values of the keys are struck from its transcript."""
    secrets = {name: os.environ[name] for name in keys if name in os.environ}
    plain = {name: os.environ[name] for name in _PASSED if name in os.environ}
    transcript.parent.mkdir(parents=True, exist_ok=True)
    with transcript.open("wb") as log:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**plain, **extra, **secrets},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
        status: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(text.encode(), timeout=seconds)
                status = process.returncode
        finally:
            _end(process)
    return Ended(status, _strike(transcript, list(secrets.values())))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the command's process group, and whatever of its descendants can still be found, and reap it."""
    left: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        left = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in left:
        with contextlib.suppress(psutil.Error):
            child.kill()
    process.wait()


def _strike(transcript: Path, secrets: list[str]) -> str:
    text = transcript.read_text(errors="replace")
    if any(secret and secret in text for secret in secrets):
        for secret in filter(None, secrets):
            text = text.replace(secret, "[key]")
        transcript.write_text(text)
    return text
