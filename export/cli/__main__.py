"""`python -m export.cli` is `microduck`."""

import sys

from export.cli import main

sys.exit(main())
