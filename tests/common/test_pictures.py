"""Pictures are the same under other people's settings, and letters come from whatever font has them."""

from matplotlib.font_manager import findfont, fontManager, get_font

from common.pictures import Figure, fonts_for, picture
from tests.processes import run_code

DRAW = """
import hashlib, os
from common.pictures import Figure, picture
def draw():
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([1, 2], [3, 4])
    figure.text(0, 0, "x_1 Ñ")
    return figure
print([hashlib.sha256(picture(draw, form)).hexdigest() for form in ("png", "svg", "pdf")], os.environ.get("MPLBACKEND"))
"""


def test_settings_for_other_work_change_no_byte(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 9\nfont.family: monospace\n")
    seen = set()
    for backend, settings in ((None, {}), ("module://not_here.backend", {}), ("agg", {"MPLCONFIGDIR": str(tmp_path)})):
        done = run_code(DRAW, **settings | ({"MPLBACKEND": backend} if backend else {}))
        assert done.returncode == 0, done.stderr
        digests, _, left = done.stdout.strip().rpartition(" ")
        assert left == str(backend)
        seen.add(digests)
    assert len(seen) == 1


def text(letters: str) -> bytes:
    def draw() -> Figure:
        figure = Figure(figsize=(1, 1))
        figure.text(0, 0, letters)
        return figure

    return picture(draw, "png", letters)


def test_letters_that_the_usual_font_lacks_come_from_one_that_has_them(capsys):
    known = get_font(findfont("DejaVu Sans")).get_charmap()
    stix = get_font(next(font.fname for font in fontManager.ttflist if font.name == "STIXGeneral")).get_charmap()
    one, other = [chr(code) for code in stix if code not in known and chr(code).isprintable()][:2]
    assert fonts_for("Año Ωж") == ["DejaVu Sans"]
    assert fonts_for(f"a{one}{other}")[0] == "DejaVu Sans" and len(fonts_for(f"a{one}{other}")) == 2
    assert text(one) != text(other)  # no boxes
    assert capsys.readouterr().err == ""


def test_a_letter_that_no_font_has_is_a_box_with_a_note(capsys):
    letter = next(chr(code) for code in range(0x12000, 0x12400) if len(fonts_for(chr(code))) == 1)
    capsys.readouterr()
    assert text(letter)
    assert capsys.readouterr().err == f"note: no font here has {letter}: the picture has boxes instead\n"
