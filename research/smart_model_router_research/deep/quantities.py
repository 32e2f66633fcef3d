"""Numbers as claims and sources write them: notations, scale words, units, and when one is another rounded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

_PREFIXES = (("n", -9), ("\u00b5", -6), ("\u03bc", -6), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6))
_METRIC = {
    f"{prefix}{unit}": (unit, Decimal(10) ** power)
    for unit in ("A", "V", "Pa", "J", "N")
    for prefix, power in _PREFIXES
}
_BYTE_UNITS = {
    f"{prefix}{letter}": ("bit", Decimal(bits) * factor)
    for prefix, factor in (
        ("", Decimal(1)),
        *((p, Decimal(1000) ** n) for p, n in (("k", 1), ("K", 1), ("M", 2), ("G", 3), ("T", 4), ("P", 5))),
        *((f"{p}i", Decimal(1024) ** n) for p, n in (("K", 1), ("k", 1), ("M", 2), ("G", 3), ("T", 4), ("P", 5))),
    )
    for letter, bits in (("B", 8), ("b", 1), ("bit", 1))
}
_NAMES = {
    "s": "s sec secs second seconds",
    "ms": "ms msec millisecond milliseconds",
    "us": "us µs μs microsecond microseconds",
    "ns": "ns nanosecond nanoseconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "bit": "bit bits",
    "B": "byte bytes",
    "kB": "kilobyte kilobytes",
    "MB": "megabyte megabytes",
    "GB": "gigabyte gigabytes",
    "TB": "terabyte terabytes",
    "KiB": "kibibyte kibibytes",
    "MiB": "mebibyte mebibytes",
    "GiB": "gibibyte gibibytes",
    "m": "m metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "mi": "mi mile miles",
    "ft": "ft foot feet",
    "nm": "nm",
    "g": "g gram grams gramme grammes",
    "kg": "kg kilogram kilograms",
    "mg": "mg milligram milligrams",
    "ug": "mcg µg μg microgram micrograms",
    "L": "L l litre litres liter liters",
    "ml": "ml mL millilitre millilitres milliliter milliliters",
    "t": "t tonne tonnes",
    "%": "% percent",
    "km^2": "km^2 km2 km²",
    "ha": "ha hectare hectares",
    "W": "W watt watts",
    "kW": "kW kilowatt kilowatts",
    "MW": "MW megawatt megawatts",
    "GW": "GW gigawatt gigawatts",
    "kWh": "kWh",
    "MWh": "MWh",
    "GWh": "GWh",
    "times": "times",
    "AU": "AU",
    "Hz": "Hz hertz",
    "kHz": "kHz",
    "MHz": "MHz",
    "GHz": "GHz",
    "$": "$ dollars dollar",
    "USD": "USD US$",
    "€": "€ EUR euro euros",
    "£": "£",
    "GBP": "GBP",
    "¥": "¥",
    "JPY": "JPY yen",
}
_FACTORS: dict[str, tuple[str, Decimal]] = {
    **_BYTE_UNITS,
    **{name: ("s", Decimal(x)) for name, x in (("s", 1), ("min", 60), ("h", 3600), ("day", 86400), ("week", 604800))},
    **{name: ("s", Decimal(10) ** n) for name, n in (("ms", -3), ("us", -6), ("ns", -9))},
    **{name: ("m", Decimal(x)) for name, x in (("m", 1), ("km", 1000), ("mi", "1609.344"), ("ft", "0.3048"))},
    **{name: ("m", Decimal(10) ** n) for name, n in (("cm", -2), ("mm", -3))},
    **{name: ("g", Decimal(x)) for name, x in (("g", 1), ("kg", 1000), ("t", 1_000_000))},
    **{name: ("g", Decimal(10) ** n) for name, n in (("mg", -3), ("ug", -6))},
    **{name: ("L", Decimal(10) ** n) for name, n in (("L", 0), ("ml", -3))},
    **{name: ("W", Decimal(10) ** n) for name, n in (("W", 0), ("kW", 3), ("MW", 6), ("GW", 9))},
    **{name: ("Wh", Decimal(10) ** n) for name, n in (("kWh", 3), ("MWh", 6), ("GWh", 9))},
    **{name: ("km^2", Decimal(10) ** n) for name, n in (("km^2", 0), ("ha", -2))},
    **{name: ("Hz", Decimal(10) ** n) for name, n in (("Hz", 0), ("kHz", 3), ("MHz", 6), ("GHz", 9))},
}
UNITS: dict[str, tuple[str, Decimal]] = {
    **_BYTE_UNITS,
    **{name: unit for name, unit in _METRIC.items() if len(name) > 1},
    **{word: _FACTORS.get(unit, (unit, Decimal(1))) for unit, words in _NAMES.items() for word in words.split()},
}
"""Each way to write a unit, with its base unit and its size in that. Symbols are case-sensitive: Mb is not MB."""
SCALES = {"thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
"""Powers of ten that a number may be followed by."""

_WORDS = {
    word: number
    for number, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split(),
        2,
    )
} | {"zero": 0, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_CHINESE = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_CHINESE_POWERS = {"十": 10, "百": 100, "千": 1000}
_ENGLISH = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|\.\d+")
_CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,\d{1,2}|\d+,\d{4,}")
_SEPARATED = re.compile(r"\d{1,3}(?:[ '_]\d{3})+(?:[.,]\d+)?")
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit. `step` is the unit of its last digit: 84.0 million has a step of 100,000."""

    value: Decimal
    step: Decimal
    unit: str = ""
    factor: Decimal = Decimal(1)
    """The size of the unit in base units."""
    written: str = ""
    is_grouped: bool = False
    """True when it has thousands separators: no version, year or section has."""
    is_scaled: bool = False
    """True when a word such as million follows."""


