# SPDX-License-Identifier: Apache-2.0
"""Hands tests over to a second pytest in a process of its own, and its reports back, one by one, as if they were run here.

`Outside` and `Inside` are plugins of the two: a name goes one way, reports come back, and a null when the test is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "PINZK_RELAY"  # the second process's ends of the pipes


class Outside:
    """Runs every test below `folder` in the second process, started with the first of them.

    Parameters
    ----------
    config : Config
    folder : Path
    environment : dict
        Added to the second process's.
    """

    def __init__(self, config: pytest.Config, folder: Path, environment: dict[str, str]) -> None:
        self.config, self.folder, self.environment = config, folder, environment
        self.other: _Process | None = None
        self.unable = ""  # why there is none, and will be none

    def ours(self, item: pytest.Item | None) -> bool:
        return item is not None and self.folder in item.path.parents

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.config.pluginmanager.hasplugin("timeout"):
            for item in filter(self.ours, items):
                item.add_marker(pytest.mark.timeout(0))  # the other process has its own

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not self.ours(item):
            return None
        if self.other is None and not self.unable:
            self.other = _Process(self.config, self.folder, self.environment)
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            if self.other is None:
                raise EOFError(self.unable)
            following = nextitem.nodeid if nextitem is not None and self.ours(nextitem) else None
            for data in self.other.run(item.nodeid, following):
                report = self.config.hook.pytest_report_from_serializable(config=self.config, data=data)
                if isinstance(report.longrepr, list):  # of a skip: JSON has no tuples
                    report.longrepr = tuple(report.longrepr)
                hook.pytest_runtest_logreport(report=report)
        except EOFError as error:
            if self.other is not None and not self.other.answered:
                self.unable = str(error)
            self.other = None
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", str(error), "call")
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_sessionfinish(self) -> None:
        if self.other is not None:
            self.other.close()
            self.other = None


class _Process:
    """The second pytest."""

    def __init__(self, config: pytest.Config, folder: Path, environment: dict[str, str]) -> None:
        self.answered = False  # anything yet
        asked, ask = os.pipe()
        answers, answer = os.pipe()
        with contextlib.ExitStack() as stack:
            self._ask = stack.enter_context(open(ask, "w", encoding="utf-8", buffering=1))
            self._answers = stack.enter_context(open(answers, encoding="utf-8"))
            self._output = stack.enter_context(tempfile.TemporaryFile())
            command = [sys.executable, "-P", "-m", "pytest", str(folder), "-p", "no:cacheprovider"]
            if config.pluginmanager.hasplugin("timeout"):
                # a test that never ends leaves no way to end it alone
                limit = config.getoption("timeout", None) or 120
                command += [f"--timeout={limit}", "--timeout-method=thread"]
            self._process = subprocess.Popen(
                [*command, "--color=no", "-p", "no:xdist"],
                cwd=config.rootpath,
                env={**os.environ, **environment, VARIABLE: f"{asked} {answer}"},
                pass_fds=(asked, answer),
                stdout=self._output,
                stderr=subprocess.STDOUT,
            )
            os.close(asked)
            os.close(answer)
            self._files = stack.pop_all()

    def run(self, name: str, following: str | None) -> Iterator[dict[str, Any]]:
        """Reports of one test."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps([name, following]), file=self._ask)
        for line in self._answers:
            data, self.answered = json.loads(line), True
            if data is None:
                return
            yield data
        code = self._process.wait()
        self._output.seek(0)
        said = self._output.read().decode(errors="replace")[-6000:]
        self._files.close()
        raise EOFError(f"the process of this test ended with {code}:\n{said}")

    def close(self) -> None:
        self._ask.close()
        self._process.wait()
        self._files.close()


class Inside:
    """Runs the tests that it is told, in the second process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        asked, answer = os.environ.pop(VARIABLE).split()
        self._asked, self._answer = int(asked), int(answer)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items: dict[str | None, pytest.Item] = {item.nodeid: item for item in session.items}
        with open(self._asked, encoding="utf-8") as names:
            for line in names:
                name, following = json.loads(line)
                item = items[name]
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=items.get(following))
                self._tell(None)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def _tell(self, data: dict[str, Any] | None) -> None:
        line = json.dumps(data).encode() + b"\n"
        while line:
            line = line[os.write(self._answer, line) :]
