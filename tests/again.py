"""Run once more, one after the other, the few tests that failed in the last run: `make test-again`.

Fifteen thousand tests start servers, browsers and databases, and one of them may meet a bad moment of its machine. CI
tries again before it refuses a change for it. What passes only then is named: the chance in it is a fault to be mended.
A run with more failures, or one that a dying process cut short, is not tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.closing import CUT_SHORT

MOST = 3
AGAIN = ["-m", "pytest", "--last-failed", "--last-failed-no-failures=none"]


def main() -> int:
    failed = list(read_cache("cache/lastfailed") or ())
    if not failed or len(failed) > MOST or read_cache(CUT_SHORT) is not False:
        print(f"{len(failed)} failed tests; not run again", flush=True)
        return 1
    code = subprocess.run([sys.executable, *AGAIN], check=False).returncode
    for test in failed if code == 0 else ():
        print(f"PASSED ONLY WHEN RUN AGAIN: {test}", flush=True)
    return code


def read_cache(name: str) -> Any:
    """What the last run wrote into pytest's cache; None if it wrote nothing."""
    place = Path(".pytest_cache/v", name)
    return json.loads(place.read_text(encoding="utf-8")) if place.exists() else None


if __name__ == "__main__":
    sys.exit(main())
