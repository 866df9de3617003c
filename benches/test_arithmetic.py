"""Tests of the scripts' own arithmetic; tests/scripts.rs runs them."""
import math
import random
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "accuracy")]
import bars  # noqa: E402
from comparison import compare, weight_of  # noqa: E402


class Comparison(unittest.TestCase):
    def test_weights_are_summed_over_the_stacks_that_match(self):
        found = {("a", ("f", "main")): 3, ("b", ("f", "main")): 4, ("a", ("g", "main")): 5}
        self.assertEqual(weight_of(found, lambda _, functions: "f" in functions), 7)
        self.assertEqual(weight_of(found, lambda thread, _: thread == "a"), 8)

    def test_true_shares_have_no_error_whatever_they_are_counted_in(self):
        self.assertEqual(compare([1e9, 3e9], 400, [25, 75])[:3], (0, 0, 0))

    def test_chi_square_is_that_of_the_counts(self):
        # 60 and 40 heads and tails of a fair coin: (60 - 50)^2 / 50 twice; two deviations of 5.
        chi_square, error, over, shares, true = compare([60, 40], 100, [1, 1])
        self.assertAlmostEqual(chi_square, 4)
        self.assertAlmostEqual(error, 0.1)
        self.assertAlmostEqual(over, 2)
        self.assertEqual((shares, true), ([0.6, 0.4], [0.5, 0.5]))

    def test_nothing_recorded_is_wrong_and_no_crash(self):
        self.assertEqual(compare([0, 0], 0, [1, 3])[1], 0.75)

    def test_chance_alone_stays_near_its_degrees_of_freedom(self):
        draw, truth, runs = random.Random(7), [1, 2, 3, 5, 8, 13, 21, 34, 55, 89], 200
        total = 0
        for _ in range(runs):
            drawn = draw.choices(range(10), truth, k=2000)
            total += compare([drawn.count(number) for number in range(10)], 2000, truth)[0]
        self.assertLess(abs(total / runs - 9), 4 * math.sqrt(18 / runs))


class Bars(unittest.TestCase):
    def test_a_value_at_its_limit_is_met_and_one_beyond_is_not(self):
        bar = bars.Bar("figure", "name", *bars.most(1.25))
        self.assertEqual(bars.row(bar, {"name": (1.25, "")})[4], "met")
        self.assertEqual(bars.row(bar, {"name": (1.26, "")})[4], "**not met**")
        self.assertEqual(bars.row(bars.Bar("figure", "name", *bars.least(4, "x")), {"name": (3.9, "")})[4], "**not met**")

    def test_what_was_not_measured_is_not_met(self):
        self.assertEqual(bars.row(bars.BARS[0], {})[2:5], ["-", "", "not measured"])

    def test_no_two_bars_show_the_same_figure(self):
        names = [bar.name for bar in bars.BARS]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
