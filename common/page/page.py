"""One HTML file with its style, script and data inside; it reads nothing from a disk or a network.

Its content comes from corpora, models and names that others chose, and cannot run code: text is escaped, data cannot
close its element, scripts make elements only through base.js, and the policy forbids all but this style and script.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template
from typing import Any

PAGE, STYLE, SCRIPT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.html", "base.css", "base.js")
)
ESCAPED = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&"})


def render_page(
    title: str, body: str, style: str, scripts: Iterable[str], data: Iterable[str], allowed: Iterable[str] = ()
) -> str:
    """Render a page. ``body`` is HTML from ``fill``, and ``data`` are elements from ``embed`` or ``embed_bytes``.

    ``style`` comes after base.css, and ``scripts`` after base.js, in one element each. ``allowed`` are further
    directives of the policy, such as ``worker-src blob:``.
    """
    style, script = STYLE + style, SCRIPT + "".join(scripts)
    policy = "; ".join([content_policy(style, script), *allowed])
    parts = {"policy": policy, "style": style, "body": body, "data": "\n".join(data), "script": script}
    return Template(PAGE).substitute(parts, title=safe(title))


def content_policy(style: str, script: str) -> str:
    """A policy that forbids everything except one style and one script, identified by their SHA-256."""
    digests = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in (style, script))
    allowed = "style-src 'sha256-{}'; script-src 'sha256-{}'".format(*digests)
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def fill(template: str, **texts: str) -> str:
    """Replace the names in an HTML template with texts, escaped."""
    return Template(template).substitute({name: safe(text) for name, text in texts.items()})


def safe(text: str) -> str:
    """Text as HTML; what UTF-8 lacks becomes a question mark."""
    return escape(text.encode("utf-8", "replace").decode())


def embed(name: str, value: Any) -> str:
    """A value as JSON in the element ``name``, for ``embedded(name)`` of base.js; ValueError for a NaN or infinity."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # in ASCII
    return f'<script type="application/json" id="{name}">{text.translate(ESCAPED)}</script>'


def embed_bytes(name: str, content: bytes) -> str:
    """Bytes as Base64 in the element ``name``."""
    text = base64.b64encode(content).decode()
    return f'<script type="application/octet-stream" id="{name}">{text}</script>'
