#!/usr/bin/env python3
"""run_tests.py <build folder> [ctest option...]: runs ctest there, then prints
'N passed, N failed' over the cases of GoogleTest, of lit and of other tests.

ctest.xml lists the tests that ctest ran. A test that wrote cases/<test>.xml
(GoogleTest, lit) counts as its cases, any other test as one case. A test
without such a file counts as skipped if its exit code says so. A test that
failed or could not be run, but whose report shows no failure, adds one failure,
so that a failed run never counts as passed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]


def outcome(case):
    """Returns 'failed', 'skipped' or 'passed' for a GoogleTest or lit <testcase>."""
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        return "failed"
    if "skipped" in kinds or case.get("status") == "notrun":  # a DISABLED_ test
        return "skipped"
    return "passed"


def verdict_of(entry):
    """Returns the verdict of a ctest <testcase>.

    The status 'notrun' counts as failed unless the exit code means skipped.
    """
    skipped = entry.find("skipped")
    if skipped is not None and "SKIP_RETURN_CODE" in skipped.get("message", ""):
        return "skipped"
    return "passed" if entry.get("status") == "run" else "failed"


def count(reports):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for entry in xml.parse(reports / "ctest.xml").iter("testcase"):
        verdict = verdict_of(entry)
        detail = reports / "cases" / (entry.get("name") + ".xml")
        try:
            cases = [outcome(c) for c in xml.parse(detail).iter("testcase")]
        except (OSError, xml.ParseError):
            cases = []
        if verdict == "failed" and "failed" not in cases:
            cases.append("failed")
        for case in cases or [verdict]:
            counts[case] += 1
    return counts


def main():
    os.chdir(ROOT)
    build = pathlib.Path(sys.argv[1]).resolve(strict=True)
    reports = build / "test-reports"
    shutil.rmtree(reports, ignore_errors=True)
    (reports / "cases").mkdir(parents=True)
    jobs = os.environ.get("JOBS") or str(len(os.sched_getaffinity(0)))
    status = subprocess.run(
        ["ctest", "--test-dir", build, "--parallel", jobs,
         "--output-on-failure", "--progress", "--no-tests=error",
         "--output-junit", reports / "ctest.xml", *sys.argv[2:]],
        check=False).returncode
    try:
        counts = count(reports)
    except (OSError, xml.ParseError) as error:
        print(f"run_tests: {error}", file=sys.stderr)
        counts = {"passed": 0, "failed": 1, "skipped": 0}
    if counts["skipped"]:
        print(f"{counts['skipped']} skipped")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else status


if __name__ == "__main__":
    sys.exit(main())
