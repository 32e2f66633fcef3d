"""Small PDF files for tests, made by hand: text of one font, a page each; encrypted, broken and endless ones."""

from __future__ import annotations

import io

from pypdf import PdfReader, PdfWriter


def pdf(*pages: str, title: str = "", operators: bytes = b"", filtered: bytes = b"") -> bytes:
    """A PDF of these pages, a line of text for each of theirs.

    `operators` follow the text of the last page, which says that it is `filtered` so.
    """
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    kids = []
    for number, text in enumerate(pages):
        shown = b" T* ".join(b"(" + line.encode("cp1252") + b") Tj" for line in text.split("\n"))
        content = b"BT /F1 12 Tf 14 TL 72 720 Td " + shown + b" ET"
        kind = b""
        if number == len(pages) - 1:
            content += operators
            kind = b" /Filter " + filtered if filtered else b""
        objects.append(b"<< /Length %d%s >>\nstream\n" % (len(content), kind) + content + b"\nendstream")
        body = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R" % len(objects)
        objects.append(body + b" /Resources << /Font << /F1 3 0 R >> >> >>")
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [ " % len(kids) + b" ".join(kids) + b" ] >>"
    objects.append(b"<< /Title (" + title.encode("cp1252") + b") >>")
    written, places = io.BytesIO(), []
    written.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, start=1):
        places.append(written.tell())
        written.write(b"%d 0 obj\n" % number + body + b"\nendobj\n")
    start = written.tell()
    written.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    written.writelines(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    written.write(trailer % (len(objects) + 1, len(objects), start))
    return written.getvalue()


def encrypted(raw: bytes, password: str, owner: str = "owner") -> bytes:
    """The same PDF for those that know a password; the empty one is known to all."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    writer.encrypt(password, owner, algorithm="RC4-128")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()
