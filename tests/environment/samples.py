"""A launch's claims and a host, as tests need them."""

from __future__ import annotations

from validator.environment import Gpu, Host

HOST = Host(
    architecture="x86_64",
    cpu_model="AMD EPYC 9654",
    cpu_level="x86-64-v4",
    cpus=2,
    memory_gibibytes=24,
    kernel="Linux 6.1.0",
    libc="glibc 2.36",
    gpus=(),
)

H200 = Gpu("NVIDIA H200", "580.65.06", "9.0", "143771")

CLAIMS: dict[str, object] = {
    "python": "3.12.1",
    "packages": {"torch": "2.14.1", "megatron-core": "0.19.2", "psutil": "7.2.2"},
    "megatron": {"version": "0.19.2", "commit": None},
    "arguments": {
        "hidden_size": 64,
        "moe_aux_loss_coeff": 1e-4,
        "log_interval": 1,
        "data_path": ["/a/b"],
        "tie": False,
    },
    "variables": {"ATEN_CPU_CAPABILITY": "default", "HOME": "/home/x", "GLOO_SOCKET_IFNAME": "lo"},
    "torch": {"threads": 1, "deterministic": True, "cuda": None},
    "workload_digest": "ab" * 32,
}

COMPUTATION: dict[str, object] = {
    "device": "cpu",
    "steps": 10,
    "data": {"corpus": {"documents": 200, "vocabulary": 512, "seed": 7}},
    "arguments": ["--x"],
    "variables": {"A": "b"},
}
