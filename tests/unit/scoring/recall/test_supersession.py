"""Chains of replaced memories: heads, cycles, depth, archives, provenance, and how often the store is asked."""

from __future__ import annotations

import pytest

from smart_model_router_scoring.options import ConfigError, Notes
from smart_model_router_scoring.recall.memory import Hit, Memory, Replaced
from smart_model_router_scoring.recall.ranking import latest
from tests.unit.scoring.recall.chains import Chains, day


def shown(chains: Chains, *hits: Hit, max_depth: int = 5) -> dict[str, Hit]:
    """What is shown for these hits, by id."""
    chains.asked.clear()
    found, queries = latest(hits, chains, Notes(), max_depth=max_depth)
    assert queries == len(chains.asked)
    assert len({hit.memory.id for hit in found}) == len(found)
    return {hit.memory.id: hit for hit in found}


def test_without_an_edge_the_hits_are_the_same_after_one_query() -> None:
    """All of them in one batch, sorted."""
    chains = Chains(day("b", 1), day("a", 2))
    hits = [chains.hit("b"), chains.hit("a")]
    found, queries = latest(hits, chains, Notes())
    assert all(one is other for one, other in zip(found, hits, strict=True))
    assert (queries, chains.asked) == (1, [["a", "b"]])


def test_without_a_hit_nobody_is_asked() -> None:
    """There is nothing to ask about."""
    chains = Chains()
    assert latest([], chains, Notes()) == ([], 0)
    assert chains.asked == []


def test_a_chain_is_walked_to_its_head() -> None:
    """a -> b -> c shows c with a's score; the provenance is the first hop's, and each hop is one query."""
    chains = Chains(day("a", 1), day("b", 2), day("c", 3)).link("a", "b", "INVALIDATED_BY").link("b", "c")
    found = shown(chains, chains.hit("a", 0.8))
    assert list(found) == ["c"]
    assert found["c"].score == 0.8
    assert found["c"].memory.content == "C"
    assert found["c"].replaces == (Replaced("a", "INVALIDATED_BY"),)
    assert chains.asked == [["a"], ["b"], ["c"]]


def test_a_head_that_was_found_too_takes_over_the_best_score() -> None:
    """Its own if that is better; it names all that it stands in for, best first, and so does the explanation."""
    chains = Chains(day("a", 1), day("b", 2), day("c", 3)).link("a", "c").link("b", "c")
    found = shown(chains, chains.hit("a", 0.3), chains.hit("b", 0.9), chains.hit("c", 0.5))
    assert list(found) == ["c"]
    assert found["c"].score == 0.9
    assert found["c"].replaces == (Replaced("b", "EVOLVED_INTO"), Replaced("a", "EVOLVED_INTO"))
    explanation = found["c"].explanation
    assert (explanation.operation, [part.name for part in explanation.parts]) == ("max", ["c", "b", "a"])
    assert explanation.recompose() == 0.9
    assert explanation.name == "score"
    assert shown(chains, chains.hit("a", 0.3), chains.hit("c", 0.5))["c"].score == 0.5
    found_itself = Hit(Memory(id="c", content="as the search has it"), 0.5)
    assert shown(chains, chains.hit("a"), found_itself)["c"].memory is found_itself.memory


def test_what_a_head_already_stood_in_for_is_kept() -> None:
    """Provenance grows."""
    chains = Chains(day("a", 1), day("c", 3)).link("a", "c")
    earlier = Hit(chains.memories["c"], 0.1, (Replaced("x", "EVOLVED_INTO"),))
    found = shown(chains, chains.hit("a"), earlier)
    assert [replaced.id for replaced in found["c"].replaces] == ["x", "a"]


def test_an_archived_link_does_not_break_the_chain() -> None:
    """a -> (b) -> c shows c."""
    chains = Chains(day("a", 1), day("b", 2, archived=True), day("c", 3)).link("a", "b").link("b", "c")
    assert list(shown(chains, chains.hit("a"))) == ["c"]


def test_a_chain_that_ends_archived_shows_its_last_valid_memory() -> None:
    """a -> b -> (c) shows b; a -> (b) leaves a as it is."""
    chains = Chains(day("a", 1), day("b", 2), day("c", 3, archived=True)).link("a", "b").link("b", "c")
    assert list(shown(chains, chains.hit("a"))) == ["b"]
    alone = Chains(day("a", 1), day("b", 2, archived=True)).link("a", "b")
    hit = alone.hit("a")
    assert shown(alone, hit)["a"] is hit


def test_an_archived_hit_leads_to_its_head_or_is_left_out() -> None:
    """With a note when there is nothing to show for it."""
    chains = Chains(day("a", 1, archived=True), day("b", 2), day("c", 1, archived=True)).link("a", "b")
    notes = Notes()
    found, _ = latest([chains.hit("a"), chains.hit("c")], chains, notes)
    assert [hit.memory.id for hit in found] == ["b"]
    assert [(note.code, note.subject) for note in notes.kept] == [("archived", "c")]


