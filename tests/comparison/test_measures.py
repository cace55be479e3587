"""Measures of answers that are known, and tasks that are what they say."""

from collections import Counter

import pytest
import torch

from indel.comparison.measures import Measures, Sizes, error_rate, total_variation
from indel.comparison.tasks import cut_gaps, with_typing_errors
from indel.data import ArithmeticData, BatchStream, Sequences, Text8Sample
from indel.levenshtein import edit_distance
from support.small_methods import Knowing

SIZES = Sizes(likelihood=8, samples=8, gaps=10, repairs=10, batch_size=3)
ARITHMETIC = ArithmeticData(numbers=16, max_step=2, min_length=3, max_length=6)


def measures(data: BatchStream = ARITHMETIC) -> Measures:
    return Measures(data, SIZES)


def test_the_datas_own_sequences_are_perfect() -> None:
    own = measures()
    clean = ARITHMETIC.examples(0, 10, "test").to_lists()
    rows = ARITHMETIC.examples(0, 8, "train").to_lists()
    method = Knowing(rows, filled=clean, repaired=clean, likelihood_kind="exact")
    found = own.all(method)
    assert found["likelihood"]["kind"] == "exact"
    assert found["likelihood"]["bits_per_token"] == pytest.approx([1.0, 0.0], abs=1e-6)
    assert found["samples"]["error_rate"] == [0.0, 0.0]
    assert found["samples"]["valid"] == [1.0, 0.0]
    assert found["samples"]["unique"][0] == len(set(map(tuple, rows))) / 8
    assert found["samples"]["calls"] == 3
    assert found["infill_known_length"]["exact"] == [1.0, 0.0]
    assert found["infill_known_length"]["calls"] == [5, None]
    assert found["infill_unknown_length"] is None
    assert found["repair"]["after"] == [0.0, 0.0]
    wrong = sum(map(edit_distance, own.typed, clean))
    assert found["repair"]["before"][0] == pytest.approx(wrong / sum(map(len, clean)))
    assert found["repair"]["before"][0] > 0


def test_wrong_answers_count_as_wrong() -> None:
    own = measures()
    longer = [[*a, 0, 0, 0, 0, 0, *b] for a, b in zip(own.gaps.left, own.gaps.right, strict=True)]
    found = own.all(Knowing([[3, 3], [1, 9]], filled=longer))
    assert found["likelihood"] is None
    assert found["repair"] is None
    assert found["samples"]["valid"][0] == 0.0
    assert found["samples"]["length_distance"] == [1.0, None]
    assert found["samples"]["unique"] == [0.25, None]
    assert found["infill_known_length"]["exact"][0] == 0.0
    assert found["infill_known_length"]["right_length"][0] == 0.0


def test_an_answer_that_changes_what_was_given_is_refused() -> None:
    own = measures()
    changed = [[*a, *b, 1 - min(1, b[-1])] for a, b in zip(*own.gaps[:2], strict=True)]
    with pytest.raises(ValueError, match="knowing changed what stands behind a gap"):
        own.infill(Knowing([[1]], filled=changed), known=True)


def test_words_are_looked_up_in_the_training_text() -> None:
    text8 = measures(Text8Sample(chunk_length=32))
    spelled = [text8.data.vocabulary.encode("xx of the qqqqj xx")]
    assert text8.quality(spelled)["known_words"][0] == pytest.approx(2 / 3)
    lines = measures(Sequences(["a cat", "a dog", "the cow", "the ant", "a fly"]))
    train = lines.data.examples(0, 1, "train").to_lists()
    assert lines.quality(train)["known_words"][0] == 1.0
    missing = [lines.data.vocabulary.encode("god tac")]
    assert lines.quality(missing)["known_words"][0] == 0.0
    # Nothing to say about bytes or integers.
    assert "known_words" not in measures(Sequences([[0, 1], [1, 2], [2, 0]])).quality([[0]])


def test_a_point_of_the_curve_has_means_alone() -> None:
    found = measures().during_training(Knowing([[2, 3, 4]], likelihood_kind="bound"))
    assert found["bits_per_token"] == pytest.approx(1.0)
    assert found["valid"] == 1.0
    assert all(isinstance(value, float) for value in found.values())


def test_no_example_of_ones_own_data_counts_twice() -> None:
    data = Sequences([[0, 1], [1, 2], [2, 0], [0, 2, 1]])
    found = measures(data).likelihood(Knowing([[0]], likelihood_kind="exact"), 8, "test")
    assert found is not None
    assert found["nats_per_sequence"][1] is None, "one sequence has no standard error"


def test_distances_and_rates() -> None:
    assert total_variation(Counter([1, 1, 2]), Counter([2, 1, 1])) == 0.0
    assert total_variation(Counter([1]), Counter([2])) == 1.0
    assert error_rate([[1], [2, 2]], [[1, 1], [2, 2]])[0] == 0.25


def test_gaps_are_a_quarter_and_leave_both_ends() -> None:
    rows = [list(range(n)) for n in range(3, 40)]
    gaps = cut_gaps([[0], [0, 1], *rows], generator=torch.Generator().manual_seed(0))
    joined = [a + b + c for a, b, c in zip(gaps.left, gaps.taken, gaps.right, strict=True)]
    assert joined == rows
    assert [len(taken) for taken in gaps.taken] == [max(1, len(row) // 4) for row in rows]
    assert all(gaps.left)
    assert all(gaps.right)


def test_typing_errors_are_as_frequent_as_asked_for_and_of_three_kinds() -> None:
    generator = torch.Generator().manual_seed(0)
    clean = [[0] * 20_000]
    (typed,) = with_typing_errors(clean, 5, rate=0.3, generator=generator)
    # A replaced token is another one; an inserted one may be 0 too.
    others = sum(token != 0 for token in typed)
    assert others / 20_000 == pytest.approx(0.1 + 0.1 * 4 / 5, abs=0.01)
    assert len(typed) / 20_000 == pytest.approx(1.0, abs=0.01)
    assert with_typing_errors([[1, 2]], 5, rate=0.0, generator=generator) == [[1, 2]]
    with pytest.raises(ValueError, match="rate must be at most 1 and vocabulary_size at least 2"):
        with_typing_errors([[0]], 1, rate=0.1, generator=generator)
