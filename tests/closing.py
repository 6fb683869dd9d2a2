"""How a run of tests ends: pytest's line with the counts, and below it the names of what failed, if anything did."""

from __future__ import annotations

import pytest

CUT_SHORT = "scrubjay/cut_short"  # a process of tests died, and what it had not run was not run


def pytest_unconfigure(config: pytest.Config) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    for outcome in ("failed", "error"):
        for report in reporter.stats.get(outcome, ()):
            reporter.write_line(f"{outcome.upper()} {report.nodeid}{reason(report)}")
    if getattr(config, "cache", None) is not None:  # `-p no:cacheprovider` leaves none
        failed = [report for outcome in ("failed", "error") for report in reporter.stats.get(outcome, ())]
        config.cache.set(CUT_SHORT, any("crashed while running" in str(report.longrepr) for report in failed))


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = crash.message.splitlines() if crash else []
    return f" - {lines[0][:100]}" if lines else ""
