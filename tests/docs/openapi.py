"""An OpenAPI document as the tests need it: references resolved, and responses checked against it, strictly."""

import json
import pathlib

import jsonschema
import yaml

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


def resolve(document, reference):
    """What `#/a/b` names. Raises KeyError if there is nothing."""
    node = document
    for part in reference.removeprefix("#/").split("/"):
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def inlined(document, node):
    """The node with every reference replaced by what it names."""
    if isinstance(node, list):
        return [inlined(document, item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return inlined(document, resolve(document, node["$ref"]))
    return {key: inlined(document, value) for key, value in node.items()}


def strict(schema, closed=True):
    """The schema without room for fields that it does not name. `closed`: false inside an allOf, whose parts are closed together."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: [strict(part, False) for part in value] if key == "allOf" else
           {name: strict(part) for name, part in value.items()} if key == "properties" else
           strict(value) if key in ("items", "additionalProperties", "anyOf", "oneOf") else value
           for key, value in schema.items()}
    if closed and ("properties" in out or "allOf" in out) and "additionalProperties" not in out:
        out["unevaluatedProperties"] = False
    return out


class Document:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.raw = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        self.whole = inlined(self.raw, self.raw)

    def operations(self):
        """(METHOD, path, operation) of every documented call."""
        for path, item in self.whole["paths"].items():
            for method, operation in item.items():
                if method in METHODS:
                    yield method.upper(), path, operation

    def statuses(self):
        """Every documented (METHOD, path, status); `default` stands for whatever else can go wrong."""
        return {(method, path, int(status)) for method, path, operation in self.operations()
                for status in operation["responses"] if status != "default"}

    def complaint(self, method, path, status, content_type, content):
        """What a response has that the document does not; None if nothing."""
        operation = self.whole["paths"][path][method.lower()]
        response = operation["responses"].get(str(status))
        if response is None:
            return f"status {status} is not documented"
        kinds = response.get("content", {})
        if not content:
            return f"no content; documented is {list(kinds)}" if kinds and status != 403 else None
        kind = (content_type or "").split(";")[0]
        if kind not in kinds:
            return f"content type {content_type!r} is not documented; those are {list(kinds)}"
        schema = strict(kinds[kind]["schema"])
        value = json.loads(content) if kind.endswith("json") else content
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
        return "; ".join(f"{error.json_path}: {error.message}" for error in errors) + f" in {content}" if errors else None
