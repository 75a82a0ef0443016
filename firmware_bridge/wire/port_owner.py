"""Who already uses a serial port, by name: another program, a login console, the kernel's own console.

A lock keeps out only those who ask for it, and exclusive mode does not bind root, so everyone who has the
device open or was started on it is looked for, in what /proc shows to any user.
"""

from __future__ import annotations

import os
from pathlib import Path

PSEUDO_TERMINALS = "/dev/pts/"
_PROC = Path("/proc")


def users_of(path: str) -> list[str]:
    """Name each user of a serial device besides this process, as far as /proc shows.

    Args:
        path: the device.

    Returns:
        `process PID (name)` for each process that has it open or for its terminal, and the kernel's console.
        A pseudo-terminal has none: whoever made it keeps both of its ends open.
    """
    device = os.path.realpath(path)
    if device.startswith(PSEUDO_TERMINALS):
        return []
    try:
        number = os.stat(device).st_rdev
    except OSError:
        return []
    pids = sorted(int(entry.name) for entry in _PROC.glob("[0-9]*"))
    users = [
        _process_name(pid)
        for pid in pids
        if pid != os.getpid() and (_terminal_of(pid) == number or _has_open(pid, device))
    ]
    return users + ([_kernel_console(device)] if number in _console_numbers() else [])


def lock_owner(path: str) -> str:
    """Name the process that holds the lock on a device, from the inode in /proc/locks."""
    try:
        inode = str(os.stat(path).st_ino)
        lines = [line.split() for line in (_PROC / "locks").read_text().splitlines()]
    except OSError:
        return "another program"
    owners = [int(f[4]) for f in lines if len(f) > 5 and f[1] == "FLOCK" and f[5].split(":")[-1] == inode]
    return _process_name(owners[0]) if owners else "another program"


def _has_open(pid: int, device: str) -> bool:
    try:
        return any(os.path.realpath(link) == device for link in (_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return False  # it ended, or belongs to another user


def _terminal_of(pid: int) -> int:
    """Return the device number of a process' terminal, 0 for none; any user may see it, even root's."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        packed = int(fields[4])
    except (OSError, ValueError, IndexError):
        return 0  # it ended meanwhile
    return os.makedev(packed >> 8 & 0xFFF, packed & 0xFF | packed >> 12 & 0xFFF00)


def _console_numbers() -> set[int]:
    """Return the device numbers to which the kernel prints its messages."""
    try:
        lines = (_PROC / "consoles").read_text().splitlines()
    except OSError:
        return set()
    pairs = [line.split()[-1].split(":") for line in lines if ":" in line]
    return {os.makedev(int(major), int(minor)) for major, minor in pairs}


def _kernel_console(device: str) -> str:
    return f"the kernel's console (take `console={os.path.basename(device)}` off its command line, reboot)"


def _process_name(pid: int) -> str:
    try:
        return f"process {pid} ({(_PROC / str(pid) / 'comm').read_text().strip()})"
    except OSError:
        return f"process {pid}"
