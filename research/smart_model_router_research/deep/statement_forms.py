"""The forms that statements have: labels with their values, notes on versions, directives of reStructuredText."""

from __future__ import annotations

import re

NOTES = {
    "versionadded": "added",
    "version-added": "added",
    "versionchanged": "changed",
    "version-changed": "changed",
    "deprecated": "deprecated",
    "version-deprecated": "deprecated",
    "deprecated-removed": "deprecated",
    "versionremoved": "removed",
    "version-removed": "removed",
}
CODE = frozenset(
    "code code-block sourcecode literalinclude parsed-literal productionlist doctest testcode math".split()
)
PROSE = frozenset(
    "note warning tip hint caution danger attention important error seealso admonition impl-detail topic sidebar "
    "container only rubric epigraph highlights compound cssclass rst-class table availability audit-event".split()
)
NO_SCOPE = frozenset(
    "toctree index currentmodule module moduleauthor sectionauthor highlight image figure include contents "
    "tabularcolumns "
    "meta raw role default-role deprecated-alias testsetup testcleanup plot".split()
)
VERSION_NOTE = re.compile(
    r"(?:[(*_\[{>!\s\u2022-]*)(new|added|introduced|available|changed|deprecated|removed|renamed)"
    r"(?: (?:as of|since|in|from|with))?(?: (?:in|since))?(?: (?:python|version|release))*:?\s+"
    r"(v?\d+(?:\.\d+)+[\w-]*|v?\d+(?=[.:,)\]*_\s]|$))",
    re.IGNORECASE,
)
SINCE = re.compile(r"[(*_\[\s]*since:?(?: (?:version|release))?:?\s+(v?\d+(?:\.\d+)+\w*)[)*_\]\s.]*", re.IGNORECASE)
_LABEL = (
    r"(?P<label>(?:\*\*|__|[`\"'*])?[^\W_`*\"'][^:=|\n]{0,78}?(?:\*\*|__|[`\"'*])?(?:\([^()]{0,60}\))?(?:\*\*|__)?)"
)
_LABELLED = re.compile(_LABEL + r"[ \t]*:(?:\*\*|__)?[ \t]+(?P<value>\S.*)", re.DOTALL)
_DASHED = re.compile(_LABEL + r"[ \t]+(?:[=\u2013\u2014]|--?)[ \t]+(?P<value>\S.*)", re.DOTALL)
_CODE_LABEL = re.compile(
    r"(?P<label>`[^`\n]{1,80}`(?:[,/ ]+`[^`\n]{1,80}`)*)[ \t]*(?::|[-\u2013\u2014]{1,2}|=)[ \t]+(?P<value>\S.*)",
    re.DOTALL,
)
_COLUMNS = re.compile(r"(?P<label>\S(?:[^ ]| (?! )){0,40}) {2,}(?P<value>\S.*)")
_MARKS = "*_`\"' \t"


def label_of(text: str) -> tuple[str, str] | None:
    """Return label and value of a labelled value; None where a text is none."""
    match = _CODE_LABEL.match(text) or _LABELLED.match(text) or _DASHED.match(text) or _COLUMNS.match(text)
    if match is None:
        return None
    label = match["label"].strip(_MARKS)
    if label.count("(") != label.count(")"):
        return None
    if not label or len(label.split()) > 10 or label.endswith((".", "!", "?")) or re.search(r"[.!?] ", label):
        return None
    if label[0].islower() and match.re in (_LABELLED, _DASHED) and len(label.split()) > 3:
        return None
    return label, match["value"].strip()
