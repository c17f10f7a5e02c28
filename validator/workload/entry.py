"""What ``torchrun … -m validator.workload.entry REQUEST.json`` runs on every rank.

Not a ``__main__`` module: processes that Megatron spawns import a main module again only under another name.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(request_file: Path) -> int:
    """Run one launch; returns the exit code. A user's mistake is one line on standard error that begins with
    ``validator:``.
    """
    from validator.errors import LaunchError, ValidatorError
    from validator.execute.request import LaunchRequest
    from validator.workload import launch

    try:
        launch.run(LaunchRequest.read(request_file))
    except ValidatorError as error:
        print(f"validator: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except ImportError as error:
        from validator.workload.megatron_internals.versions import missing_here

        sentence = missing_here(error)
        if not sentence:
            raise
        print(f"validator: {sentence}", file=sys.stderr, flush=True)
        return LaunchError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
elif __name__ == "__mp_main__":
    # A checkpoint writer, which Megatron starts as a process of its own: it needs the same device.
    from validator.workload.launch import prepare_device

    prepare_device(None)
