"""System-change validation of bitwise-deterministic pretraining on NVIDIA Megatron Core."""

__version__ = "0.1.0"
