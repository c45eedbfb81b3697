"""Processes that get ready side by side, and then work one after the other.

A worker says with a line that it is ready, and answers each command with a line. What
else it prints goes to its log.
"""

import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: How a line begins that is an answer.
_ANSWER = "> "


def serve(commands):
    """Answers commands until the input ends, in a worker's process.

    Args:
        commands: Name -> function of the command's words, which returns the answer.
    """
    print(f"{_ANSWER}ready", flush=True)
    for line in sys.stdin:
        name, *words = line.split()
        print(f"{_ANSWER}{commands[name](*words)}", flush=True)


class Worker:
    """A worker, seen from outside.

    Args:
        module: The module that works, called as `python -m MODULE work ARGUMENTS`.
        arguments: Its arguments.
        log: The file for what it prints.
        environment: Further environment variables.
    """

    def __init__(self, module, arguments, log, environment=()):
        self.log = Path(log)
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "work", *map(str, arguments)],
            cwd=ROOT,
            env=os.environ | dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.log.open("w") as log:
            for line in self.process.stdout:
                if line.startswith(_ANSWER):
                    self._answers.put(line.removeprefix(_ANSWER).strip())
                else:
                    print(line, end="", file=log, flush=True)
        self._answers.put(None)

    def answer(self, seconds=None):
        """Returns the next answer; None if there is none in time, or the worker ends.

        Args:
            seconds: How long to wait; forever if not given.
        """
        if seconds is not None:
            seconds = max(seconds, 0)
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            return None
        if answer is None:  # It has ended, for whoever asks next, too.
            self._answers.put(None)
        return answer

    def ask(self, command, seconds=None):
        """Gives a command; returns what `answer` does."""
        try:
            print(command, file=self.process.stdin, flush=True)
        except OSError:  # It has ended.
            return None
        return self.answer(seconds)

    def end(self):
        """Ends the process, which gives its memory back."""
        self.process.kill()
        self.process.wait()

    @property
    def last_line(self):
        """The last line that it printed."""
        lines = self.log.read_text().strip().splitlines() if self.log.exists() else []
        return lines[-1] if lines else "It printed nothing."
