"""The arithmetic of the comparison: shares of weights against true shares, and what chance allows.

Not here: where the weights come from.
"""
import math


def weight_of(found, matches):
    """The weight of stacks for which `matches(thread, functions)`."""
    return sum(weight for (thread, functions), weight in found.items() if matches(thread, functions))


def compare(weights, count, truth):
    """(chi-square, largest error of a share, the worst in standard deviations of chance for so many samples, shares,
    true shares)."""
    whole, true_whole = sum(weights), sum(truth)
    shares = [weight / whole if whole else 0.0 for weight in weights]
    true = [value / true_whole for value in truth]
    chi_square = sum(count * (share - right) ** 2 / right for share, right in zip(shares, true))
    errors = [abs(share - right) for share, right in zip(shares, true)]
    over = max(error / math.sqrt(right * (1 - right) / max(count, 1)) for error, right in zip(errors, true))
    return chi_square, max(errors), over, shares, true
