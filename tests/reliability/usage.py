"""What a process needs of the machine, read from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass
class Usage:
    memory: int  # bytes that are resident
    threads: int
    files: int
    cpu: float  # milliseconds since its start


def usage(pid: int) -> Usage:
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text(encoding="ascii").splitlines())
    fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return Usage(
        memory=int(status["VmRSS"].split()[0]) * 1024,
        threads=int(status["Threads"]),
        files=len(list((process / "fd").iterdir())),
        cpu=(int(fields[11]) + int(fields[12])) * 1000 / TICKS,
    )