def test_a_memory_that_replaces_itself_is_not_replaced() -> None:
    """The loop is noted, another way on is taken."""
    chains = Chains(day("a", 1), day("b", 2)).link("a", "a")
    notes = Notes()
    found, queries = latest([chains.hit("a")], chains, notes)
    assert [hit.memory.id for hit in found] == ["a"]
    assert queries == 1
    assert [(note.code, note.subject) for note in notes.kept] == [("self_loop", "a")]
    assert list(shown(chains.link("a", "b"), chains.hit("a"))) == ["b"]


def test_a_cycle_keeps_its_newest_valid_member() -> None:
    """a -> b -> c -> b, with b newer than c, shows b; from any of them."""
    chains = Chains(day("a", 9), day("b", 3), day("c", 2)).link("a", "b").link("b", "c").link("c", "b")
    assert shown(chains, chains.hit("a"))["b"].replaces == (Replaced("a", "EVOLVED_INTO"),)
    assert list(shown(chains, chains.hit("a"), chains.hit("b"), chains.hit("c"))) == ["b"]
    assert list(shown(chains, chains.hit("c"))) == ["b"]


def test_a_cycles_newest_member_may_be_archived() -> None:
    """Then the next newest is kept; when all are, what is valid before the cycle, or nothing."""
    chains = Chains(day("a", 1), day("b", 3, archived=True), day("c", 2)).link("a", "b").link("b", "c").link("c", "b")
    assert list(shown(chains, chains.hit("a"))) == ["c"]
    gone = Chains(day("a", 1), day("b", 3, archived=True), day("c", 2, archived=True))
    gone.link("a", "b").link("b", "c").link("c", "b")
    assert list(shown(gone, gone.hit("a"))) == ["a"]
    assert list(shown(gone, gone.hit("b"))) == []


def test_equally_old_members_of_a_cycle_are_decided_by_id() -> None:
    """The smallest."""
    chains = Chains(day("b", 1), day("a", 1)).link("a", "b").link("b", "a")
    assert list(shown(chains, chains.hit("b"))) == ["a"]
    assert list(shown(chains, chains.hit("a"))) == ["a"]


def long_chain(length: int) -> Chains:
    """m0 -> m1 -> ... with `length` links."""
    chains = Chains(*(day(f"m{number}", number + 1) for number in range(length + 1)))
    for number in range(length):
        chains.link(f"m{number}", f"m{number + 1}")
    return chains


def test_five_hops_are_walked_and_the_sixth_is_not() -> None:
    """Five are a whole chain; of six the fifth is shown, and said to be cut."""
    five, six = long_chain(5), long_chain(6)
    assert shown(five, five.hit("m0"))["m5"].replaces == (Replaced("m0", "EVOLVED_INTO"),)
    notes = Notes()
    found, queries = latest([six.hit("m0")], six, notes)
    assert [hit.memory.id for hit in found] == ["m5"]
    assert found[0].replaces == (Replaced("m0", "EVOLVED_INTO", truncated=True),)
    assert [(note.code, note.subject) for note in notes.kept] == [("truncated", "m0")]
    assert (queries, len(six.asked)) == (6, 6)


def test_a_cut_walk_shows_the_last_valid_memory_on_its_way() -> None:
    """When the fifth is archived, the fourth."""
    chains = Chains(*(day(f"m{number}", number + 1, archived=number == 5) for number in range(7)))
    for number in range(6):
        chains.link(f"m{number}", f"m{number + 1}")
    assert list(shown(chains, chains.hit("m0"))) == ["m4"]


def test_the_depth_can_be_chosen() -> None:
    """One hop is the least."""
    chains = long_chain(3)
    assert list(shown(chains, chains.hit("m0"), max_depth=1)) == ["m1"]
    with pytest.raises(ConfigError) as refused:
        latest([], chains, Notes(), max_depth=0)
    assert refused.value.field == "max_depth"


@pytest.mark.parametrize("names", [["ancient", "new", "gone"], ["gone", "new", "ancient"]])
def test_of_several_replacements_the_newest_valid_one_is_the_way(names: list[str]) -> None:
    """Whatever the order they are told in; of equally new ones the smallest id."""
    chains = Chains(day("a", 1), day("ancient", 2), day("new", 3), day("gone", 4, archived=True), day("also", 3))
    for name in names:
        chains.link("a", name)
    assert list(shown(chains, chains.hit("a"))) == ["new"]
    assert list(shown(chains.link("a", "also"), chains.hit("a"))) == ["also"]


def test_of_two_relations_to_one_memory_the_first_by_name_is_told() -> None:
    """Evolved before invalidated."""
    chains = Chains(day("a", 1), day("b", 2)).link("a", "b", "INVALIDATED_BY").link("a", "b", "EVOLVED_INTO")
    assert shown(chains, chains.hit("a"))["b"].replaces == (Replaced("a", "EVOLVED_INTO"),)


def test_each_memory_is_asked_about_once() -> None:
    """Many hits on one chain share its queries."""
    chains = long_chain(3)
    shown(chains, *(chains.hit(f"m{number}") for number in range(4)))
    assert chains.asked == [["m0", "m1", "m2", "m3"]]


def test_a_memory_without_a_time_is_the_oldest_of_a_cycle() -> None:
    """No exception, and the dated one stays."""
    chains = Chains(Memory(id="a", timestamp="soon"), day("b", 1)).link("a", "b").link("b", "a")
    assert list(shown(chains, chains.hit("a"))) == ["b"]
