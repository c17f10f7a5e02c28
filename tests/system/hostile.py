#!/usr/bin/python3
"""The interpreter of a hostile image: answers like a Python that has everything, and then does what ACT says.

Its standard error is the launch's log; a last line that begins with ``validator:`` is what a sentence is made from.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

LAUNCH = Path("/validator/launch")
RESULTS = LAUNCH / "trajectory"


def tell(sentence: str) -> None:
    print(f"validator: {sentence}.", file=sys.stderr, flush=True)
    sys.exit(1)


def write_everywhere() -> None:
    """Try every folder, every mount, and our own code; say where it went through."""
    places = ["/", "/etc", "/usr", "/root", "/home", "/var", "/run", "/proc/sys/kernel", "/sys/fs/cgroup", "/validator"]
    places += ["/validator/kit/validator", "/validator/kit/xxhash", "/dev"]
    written = []
    for place in places:
        try:
            (Path(place) / "mark").write_text("x")
            written.append(place)
        except OSError:
            pass
    for file in ("/validator/request.json", "/validator/kit/validator/__init__.py", "/etc/passwd"):
        try:
            with open(file, "a") as opened:
                opened.write("x")
            written.append(file)
        except OSError:
            pass
    uid = os.getuid()
    for what, attempt in {
        "became root": lambda: os.setuid(0),
        "mounted": lambda: subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True),
        "made a device": lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(8, 0)),
    }.items():
        try:
            attempt()
            written.append(what)
        except (OSError, subprocess.SubprocessError):
            pass
    seen = [name for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY") if name in os.environ]
    sockets = [path for path in ("/var/run/docker.sock", "/run/docker.sock") if os.path.exists(path)]
    tell(f"wrote {written}, saw {seen + sockets}, user {uid}")


def fork() -> None:
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def too_many() -> None:
    children = []
    while True:
        child = os.fork()
        if child == 0:
            time.sleep(60)
        children.append(child)


def memory() -> None:
    hoard = []
    while True:
        hoard.append(bytearray(64 << 20))


def sockets() -> None:
    reached = []
    for family, address in (
        (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("169.254.169.254", 80)),
        (socket.AF_INET, ("10.0.0.1", 22)), (socket.AF_INET, ("172.17.0.1", 2375)),
        (socket.AF_INET6, ("2606:4700:4700::1111", 53)),
    ):  # fmt: skip
        try:
            with socket.socket(family, socket.SOCK_STREAM) as opened:
                opened.settimeout(1)
                opened.connect(address)
                reached.append(address[0])
        except OSError:
            pass
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        reached.append("raw")
    except OSError:
        pass
    names = [name for _, name in socket.if_nameindex()]
    tell(f"reached {reached} through {names}")


def loud() -> None:
    noise = b"\x1b[2J\x1b]0;owned\x07\x9b31m\r" + b"x" * 4000 + b"\n"
    chunk = noise * 256
    for _ in range((1 << 30) // len(chunk) + 1):
        os.write(2, chunk)
    tell("\x1b[31mred\x1b[0m \u202egnirts")


def long_sentence() -> None:
    tell("x" * 200_000)


def line_feeds() -> None:
    os.write(2, b"\n" * (1 << 20))
    sys.exit(7)


def huge() -> None:
    with (LAUNCH / "data").open("wb") as file:
        while True:
            file.write(bytes(16 << 20))


def volume() -> None:
    """A folder that the image declares as a volume, filled with small files."""
    for number in range(1 << 20):
        (Path("/data") / f"{number}").write_bytes(bytes(8 << 20))


def larger_than_allowed() -> None:
    """One file beyond what the kernel lets it write."""
    with (LAUNCH / "sparse").open("wb") as file:
        file.truncate(1 << 45)


def many_files() -> None:
    for number in range(10**7):
        (LAUNCH / f"file-{number}").touch()


def sparse() -> None:
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "rank-00000.jsonl").open("wb") as file:
        file.truncate(900 << 20)
    time.sleep(60)


def sparse_samples() -> None:
    """Samples that take nothing here, and more than a launch may write where they are copied."""
    (RESULTS / "samples").mkdir(parents=True, exist_ok=True)
    for sample in json.loads(Path("/validator/request.json").read_text())["samples"]:
        stem = f"rank-{sample['rank']:05d}.{sample['moment'].replace(':', '-')}.{sample['group']}"
        with (RESULTS / "samples" / f"{stem}.bin").open("wb") as file:
            file.truncate(200 << 20)
    sys.exit(0)


def header(rank: int = 0) -> str:
    about = {"schema": "validator/rank", "version": 1, "algorithm": "xxh3-128/1", "rank": rank, "world_size": 2}
    return json.dumps(about) + "\n"


def malformed() -> None:
    RESULTS.mkdir(exist_ok=True)
    for rank in range(2):
        (RESULTS / f"rank-{rank:05d}.jsonl").write_text(header(rank) + "[" * 200_000 + "\n")
    sys.exit(0)


def claims() -> None:
    """Nothing but claims, and those deep."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "claims.json").write_text('{"a":' * 100_000)
    sys.exit(0)


def wrong_types() -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "claims.json").write_text('{"packages": ["\\u001b[31m"], "python": {"a": 1}}')
    sys.exit(0)


def link() -> None:
    RESULTS.mkdir(exist_ok=True)
    for rank in range(2):
        (RESULTS / f"rank-{rank:05d}.jsonl").symlink_to("/etc/shadow")
    time.sleep(60)


def folder_link() -> None:
    if RESULTS.exists():
        RESULTS.rmdir()
    RESULTS.symlink_to("/etc")
    time.sleep(60)


def pipe() -> None:
    RESULTS.mkdir(exist_ok=True)
    os.mkfifo(RESULTS / "rank-00000.jsonl")
    time.sleep(60)


def tracker_link() -> None:
    (LAUNCH / "checkpoints" / "latest_checkpointed_iteration.txt").symlink_to("/dev/zero")
    never()


def deep() -> None:
    os.chdir(LAUNCH)
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    time.sleep(60)


def closed() -> None:
    """Folders that nobody may look into, left behind."""
    (LAUNCH / "a" / "b").mkdir(parents=True)
    (LAUNCH / "a" / "b" / "file").touch()
    (LAUNCH / "a" / "b").chmod(0)
    (LAUNCH / "a").chmod(0)
    tell("left a closed folder behind")


def dark() -> None:
    """A folder that can be written to and not looked into, filled without end."""
    folder = LAUNCH / "dark"
    folder.mkdir()
    folder.chmod(0o300)
    for number in range(64):
        (folder / f"{number}").write_bytes(bytes(64 << 20))
    never()


def never() -> None:
    os.close(1)
    os.close(2)
    while True:
        time.sleep(60)


def main() -> None:
    if sys.argv[1:2] == ["-c"]:
        packages = dict.fromkeys(sys.argv[3:], "99.0")
        print(json.dumps({"version": [3, 12, 1], "tag": "cpython-312", "packages": packages}))
        return
    globals()[os.environ["ACT"]]()


if __name__ == "__main__":
    main()
