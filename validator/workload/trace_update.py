"""The optimizer's update in a trace: for each parameter shard of this rank what it was given and what it became."""

from __future__ import annotations

from torch import Tensor

from validator.trajectory.groups import Group
from validator.workload.digests import plain_torch
from validator.workload.state import TrainingState
from validator.workload.trace_events import Call, Digests, TraceWriter, digest, leaf, source_of_class


class Update:
    """One call of the optimizer's ``step``."""

    def __init__(self, writer: TraceWriter, state: TrainingState, call: Call) -> None:
        self.call = call
        self._writer = writer
        self._state = state
        groups = (Group.GRADIENTS, Group.MAIN_PARAMETERS, Group.OPTIMIZER)
        with plain_torch():
            call.inputs = {f"{group}/{found.name}": leaf(found) for group in groups for found in state.leaves(group)}

    def finish(self) -> None:
        """The step has returned."""
        settings = {name: value for name, value in self.call.inputs.items() if name.startswith("optimizer/optimizer")}
        every: Digests = {}
        for name, shard in self._state.shards():
            tensors: dict[str, Tensor] = {f"main_parameters/{name}": shard.main, f"parameters/{name}": shard.shard}
            tensors |= {
                f"optimizer/{name}/{key}": value for key, value in shard.state.items() if isinstance(value, Tensor)
            }
            outputs = {where: digest(tensor) for where, tensor in tensors.items()}
            own = {f"gradients/{name}", f"main_parameters/{name}"}
            inputs = {
                where: value
                for where, value in self.call.inputs.items()
                if where in own or where.startswith(f"optimizer/{name}/")
            }
            every |= outputs
            self._writer.event(
                "optimizer", None, inputs | settings, outputs, name=name, module=name.rpartition(".")[0],
                source=source_of_class(type(shard.optimizer), "step"), parent=self.call,
            )  # fmt: skip
        whole = source_of_class(type(self._state.optimizer), "step")
        self._writer.event("optimizer", self.call, self.call.inputs, every, source=whole)
