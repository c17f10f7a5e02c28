"""The pipeline's model; reads and validates pipelines/*.yaml."""

from validator.pipeline.find import find_pipelines, load_pipeline
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
from validator.pipeline.suggest import suggest_waivers
from validator.pipeline.waivers import Finding, Sighting, Span, Waiver

__all__ = [
    "STEPS_PAST_SAVE",
    "Computation",
    "Corpus",
    "Device",
    "Finding",
    "Gate",
    "Pipeline",
    "Policy",
    "Requirement",
    "Save",
    "SaveMode",
    "Sighting",
    "Span",
    "Spec",
    "TokenFiles",
    "Waiver",
    "find_pipelines",
    "load_pipeline",
    "suggest_waivers",
]
