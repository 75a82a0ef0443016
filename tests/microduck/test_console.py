"""What a user of `microduck` sees where the system refuses something."""

import os
import subprocess
import sys


def test_a_full_disk_at_standard_output_is_told_in_a_line():
    done = subprocess.run(
        [sys.executable, "-m", "export.cli", "virtual-duck", "--seconds", "0.05"],
        stdout=os.open("/dev/full", os.O_WRONLY),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device; --debug shows where it came from\n"


def test_a_virtual_duck_lives_on_when_nobody_reads_what_it_tells():
    end, output = os.pipe()
    os.close(end)
    done = subprocess.run(
        [sys.executable, "-m", "export.cli", "virtual-duck", "--seconds", "0.05"],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
