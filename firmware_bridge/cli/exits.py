"""Exit codes of the `duck` command."""

from __future__ import annotations

EXIT_CODES = """exit codes:
  0        ended as asked: --seconds are over, the script has ended, `duck stop`, or a key
  1        refused before anything moved, or an error
  2        the command line is not valid
  3        the duck fell, or was about to; it is limp
  4        fault: bus or policy lost, a loop that stood still, a servo too hot, blocked or
           restarted, an empty battery
  128 + N  stopped by signal N, for example 130 by Ctrl-C
"""
EXIT_OK, EXIT_ERROR, EXIT_FALLEN, EXIT_FAULT, EXIT_SIGNAL = 0, 1, 3, 4, 128
