"""The program that reads one PDF from stdin and writes its pages to stdout, a JSON object a line.

It is started by `retrieval.pdf` as a file, by itself: a PDF may be made to take all time and memory there is, and only
a process can be ended. A page is written as soon as it is read, so what was read before the end counts.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_MARKS = {0x02: "-", 0xFFFE: "-"}
"""PDFium's marks of a hyphen at the end of a line."""
_NEEDS_PASSWORD = 4
"""PDFium's FPDF_ERR_PASSWORD."""


def limit(seconds: int, memory: int) -> None:
    """End this process when it takes more. Platforms without such limits have the parent's clock."""
    try:
        import resource  # noqa: PLC0415 - POSIX
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))


def say(**told: Any) -> None:
    """One line for the parent, now."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def read(most_pages: int, most_characters: int) -> None:
    """Write each page's text, and at last `end`: nothing, or the reason why there may be more."""
    from pypdfium2 import PdfDocument, PdfiumError  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        document = PdfDocument(sys.stdin.buffer.read())
    except PdfiumError as error:
        if error.err_code != _NEEDS_PASSWORD:
            raise
        say(end="it is encrypted")
        return
    say(title=document.get_metadata_value("Title"))
    characters = 0
    broken: list[str] = []
    for number in range(len(document)):
        if number == most_pages:
            say(end=f"it has more than {most_pages} pages")
            return
        try:
            text = document[number].get_textpage().get_text_bounded().translate(_MARKS).replace("\r\n", "\n")
        except (MemoryError, RecursionError):
            raise
        except Exception as error:  # noqa: BLE001 - a broken page costs no other
            broken.append(f"page {number + 1} cannot be read ({_reason(error)})")
            text = ""
        characters += len(text)
        if characters > most_characters:
            say(end=f"it has more than {most_characters} characters")
            return
        say(page=text)
    more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
    say(end=broken[0] + more if broken else "")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def main() -> None:
    """`pdf_child.py SECONDS BYTES PAGES CHARACTERS`."""
    seconds, memory, pages, characters = map(int, sys.argv[1:])
    limit(seconds + 1, memory)  # the parent ends it first, and knows why
    try:
        read(pages, characters)
    except MemoryError:
        say(end=f"it needs more than {memory} bytes of memory")
    except RecursionError:
        say(end="it is nested too deep")
    except Exception as error:  # noqa: BLE001 - whatever a broken file makes the library raise is told
        say(end=f"it cannot be read ({_reason(error)})")


if __name__ == "__main__":
    main()
