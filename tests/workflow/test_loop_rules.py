"""The loop's rules as pure functions, against an oracle that runs one iteration after the other."""

from hypothesis import example, given
from hypothesis import strategies as st

from qonduit_steps.loop import Limits, best, indices, judge

# Few distinct values, so that ties and scores equal to the threshold are common.
SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.79, 0.8, 0.8000000000000002, 0.9, 1.0]), min_size=12, max_size=12)
THRESHOLDS = st.sampled_from([-1.0, 0.5, 0.8, 0.9, 1.0])


def one_after_the_other(scores: list[float], threshold: float, max_iterations: int) -> tuple[list[float], int]:
    """The scores that count and the best iteration, by the plainest loop there is."""
    seen: list[float] = []
    leader = 0
    while len(seen) < max_iterations:
        score = scores[len(seen)]
        seen.append(score)
        if score > seen[leader]:
            leader = len(seen) - 1
        if score > threshold:
            break
    return seen, leader


def in_passes(scores: list[float], limits: Limits) -> tuple[list[float], int, int]:
    """The same through `indices` and `judge`, as the workflow does it; also how many iterations ran."""
    seen: list[float] = []
    leaders: list[int] = []
    ran = 0
    following = indices(0, limits)
    while following:
        assert following[0] == ran
        assert len(following) <= limits.width
        ran = following[-1] + 1
        results = [scores[index] for index in following]
        verdict = judge(following[0], results, limits)
        seen += results[: verdict.counted]
        leaders.append(verdict.best)
        assert verdict.passed == (seen[-1] > limits.threshold)
        following = verdict.next_indices
    return seen, max(leaders, key=lambda leader: (scores[leader], -leader)), ran


@given(SCORES, THRESHOLDS, st.integers(1, 12), st.integers(1, 13))
@example([0.8] * 12, 0.8, 10, 4)
@example([0.5, 0.9, 1.0, 1.0, *[0.0] * 8], 0.8, 7, 3)
def test_every_width_gives_the_result_of_one_iteration_after_the_other(
    scores: list[float], threshold: float, max_iterations: int, width: int
) -> None:
    seen, leader, ran = in_passes(scores, Limits(threshold, max_iterations, width))
    assert (seen, leader) == one_after_the_other(scores, threshold, max_iterations)
    assert len(seen) <= ran <= max_iterations
    assert ran - len(seen) < width


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1))
def test_the_best_is_the_earliest_of_the_greatest(scores: list[float]) -> None:
    assert best(scores) == scores.index(max(scores))


def test_a_score_equal_to_the_threshold_does_not_pass() -> None:
    assert judge(0, [0.8], Limits(0.8, 10)).next_indices == (1,)
    assert judge(0, [0.8000000000000002], Limits(0.8, 10)).next_indices == ()


def test_later_iterations_of_the_pass_that_ends_the_loop_do_not_count() -> None:
    verdict = judge(4, [0.1, 0.85, 0.99, 0.2], Limits(0.8, 10, 4))
    assert (verdict.counted, verdict.best, verdict.passed, verdict.next_indices) == (2, 5, True, ())


def test_the_last_pass_is_clipped_at_the_limit() -> None:
    assert indices(8, Limits(0.8, 10, 4)) == (8, 9)
    assert indices(10, Limits(0.8, 10, 4)) == ()
