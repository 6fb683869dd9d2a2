"""How much each feature of the judge counts. Written by `python -m bench.conflicts --write`; what they mean is said in
`conflicts.Features`."""

WEIGHTS = {
    "closeness": 2.17,
    "restated": 1.07,
    "exclusive": 5.10,
    "same_kind": 2.19,
    "same_subject": 3.89,
    "shared": 0.38,
    "shared_many": 1.79,
    "number_differs": 2.99,
    "denial_differs": 0.07,
    "says_now": 2.62,
    "asks": -0.49,
    "nothing_new": 0.08,
}
BIAS = -9.62
SURE = 0.5  # the probability from which on a memory is hinted at by itself, and a conflict is opened
