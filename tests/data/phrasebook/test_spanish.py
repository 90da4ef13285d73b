"""Spanish morphology against forms written down by hand, and against an independent table of 60 verbs."""

from pathlib import Path

import pytest

from data.phrasebook import spanish
from data.phrasebook.spanish import EL, ELLOS, NOSOTROS, TU, YO

TABLE = Path(__file__).with_name("conjugations.tsv")


def rows():
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    return [(row[0], row[1], [form for form in row[2:] if form]) for row in (line.split("\t") for line in lines)]


@pytest.mark.parametrize(("infinitive", "tense", "forms"), rows())
def test_independent_table(infinitive, tense, forms):
    if tense == "participle":
        assert [spanish.participle(infinitive)] == forms
    elif tense == "gerund":
        assert [spanish.gerund(infinitive)] == forms
    elif tense == "imperative_tú":
        assert [spanish.command(infinitive)] == forms
    else:
        assert list(spanish.paradigm(infinitive, tense)) == forms


@pytest.mark.parametrize(
    ("infinitive", "tense", "slot", "form"),
    [
        # spelling keeps the sound
        ("buscar", "preterite", YO, "busqué"),
        ("llegar", "preterite", YO, "llegué"),
        ("empezar", "preterite", YO, "empecé"),
        ("empezar", "present", YO, "empiezo"),
        ("recoger", "present", YO, "recojo"),
        ("elegir", "present", YO, "elijo"),
        ("seguir", "present", YO, "sigo"),
        ("conocer", "subjunctive", TU, "conozcas"),
        # stems that change
        ("dormir", "preterite", EL, "durmió"),
        ("pedir", "preterite", ELLOS, "pidieron"),
        ("dormir", "preterite", NOSOTROS, "dormimos"),
        ("jugar", "present", ELLOS, "juegan"),
        ("regar", "present", TU, "riegas"),
        ("regar", "preterite", YO, "regué"),
        ("colgar", "subjunctive", TU, "cuelgues"),
        ("medir", "present", YO, "mido"),
        ("corregir", "present", YO, "corrijo"),
        # y between vowels, and the accent of the hiatus
        ("leer", "preterite", EL, "leyó"),
        ("leer", "preterite", TU, "leíste"),
        ("construir", "present", EL, "construye"),
        ("construir", "preterite", TU, "construiste"),
        ("destruir", "preterite", ELLOS, "destruyeron"),
        ("vaciar", "present", TU, "vacías"),
        ("enviar", "present", NOSOTROS, "enviamos"),
        ("fotografiar", "present", EL, "fotografía"),
        ("esquiar", "present", ELLOS, "esquían"),
        ("graduar", "present", EL, "gradúa"),
        # strong preterites, short futures
        ("tener", "preterite", YO, "tuve"),
        ("hacer", "preterite", EL, "hizo"),
        ("traer", "preterite", ELLOS, "trajeron"),
        ("conducir", "preterite", EL, "condujo"),
        ("dar", "preterite", EL, "dio"),
        ("ir", "preterite", NOSOTROS, "fuimos"),
        ("venir", "future", EL, "vendrá"),
        ("querer", "future", YO, "querré"),
        ("reír", "future", ELLOS, "reirán"),
        ("gustar", "conditional", EL, "gustaría"),
        # the present subjunctive
        ("venir", "subjunctive", TU, "vengas"),
        ("pedir", "subjunctive", NOSOTROS, "pidamos"),
        ("dormir", "subjunctive", NOSOTROS, "durmamos"),
        ("pensar", "subjunctive", NOSOTROS, "pensemos"),
        ("seguir", "subjunctive", EL, "siga"),
        ("buscar", "subjunctive", TU, "busques"),
        ("recoger", "subjunctive", TU, "recojas"),
        ("ir", "subjunctive", EL, "vaya"),
        ("dar", "subjunctive", EL, "dé"),
        ("cruzar", "subjunctive", EL, "cruce"),
    ],
)
def test_conjugated(infinitive, tense, slot, form):
    assert spanish.conjugate(infinitive, tense, slot) == form


def test_participles_and_gerunds():
    verbs = "escribir romper ver hacer abrir devolver resolver leer oír imprimir envolver".split()
    expected = "escrito roto visto hecho abierto devuelto resuelto leído oído impreso envuelto".split()
    assert [spanish.participle(verb) for verb in verbs] == expected
    verbs = "leer dormir pedir decir poder ir construir sonreír ver sentir".split()
    expected = "leyendo durmiendo pidiendo diciendo pudiendo yendo construyendo sonriendo viendo sintiendo".split()
    assert [spanish.gerund(verb) for verb in verbs] == expected


