"""Makes debian_tags.json of the package index of a Debian machine: synopses, judged by the tags their maintainers gave.

Run as `apt-cache dumpavail | python benchmarks/data/make_debian_tags.py > benchmarks/data/debian_tags.json`. The
questions are ours; a package is relevant to one when it has its tag. Which packages are taken is decided by a hash.
"""

from __future__ import annotations

import hashlib
import json
import sys

QUESTIONS = {
    "works-with::mail": "read and send e-mail messages",
    "game::puzzle": "a puzzle game for the brain",
    "security::cryptography": "encrypt and sign data with secret keys",
    "field::biology": "analyse DNA sequences and genomes",
    "works-with::audio": "record, convert and play sound",
    "use::compressing": "make files smaller with compression",
    "admin::backup": "keep backup copies of my data",
    "works-with-format::pdf": "view or change PDF files",
    "works-with::image:raster": "edit photographs and pictures",
    "field::astronomy": "watch stars and planets in the night sky",
    "works-with-format::tex": "typeset papers with TeX",
    "admin::virtualization": "run virtual machines",
    "use::chatting": "chat and instant messaging with friends",
    "field::mathematics": "algebra and numerical mathematics",
    "admin::monitoring": "monitor servers and send alerts",
    "works-with::db": "a database for structured data",
    "use::timekeeping": "clocks, calendars and timers",
    "works-with::video": "play and convert films and video",
    "game::board": "chess and other board games",
    "field::geography": "maps and satellite navigation",
    "protocol::ftp": "transfer files to an FTP server",
    "works-with::dictionary": "look up words in a dictionary",
    "hardware::printer": "print documents on paper",
    "field::chemistry": "molecules and chemical structures",
    "use::synchronizing": "keep two folders in sync",
    "field::finance": "personal accounting and bank accounts",
}
EACH = 30
OTHERS = 120


def place(name: str) -> str:
    """A fixed place of chance for a package."""
    return hashlib.sha256(name.encode()).hexdigest()


def main() -> None:
    """Read the index from stdin, write the collection to stdout."""
    packages: dict[str, tuple[str, set[str]]] = {}
    for paragraph in sys.stdin.read().split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in paragraph.splitlines():
            if line[:1] == " ":
                fields[key] += line
            elif ": " in line:
                key, _, fields[key] = line.partition(": ")
        tags = {tag.strip() for tag in fields.get("Tag", "").split(",")}
        if "role::program" in tags and fields.get("Description", "").isascii():
            packages[fields["Package"]] = fields["Description"], tags
    chosen: set[str] = set()
    for tag in QUESTIONS:
        chosen |= set(sorted((name for name, (_, tags) in packages.items() if tag in tags), key=place)[:EACH])
    chosen |= set(sorted(packages, key=place)[:OTHERS])
    collection = {
        "source": "Debian 12 (bookworm), main, the package index: synopses and tags by the Debian maintainers",
        "questions": QUESTIONS,
        "documents": {name: packages[name][0] for name in sorted(chosen)},
        "relevant": {tag: sorted(name for name in chosen if tag in packages[name][1]) for tag in QUESTIONS},
    }
    json.dump(collection, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
