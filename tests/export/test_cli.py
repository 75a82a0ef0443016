import subprocess
import sys
from pathlib import Path


def test_a_reader_that_has_enough_ends_a_command_quietly():
    command = [sys.executable, "-m", "export.cli", "bench", "--help"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as `head` does when it has its lines
        told = process.stderr.read()
    assert process.returncode == 0 and told == b""