def test_commands():
    assert [spanish.command(verb) for verb in "poner salir tener venir decir hacer ir ser".split()] == (
        "pon sal ten ven di haz ve sé".split()
    )
    assert [spanish.command(verb, negated=True) for verb in ("tocar", "decir", "ir")] == ["toques", "digas", "vayas"]
    assert [spanish.command(verb, formal=True) for verb in ("cerrar", "hacer", "pagar")] == ["cierre", "haga", "pague"]


@pytest.mark.parametrize(
    ("form", "clitics", "attached"),
    [
        ("di", "melo", "dímelo"),
        ("da", "selo", "dáselo"),
        ("pon", "te", "ponte"),
        ("sal", "te", "salte"),
        ("dé", "me", "deme"),
        ("ver", "lo", "verlo"),
        ("oír", "lo", "oírlo"),
        ("ver", "melo", "vérmelo"),
        ("enviar", "lo", "enviarlo"),
        ("comprando", "lo", "comprándolo"),
        ("leyendo", "la", "leyéndola"),
        ("construyendo", "los", "construyéndolos"),
        ("compra", "lo", "cómpralo"),
        ("cierra", "la", "ciérrala"),
        ("vuelve", "lo", "vuélvelo"),
        ("envía", "lo", "envíalo"),
        ("vacía", "la", "vacíala"),
        ("limpia", "lo", "límpialo"),
        ("apaga", "las", "apágalas"),
        ("levante", "se", "levántese"),
        ("muestra", "noslas", "muéstranoslas"),
    ],
)
def test_enclitics_keep_the_stress(form, clitics, attached):
    assert spanish.attached(form, clitics) == attached


def test_verb_groups():
    assert spanish.verb_group("ver", "present", YO, "lo") == "lo veo"
    assert spanish.verb_group("dar", "preterite", EL, "me lo") == "me lo dio"
    assert spanish.verb_group("ver", "perfect", NOSOTROS, "la") == "la hemos visto"
    assert spanish.verb_group("leer", "progressive", EL, "la") == "está leyéndola"
    assert spanish.verb_group("comprar", "going", YO, "los") == "voy a comprarlos"
    assert spanish.verb_group("levantarse", "present", NOSOTROS) == "nos levantamos"
    assert spanish.verb_group("irse", "future", TU) == "te irás"
    assert spanish.verb_group("acostarse", "going", TU) == "vas a acostarte"
    assert spanish.infinitive_of("reírse", YO) == "reírme"


def test_plurals():
    words = "lápiz canción joven jueves paraguas examen autobús pez sofá inglés reloj árbol país tenis robot suéter"
    expected = (
        "lápices canciones jóvenes jueves paraguas exámenes autobuses peces sofás ingleses relojes árboles países "
        "tenis robots suéteres"
    )
    assert [spanish.plural(word) for word in words.split()] == expected.split()


def test_adjectives_agree():
    words = "rojo verde inglés alemán trabajador español mejor joven marrón feliz optimista cruel gris".split()
    feminine = "roja verde inglesa alemana trabajadora española mejor joven marrón feliz optimista cruel gris".split()
    assert [spanish.agree(word, True, False) for word in words] == feminine
    plurals = (
        "rojos verdes ingleses alemanes trabajadores españoles mejores jóvenes marrones felices optimistas crueles "
        "grises"
    )
    assert [spanish.agree(word, False, True) for word in words] == plurals.split()


def test_apocope():
    assert spanish.before_noun("bueno", False, False) == "buen"
    assert spanish.before_noun("bueno", True, False) == "buena"
    assert spanish.before_noun("primero", False, False) == "primer"
    assert spanish.before_noun("tercero", True, False) == "tercera"
    assert spanish.before_noun("grande", True, False) == "gran"
    assert spanish.before_noun("grande", True, True) == "grandes"
    assert spanish.before_noun("ninguno", False, False) == "ningún"
    assert spanish.before_noun("malo", False, True) == "malos"


def test_small_words():
    assert spanish.article("la", "agua") == "el"
    assert spanish.article("una", "aula") == "un"
    assert spanish.article("las", "aguas") == "las"
    assert spanish.article("esta", "agua") == "esta"
    assert (
        spanish.contracted("Voy a el mercado de el pueblo con él y de él") == "Voy al mercado del pueblo con él y de él"
    )
    assert spanish.conjoined("español", "inglés") == "español e inglés"
    assert spanish.conjoined("agua", "hielo") == "agua y hielo"
    assert spanish.disjoined("siete", "ocho") == "siete u ocho"
    assert spanish.disjoined("té", "café") == "té o café"
