"""Makes debian_tags.json of the package index of a Debian machine: synopses, judged by the tags their maintainers gave.

Run as `apt-cache dumpavail | python benchmarks/search/make_debian_tags.py > benchmarks/search/debian_tags.json`. The
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
    "accessibility::speech": "have a computer read text aloud with a synthetic voice",
    "admin::boot": "choose the operating system at boot time",
    "admin::filesystem": "create and check file systems on a disk",
    "admin::forensics": "examine a disk image for evidence",
    "admin::package-management": "install and upgrade software packages",
    "admin::power-management": "save battery power and suspend the machine",
    "admin::recovery": "recover deleted files from a damaged disk",
    "admin::user-management": "manage user accounts and groups",
    "admin::cluster": "jobs on a cluster of many computers",
    "admin::benchmarking": "measure how fast a machine or a disk is",
    "culture::japanese": "type and read Japanese text",
    "culture::chinese": "Chinese input and fonts",
    "devel::buildtools": "build a program from its source files automatically",
    "devel::compiler": "a compiler for a programming language",
    "devel::debugger": "find bugs with a debugger",
    "devel::docsystem": "generate documentation from source code comments",
    "devel::i18n": "translate the messages of a program",
    "devel::ide": "integrated development environment",
    "devel::lang:fortran": "Fortran programs",
    "devel::lang:haskell": "tools for Haskell programmers",
    "devel::lang:lisp": "a Lisp interpreter or compiler",
    "devel::lang:ocaml": "program in OCaml",
    "devel::machinecode": "assemble and disassemble machine code",
    "devel::prettyprint": "indent source code nicely",
    "devel::profiler": "profile where a program spends its time",
    "devel::rcs": "version control of source code",
    "devel::testing-qa": "test software automatically",
    "field::electronics": "design electronic circuits and boards",
    "field::linguistics": "study grammar and analyse natural language",
    "field::medicine:imaging": "view medical images from a scanner",
    "field::physics": "simulate physics experiments",
    "field::statistics": "statistical analysis of data",
    "game::arcade": "an arcade shooting game",
    "game::card": "play card games such as solitaire",
    "game::rpg:rogue": "explore a dungeon as in rogue",
    "game::strategy": "a turn based strategy game",
    "game::tetris": "falling blocks like tetris",
    "game::toys": "funny toys for the desktop",
    "hardware::camera": "download photos from a digital camera",
    "hardware::emulation": "emulate an old home computer or console",
    "hardware::gps": "read positions from a GPS receiver",
    "hardware::hamradio": "amateur radio and morse code",
    "hardware::input:keyboard": "change the keyboard layout",
    "hardware::input:joystick": "configure and test a joystick",
    "hardware::modem": "fax and dial with a modem",
    "hardware::storage:cd": "burn or rip audio CDs",
    "hardware::storage:dvd": "write data to a DVD",
    "mail::filters": "filter spam out of mail",
    "mail::imap": "an IMAP server or client",
    "mail::notification": "be notified when new mail arrives",
    "mail::transport-agent": "deliver mail between hosts by SMTP",
    "network::firewall": "a firewall with packet filter rules",
    "network::scanner": "scan a network for open ports",
    "network::vpn": "a virtual private network tunnel",
    "office::presentation": "slides for a talk",
    "protocol::bittorrent": "download torrents from peers",
    "protocol::dhcp": "assign network addresses with DHCP",
    "protocol::dns": "a DNS server that resolves names",
    "protocol::irc": "a client for IRC channels",
    "protocol::kerberos": "authenticate with Kerberos tickets",
    "protocol::ldap": "query an LDAP directory",
    "protocol::ssh": "log in to remote hosts through SSH",
    "protocol::voip": "phone calls over the internet",
    "science::plotting": "plot scientific data as graphs",
    "science::visualisation": "visualise scientific data in three dimensions",
    "security::antivirus": "scan files for viruses",
    "security::ids": "detect intrusions into a network",
    "security::privacy": "browse anonymously and hide what I do",
    "sound::midi": "compose and play MIDI music",
    "sound::mixer": "change the volume of the sound card",
    "use::comparing": "show the differences between two files",
    "web::browser": "a web browser",
    "web::wiki": "software for a wiki",
    "works-with-format::xml:rss": "read news feeds",
    "works-with-format::postscript": "view and convert PostScript",
    "works-with::3dmodel": "model and render three-dimensional scenes",
    "works-with::font": "edit and preview fonts",
    "works-with::logfile": "analyse log files of a server",
    "works-with::music-notation": "write sheet music",
    "works-with::network-traffic": "capture and inspect network packets",
    "x11::screensaver": "a screen saver",
    "x11::terminal": "a terminal emulator window",
    "x11::window-manager": "a lightweight window manager",
}
EACH = 20
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
