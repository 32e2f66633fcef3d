"""The program of the model's child process: serve one model on a loopback port until the parent is gone.

Run as a script, by path: it needs the standard library and xllamacpp, and none of the router's memory. The
parent writes one line of JSON to its standard input and keeps the pipe open; the child answers with one line
of JSON on its standard output. The API key travels that way: others can read arguments and environment.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import signal
import sys
import threading
from typing import Any

NICENESS = 10
_PR_SET_PDEATHSIG = 1
_PARENT_CHECK_SECONDS = 0.5
# Prompts are read in batches this large, and a call that was given up is noticed between two of them: 0.7 s
# at most on two slow cores, where the library's 2,048 took 6 s. Reading is as fast; less gains nothing.
_BATCH_TOKENS = 128
# The model's own template, but for the system prompt it invents where the caller gave none: with that one the
# quantized model answers "What is the capital of France?" in broken French, without it in one right sentence.
_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def main() -> None:
    """Load, serve, and end as soon as the parent does."""
    # Ctrl-C in a terminal reaches the whole group; when to stop serving is the parent's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    _be_nice()
    settings = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_watch, args=(settings["parent"],), daemon=True).start()
    server = _serve(settings)
    sys.stdout.write("\n" + json.dumps({"listening": server.listening_address}) + "\n")
    sys.stdout.flush()
    _fall_silent()
    threading.Event().wait()


def _serve(settings: dict[str, Any]) -> Any:
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = {settings["alias"]}
    params.chat_template = _CHAT_TEMPLATE
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["api_key"]]
    params.n_ctx = settings["context_tokens"]
    params.n_parallel = 1
    params.n_batch = _BATCH_TOKENS
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = 0  # the library would keep up to 8 GB of old prompts
    params.verbosity = 1  # errors, until _fall_silent
    # What the model's makers recommend; at the library's 0.8 so small a model wanders off. A caller's wins.
    params.sampling.temp = 0.2
    params.sampling.top_p = 0.9
    # Returns once the model is loaded and the port is bound: /health would say ok from here on.
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        sys.exit(str(error))  # the library has printed the cause; a traceback would bury it


def _die_with_parent() -> None:
    """Ask Linux to end us with the parent: loading holds the interpreter, so `_watch` could not notice then.

    The kernel means the parent's thread; process.py starts us from one that outlives us.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _be_nice() -> None:
    if sys.platform != "win32":
        os.nice(NICENESS)


def _watch(parent: int) -> None:
    """End the process when the pipe from the parent closes, or the parent is another one."""
    if sys.platform != "win32":
        # A process forked from the parent holds its end of the pipe, too: then only getppid() tells.
        while os.getppid() == parent:
            if select.select([sys.stdin], [], [], _PARENT_CHECK_SECONDS)[0] and not os.read(0, 1024):
                break
    else:
        while os.read(0, 1024):
            pass
    os._exit(0)


def _fall_silent() -> None:
    """Discard further output: nothing reads it from here on, and a full pipe would block."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


if __name__ == "__main__":
    main()
