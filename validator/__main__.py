"""``python -m validator``: the same as the command ``validator``."""

from __future__ import annotations

import sys

from validator.cli import main

if __name__ == "__main__":
    sys.exit(main())
