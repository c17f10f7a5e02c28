"""Who started what outlives a process, and whether they are gone."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

from validator.execute.docker_engine import tag_for, untag
from validator.execute.owner import Owner


def test_this_process_is_there() -> None:
    assert not Owner.current().is_gone


def test_a_process_that_ended_is_gone_and_a_zombie_too() -> None:
    code = "from validator.execute.owner import Owner; print(Owner.current().text)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        owner = Owner.parse(process.stdout.read().strip())
        assert owner is not None
        assert owner.process == process.pid
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # until it has ended, and leave it a zombie
        assert owner.is_gone
    assert owner.is_gone


def test_a_number_that_was_given_again_is_another_process() -> None:
    assert dataclasses.replace(Owner.current(), started=1).is_gone


def test_of_another_boot_is_gone_and_of_another_machine_may_live() -> None:
    own = Owner.current()
    assert dataclasses.replace(own, boot="earlier").is_gone
    assert not dataclasses.replace(own, host="elsewhere", process=2**22 + 1).is_gone
    assert not dataclasses.replace(own, namespace="1", process=2**22 + 1).is_gone


def test_its_text_and_its_tag_say_the_same() -> None:
    own = dataclasses.replace(Owner.current(), host="gpu_box-1.example.com")
    assert Owner.parse(own.text) == own
    assert Owner.parse(untag(tag_for(own, 12))) == own
    assert tag_for(own, 1) != tag_for(own, 2)
    assert Owner.parse("somebody") is None
    assert Owner.parse("a/b/c/d/e") is None
