"""The pipeline's model; reads and validates pipelines/*.yaml."""

from validator.pipeline.find import find_pipelines, find_project, load_pipeline
from validator.pipeline.limits import Limits
from validator.pipeline.model import (
    STEPS_PAST_SAVE,
    Computation,
    Corpus,
    Device,
    Gate,
    Pipeline,
    Policy,
    Requirement,
    Save,
    SaveMode,
    Spec,
    TokenFiles,
)
from validator.pipeline.policy_changes import PolicyChange, policy_changes
from validator.pipeline.reading import read_pipeline
from validator.pipeline.suggest import suggest_waivers
from validator.pipeline.triggers import Triggers
from validator.pipeline.waivers import Finding, Sighting, Span, Waiver

__all__ = [
    "STEPS_PAST_SAVE",
    "Computation",
    "Corpus",
    "Device",
    "Finding",
    "Gate",
    "Limits",
    "Pipeline",
    "Policy",
    "PolicyChange",
    "Requirement",
    "Save",
    "SaveMode",
    "Sighting",
    "Span",
    "Spec",
    "TokenFiles",
    "Triggers",
    "Waiver",
    "find_pipelines",
    "find_project",
    "load_pipeline",
    "policy_changes",
    "read_pipeline",
    "suggest_waivers",
]
