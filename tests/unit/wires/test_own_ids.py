"""Ids of our own: what they carry, and that nobody else can make one."""

from __future__ import annotations

from random import Random

import pytest

from smart_model_router.wires.own_ids import NONCE_BYTES, is_issued, issue, item_id, response_of, target_of

SECRET = b"secret of this host"
TARGETS = ("a/big", "a/small", "b/big")


def issued(seed: int, target: str = "a/big", owner: str = "one") -> str:
    """Issue one by this chance."""
    return issue(Random(seed).randbytes(NONCE_BYTES), target, owner, SECRET)


def test_an_id_carries_its_target_and_is_its_owners() -> None:
    """Whatever chance gives; it looks like any other, and fits where OpenAI's does."""
    for seed in range(200):
        for target in TARGETS:
            made = issued(seed, target)
            assert made.startswith("resp_")
            assert len(item_id("msg", made, 999)) <= 64
            assert target_of(made, TARGETS) == target
            assert is_issued(made, "one", SECRET)
            assert not is_issued(made, "two", SECRET)
            assert not is_issued(made, "one", b"another host")


def test_a_changed_id_is_not_ours_any_more() -> None:
    """At every place."""
    made = issued(1)
    for place in range(len("resp_smr"), len(made)):
        changed = made[:place] + ("A" if made[place] != "A" else "B") + made[place + 1 :]
        assert not is_issued(changed, "one", SECRET)


def test_the_target_of_another_configuration_is_unknown() -> None:
    """It is none of those there are now."""
    assert target_of(issued(1, "gone/away"), TARGETS) is None


@pytest.mark.parametrize("prefix", ["msg", "rs", "fc", "ctc", "tsc"])
def test_an_items_id_leads_to_its_answer(prefix: str) -> None:
    """And so does the answer's own."""
    for seed in range(50):
        made = issued(seed)
        assert response_of(item_id(prefix, made, seed)) == response_of(made) == made


@pytest.mark.parametrize(
    "thing", ["", "resp_1", "msg_smr", "resp_smr" + "x" * 31, "resp_smr" + "x" * 33, "smr" + "x" * 32]
)
def test_ids_of_providers_are_no_ids_of_ours(thing: str) -> None:
    """By their form."""
    assert response_of(thing) is None