def read_number(text: str) -> Quantity | None:
    """Return the number that a token is, in whichever notation, without sign, unit and scale; None for anything else.

    Two notations disagree about 1.529: it is read as English.
    """
    if len(text) > 40:
        return None
    if text in _WORDS:
        return Quantity(Decimal(_WORDS[text]), Decimal(1), written=text)
    tens, hyphen, ones = text.partition("-")
    one = 1 if ones == "one" else _WORDS.get(ones, 0)
    if hyphen and 0 < one < 10 and _WORDS.get(tens, 0) in range(20, 100, 10):
        return Quantity(Decimal(_WORDS[tens] + one), Decimal(1), written=text)
    if (chinese := _read_chinese(text)) is not None:
        return Quantity(Decimal(chinese), Decimal(1), written=text)
    if _ENGLISH.fullmatch(text) or _INDIAN.fullmatch(text):
        plain = text.replace(",", "")
    elif _CONTINENTAL.fullmatch(text):
        plain = text.replace(".", "").replace(",", ".")
    elif _SEPARATED.fullmatch(text):
        plain = re.sub("[ '_]", "", text).replace(",", ".")
    else:
        return None
    value = Decimal(plain)
    digits = len(plain.partition("e")[0].partition("E")[0].partition(".")[2])
    grouped = re.search(r"\d[ ,'_]\d{3}|\d\.\d{3}\D|\.\d{3}\.", text) is not None
    return Quantity(value, Decimal(1).scaleb(-digits), written=text, is_grouped=grouped)


def is_same(claimed: Quantity, source: Quantity, *, about: bool = False) -> bool:
    """Return whether the claimed number is the source's, or the source's rounded half up to the digits of the claim.

    Rounded are quantities, those with a unit, a scale word, separators or a decimal step of thousands; versions, years
    and sections are not. Noughts at the end are digits, but where the source has separators: 1,500 stands for 1,468.
    At least two significant digits are kept, unless a scale word or `about` allows for one.
    """
    if claimed.unit != source.unit:
        return False
    ours, theirs = claimed.value * claimed.factor, source.value * source.factor
    plain = not (source.unit or source.is_grouped or source.is_scaled or claimed.is_scaled)
    if plain and "." in claimed.written + source.written and not source.is_grouped:
        return claimed.value == source.value and _digits(claimed) == _digits(source)  # 3.1 is not 3.10
    if ours == theirs:
        return True
    if claimed.unit == "%" and ours in (0, 50, 100):
        return False
    step = claimed.step * claimed.factor
    converted = claimed.factor != source.factor
    if plain or (ours < 0) != (theirs < 0):
        return False
    # A claim of 84,000,000 has said nothing about its zeros: the digits that count end before them.
    for coarse in _steps(claimed, step):
        if coarse <= source.step * source.factor and not converted:
            continue
        significant = len(str(int(abs(ours) / coarse))) if abs(ours) >= coarse else 0
        if significant < (1 if about or claimed.is_scaled else 2):
            continue
        try:
            rounded = (theirs / coarse).quantize(Decimal(1), ROUND_HALF_UP) * coarse
        except InvalidOperation:
            continue
        if rounded == ours and (significant > 1 or abs(ours - theirs) <= _COARSEST[about] * abs(theirs)):
            return coarse == step or about or claimed.is_scaled or source.is_grouped
    return False


_LONGEST = Decimal(10) ** 27
_COARSEST = {False: Decimal("0.05"), True: Decimal("0.15")}
"""The most that one significant digit may be off, as a share, without "about" and with it.

80 million may stand for 84, and 2 billion not for 1.5.
"""


def _steps(claimed: Quantity, step: Decimal) -> list[Decimal]:
    """Return the unit of the last digit, and of those before it while only zeros follow."""
    steps = [step]
    number = claimed.value / claimed.step
    while number and abs(number) < _LONGEST and number % 10 == 0 and len(steps) < 16:
        number /= 10
        steps.append(steps[-1] * 10)
    return steps


def _digits(number: Quantity) -> int:
    return len(number.written.partition(".")[2])


def _read_chinese(text: str) -> int | None:
    """Return the number below 10,000 that Chinese numerals are; None for anything else."""
    total, digit = 0, None
    if not text or (text[0] not in _CHINESE and text[0] != "十"):
        return None
    for character in text:
        if character in _CHINESE and not digit:  # a nought only fills a place
            digit = _CHINESE[character]
        elif (power := _CHINESE_POWERS.get(character)) is not None:
            total += (1 if digit is None else digit) * power
            digit = None
        else:
            return None
    return total + (digit or 0)
