"""GitHub's published OpenAPI description: judges requests, and gives complete answers to fill in."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest

FILE = Path(__file__).parents[1] / "openapi" / "api.json"
_REF = re.compile(r"(.*/(?:git/refs?|contents)/)(.+)")


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


@cache
def _openapi() -> OpenAPI:
    return OpenAPI.from_dict(_content(), config=Config(spec_validator_cls=None))


def problem_of(method: str, path: str, arguments: dict[str, str], body: bytes) -> str | None:
    """Why GitHub would not take the request, by its description; ``None`` where it would."""
    match = _REF.fullmatch(path)
    if match:
        path = match[1] + match[2].replace("/", "%2F")  # a branch has slashes, and a path parameter none
    request = MockRequest(
        "https://api.github.com", method.lower(), path, args=arguments, data=body or None,
        content_type="application/json",
    )  # fmt: skip
    try:
        _openapi().validate_request(request)
    except OpenAPIError as error:
        reasons = [f"{each.validator}: {each.message[:300]}" for each in getattr(error.__cause__, "schema_errors", ())]
        return f"{type(error).__name__}: {'; '.join(reasons) or error}"[:2000]
    return None


def complete(operation: tuple[str, str], status: str = "200", **values: Any) -> dict[str, Any]:
    """An answer with everything that the description requires, and ``values`` in place of what it makes up."""
    path, method = operation
    schema = _content()["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"]
    made = _skeleton(schema)
    if isinstance(made, list):
        made = _skeleton(_resolved(schema)["items"])
    return {**made, **values}


def _skeleton(schema: dict[str, Any], depth: int = 0) -> Any:
    schema = _resolved(schema)
    if schema.get("nullable") or depth > 12:
        return None
    for word in ("oneOf", "anyOf"):
        if word in schema and "properties" not in schema:
            return _skeleton(schema[word][0], depth + 1)
    if "allOf" in schema:
        return _skeleton(schema["allOf"][0], depth + 1)
    if "enum" in schema:
        return schema["enum"][0]
    if "example" in schema and schema.get("type") in {"string", "integer"}:
        return schema["example"]
    kind = schema.get("type", "object")
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: _skeleton(properties[name], depth + 1) for name in schema.get("required", ()) if name in properties
        }
    return {"array": [], "string": "", "integer": 1, "number": 1, "boolean": False}[kind]


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        kind, name = schema["$ref"].split("/")[2:4]
        schema = _content()["components"][kind][name]
    return schema
