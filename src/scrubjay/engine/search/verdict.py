"""How likely each hit answers the question: its score, from 0 to 1, and the label that follows from it.

    none < 0.03 <= weak < 0.5 <= strong

Each hit has its own probability. Three things decide it: how near it is to the question in meaning, how much of the
question's words it holds, and how far its score in the ranking stands above those of its best rivals. There is one set
of weights for a bare question, and one for a question with other wordings (`also`), of which more can be expected.
docs/lab/retrieval.md says what each is worth.
"""

from __future__ import annotations

from scrubjay.lazy import numpy as np
from scrubjay.values.search import Column, Verdict

STRONG = 0.5
BEYOND_DOUBT = 0.9  # what a flagged memory needs: one word that a secret shares with a question may make it strong
WEAK = 0.03  # of a hundred questions with an answer three or four have no hit above it
WORDED = 0.5  # a hit that holds this share of the question's words is never called none: one stranger in thirty does
RIVALS = 5  # hits that one is compared with
UNRELATED = 0.25  # score of a rival that a small store lacks: about what a hit gets that has nothing to do with it

# Fitted by `python -m training.labels` on worlds with phrases and wordings written blind, with and without either.
BARE = {"bias": -5.05, "meaning": 6.38, "words": -0.91, "above": 7.22}  # a question alone
REWORDED = {"bias": -7.59, "meaning": 8.39, "words": -0.93, "above": 11.04}  # a question with other wordings


def label_of(score: float) -> Verdict:
    """What a score says."""
    return Verdict.STRONG if score >= STRONG else Verdict.WEAK if score >= WEAK else Verdict.NONE


def facts_about(scores: Column, similarities: Column, word_scores: Column) -> dict[str, Column]:
    """What the weights weigh of each hit."""
    scores = np.asarray(scores, np.float64)
    best = np.sort(np.append(scores, [UNRELATED] * (RIVALS + 1 - len(scores))))[::-1][: RIVALS + 1]
    others = np.where(scores >= best[-1], best.sum() - scores, best[:-1].sum()) / RIVALS
    return {"meaning": np.asarray(similarities), "words": np.asarray(word_scores), "above": scores - others}


def chances(scores: Column, similarities: Column, word_scores: Column, *, reworded: bool) -> Column:
    """How likely each hit answers the question, by its score in the ranking, its similarity and its words."""
    weights = REWORDED if reworded else BARE
    facts = facts_about(scores, similarities, word_scores)
    logits = weights["bias"] + sum(weights[name] * column for name, column in facts.items())
    return np.maximum(1 / (1 + np.exp(-logits)), np.where(facts["words"] >= WORDED, WEAK, 0.0))
