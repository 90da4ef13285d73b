"""A comparison as one HTML file that needs no network: a drawing of the differences, then every table."""

from html import escape
from importlib.resources import files
from string import Template

from common.text import visible
from common.text_table import as_html
from evaluation.comparison.compare import Comparison
from evaluation.comparison.tables import tables_of

WIDTH, ROW, EDGE = 640, 44, 30  # in pixels: the scale, a row with a name above its dot, and room for its numbers


def as_page(comparison: Comparison) -> str:
    page = Template(files("evaluation.comparison").joinpath("page.html").read_text(encoding="utf-8"))
    tables = "".join(map(as_html, tables_of(comparison)))
    base = escape(visible(comparison.systems[0]))
    return page.substitute(base=base, drawing=draw(comparison), tables=tables)


def draw(comparison: Comparison) -> str:
    """The BLEU differences as SVG: a name above a dot, with its intervals by sentences, thick, and by seeds, thin."""
    found = [against.bleu for against in comparison.against]
    intervals = [interval for each in found for interval in (each.interval, each.seed_interval) if interval]
    most = max(max(abs(interval.low), abs(interval.high)) for interval in intervals) or 1.0
    height = ROW * len(found) + 26

    def x(difference: float) -> float:
        return EDGE + WIDTH / 2 * (1 + difference / most)

    lines = [f'<line x1="{x(0.0):.1f}" x2="{x(0.0):.1f}" y1="0" y2="{height - 26}" class="zero"/>']
    for row, (against, each) in enumerate(zip(comparison.against, found, strict=True)):
        y = ROW * row + 30
        lines.append(f'<text x="0" y="{y - 14}">{escape(visible(against.name))}</text>')
        for interval, kind in ((each.seed_interval, "seeds"), (each.interval, "sentences")):
            if interval:
                ends = f'x1="{x(interval.low):.1f}" x2="{x(interval.high):.1f}"'
                lines.append(f'<line {ends} y1="{y}" y2="{y}" class="{kind}"/>')
        lines.append(f'<circle cx="{x(each.difference):.1f}" cy="{y}" r="5"/>')
    for value in (-most, 0.0, most):
        lines.append(f'<text x="{x(value):.1f}" y="{height - 6}" text-anchor="middle">{value:+.2f}</text>')
    size = f'viewBox="0 0 {WIDTH + 2 * EDGE} {height}" width="{WIDTH + 2 * EDGE}"'
    return f'<svg {size} role="img" aria-label="differences of BLEU">\n' + "\n".join(lines) + "\n</svg>"
