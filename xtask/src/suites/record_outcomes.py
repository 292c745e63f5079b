"""A pytest plugin: writes each test's outcome as a line of JSON, at once.

A line without an outcome says that the test began, so the test that ended the process is known.
Tests that the file names already do not run again.  A test that loses the device ends the process
with the exit code 86, since every other test would fail after it.
"""

import json
import os

_file = open(os.environ["CUDA_SUITES_OUTCOMES"], "a+", encoding="utf-8")
_file.seek(0)
_begun = {json.loads(line)["test"] for line in _file}
_worst = {}
_LOSSES = ("ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "LAUNCH_FAILED", "ERROR_ASSERT")


def _write(line):
    _file.write(json.dumps(line) + "\n")
    _file.flush()


def _reason(report):
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr)


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.nodeid not in _begun]


def pytest_collectreport(report):
    if report.failed:
        _write({"test": report.nodeid, "outcome": "failed", "reason": str(report.longrepr)})
    elif report.skipped:
        _write({"test": report.nodeid, "outcome": "skipped", "reason": _reason(report)})


def pytest_runtest_logstart(nodeid):
    _write({"test": nodeid})
    _worst[nodeid] = ("passed", "")


def pytest_runtest_logreport(report):
    if report.failed:
        _worst[report.nodeid] = ("failed", _reason(report))
    elif report.skipped and _worst[report.nodeid][0] == "passed":
        reason = getattr(report, "wasxfail", "") or _reason(report)
        _worst[report.nodeid] = ("skipped", reason)


def pytest_runtest_logfinish(nodeid):
    outcome, reason = _worst.pop(nodeid)
    _write({"test": nodeid, "outcome": outcome, "reason": reason})
    if outcome == "failed" and any(loss in reason for loss in _LOSSES):
        os._exit(86)
