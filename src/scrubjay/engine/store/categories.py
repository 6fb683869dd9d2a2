"""What sort of memory is it: a fact, a preference, an instruction …? Judged by meaning and a little grammar.

    text ───> signs of grammar in it, 0 or 1 each ──┐
                                                    ├── weights ──> one score per category; the highest wins
    vector <── the embedder ────────────────────────┘

The weights ship for the default model (`categories.npz`; `make vectors` fits them to labelled sentences in `bench`).
Another model compares a text with the EXAMPLES of each category instead. Without a vector the signs alone decide, and
a text without any is a fact. `custom` is only ever chosen by a caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from scrubjay.errors import EmbeddingError
from scrubjay.lazy import numpy as np
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Category

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrubjay.embedders.base import Embedder, Vector
    from scrubjay.engine.store.embedding import Embedding

    Numbers = NDArray[np.float32]

DETECTED = tuple(category for category in Category if category is not Category.CUSTOM)  # the order of the scores
READ = 400  # characters in which signs are looked for: what a memory is shows at its beginning
SHARPNESS = 0.02  # cosines with the right and a wrong category's examples differ by a few hundredths only


class Categoriser:
    """Chooses a category. Owns the model's view of what each one sounds like."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._examples: Numbers | None = None

    def category(self, text: str, vector: Vector | None) -> Category:
        """The likeliest of the eight; `vector` is the text's own, or its first part's, or None if there is none."""
        if not any(map(str.isalnum, text[:READ])):
            return Category.FACT  # a model has an opinion even on "!!!"
        found = signs(text)
        scores = None if vector is None else self._scores(found, vector)
        if scores is None:
            if not any(found):
                return Category.FACT
            scores = weights().of_signs_alone(found)
        if is_fragment(text):
            scores[DETECTED.index(Category.INSTRUCTION)] = float("-inf")
        return DETECTED[int(scores.argmax())]

    def _scores(self, found: list[float], vector: Vector) -> Numbers | None:
        """None when the model cannot say what it thinks of the examples."""
        embedder = self._embedding.embedder
        assert embedder is not None  # it made the vector
        known = weights()
        if known.fingerprint == embedder.fingerprint:
            return known.of_both(found, vector)
        if self._examples is None:
            try:
                self._examples = middles(embedder)
            except EmbeddingError:
                return None
        likeness: Numbers = self._examples @ vector
        scores: Numbers = known.of_signs_alone(found) + likeness / SHARPNESS
        return scores


# --- signs of grammar ------------------------------------------------------------------------------------------------

ORDERS = (
    "add|address|allow|answer|apply|ask|assume|avoid|back|be|begin|book|bring|build|call|change|check|choose|cite|"
    "confirm|convert|copy|create|decline|delete|deploy|describe|do|don't|double-check|end|enable|ensure|explain|export|"
    "fix|follow|forget|format|forward|give|greet|handle|hide|ignore|import|include|inform|install|keep|label|leave|let|"
    "limit|link|list|load|log|look|mention|merge|move|name|never|notify|offer|omit|only|open|order|pass|pick|place|"
    "please|point|post|prefix|print|provide|push|put|quote|read|recommend|refer|refrain|reject|release|remember|remind|"
    "remove|rename|repeat|replace|reply|report|respond|restart|return|review|round|run|save|say|schedule|search|send|"
    "set|share|show|sign|skip|speak|squash|start|stay|stop|store|suggest|summarise|summarize|switch|tag|take|talk|tell|test|"
    "translate|treat|try|turn|update|use|validate|verify|wait|warn|wrap|write"
)
KIN = (
    "mother|father|mum|mom|dad|parents?|sisters?|brothers?|siblings?|sons?|daughters?|kids?|child|children|twins?|"
    "wife|husband|spouse|fianc[eé]e?|girlfriend|boyfriend|ex|widow|widower|aunt|uncle|cousins?|nephews?|nieces?|"
    "grand(?:ma|pa|mother|father|parents?|sons?|daughters?|child|children)|god(?:mother|father|son|daughter|child)|"
    r"step\w+|half-\w+|\w+-in-law|in-laws|family"
)
BONDS = (
    "friends?|colleagues?|co-?workers?|boss|manager|supervisor|mentors?|assistant|neighbou?rs?|flatmates?|room-?mates?|"
    "landlord|teacher|trainer|coach|doctor|dentist|lawyer|adviser|accountant|clients?|partners?|contact|founders?|team"
)
SEASONS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|christmas|easter|"
    "spring|summer|autumn|winter"
)
DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday|weekend"
PAST = (
    "was|were|had|did|went|came|got|met|saw|took|gave|made|found|lost|left|won|fell|broke|bought|sold|ran|flew|drove|"
    "spent|became|began|told|said|hurt|quit|held|hit|stole|stolen|sent|paid|taught|wrote|ate|cut"
)
WISHES = (
    "hop(?:es?|ing)|plan(?:s|ning)?|intend(?:s|ing)?|aim(?:s|ing)?|aspir(?:es?|ing)|dream(?:s|ing)?|wish(?:es)?|"
    "try(?:ing)?|striv(?:es?|ing)|seek(?:s|ing)?|looking|determined|resolved|decided|working|going"
)


@dataclass(frozen=True, slots=True)
class Sign:
    """Something in the grammar that speaks for a category; how loudly, and against which others, is fitted."""

    name: str
    category: Category
    pattern: str  # of lower-case text


SIGNS = (
    Sign("order", Category.INSTRUCTION,
         rf"^(?:always|(?:{ORDERS})(?!\s+\w+\s+(?:is|are|was|has)\b))\b"),
    Sign("order_later", Category.INSTRUCTION,
         rf"(?:[,;.:]|\bthen|\band)\s+(?:always|{ORDERS})\s+(?!to\b)\w"),
    Sign("duty", Category.INSTRUCTION,
         r"\b(?:must|should|shall|ought to|ha(?:s|ve) to|not allowed to|forbidden|is expected to|requires?|"
         r"needs? an?)\b"),
    Sign("condition", Category.INSTRUCTION,
         r"^(?:if|when|whenever|before|after|unless|in|for|to)\b[^,.]*,\s*\w"),
    Sign("agent", Category.INSTRUCTION,
         r"\b(?:you|your|the assistant|the agent|me|my behalf)\b"),
    Sign("taste", Category.PREFERENCE,
         r"\b(?:prefer\w*|favou?r(?:s|ed|ites?)?|(?:dis)?likes|(?:i|we|they|don't|doesn't|not|really) (?:dis)?like|"
         r"loves?(?! to\b)|hates?|adores?|enjoys?|detests?|fond of|keen on|fan of)\b"),
    Sign("distaste", Category.PREFERENCE,
         r"\b(?:can(?:'t|not) stand|annoys?|boring|tiring|avoids)\b"),
    Sign("choice", Category.PREFERENCE,
         r"\b(?:rather|sooner|more|better|best|most|over)\b.*\b(?:than|to|over|of|with)\b|(?:\bwould|'d) rather\b"),
    Sign("wish", Category.GOAL,
         rf"\bwants?\b|\bplanning an?\b|\b(?:{WISHES}) (?:to|for|of|on|towards?)\b"),
    Sign("would_like", Category.GOAL,
         r"(?:\bwould|'d) (?:like|love) to\b|\bsav(?:es?|ing) (?:up )?for\b"),
    Sign("target", Category.GOAL,
         r"\b(?:goals?|aims?|target|objectives?|ambition|dream|plan|purpose|milestone)\b"
         r"(?: of \w+ \w+)?(?: for [\w ]+)? ?(?:is|are|:|to)"),
    Sign("deadline", Category.GOAL,
         r"\b(?:by|before|within|until) (?:the |next |this |early |late )*"
         rf"(?:end|20\d\d|{SEASONS}|year|quarter|\w+ (?:years?|months?))\b"),
    Sign("some_day", Category.GOAL,
         r"\b(?:some ?day|eventually|long-term|in the long run|one day|ultimate(?:ly)?)\b"),
    Sign("ability", Category.SKILL,
         r"\b(?:can|can't|cannot|could|able to|capable of|knows?|how to|speaks?|understands?|master(?:s|ed)|plays)\b"),
    Sign("level", Category.SKILL,
         r"\b(?:fluent(?:ly)?|proficient|skill\w*|experts?|expertise|experienced?|certifi\w+|qualified|trained|talented|"
         r"beginner|novice|advanced|intermediate|(?:familiar|comfortable) with|licen[cs]e|level|knowledge|strong|weak|"
         r"basics|inside out|good (?:at|with))\b"),
    Sign("kin", Category.RELATIONSHIP,
         rf"\b(?:{KIN})\b"),
    Sign("bond", Category.RELATIONSHIP,
         rf"\b(?:{BONDS})\b"),
    Sign("tie", Category.RELATIONSHIP,
         r"\b(?:married|engaged|divorced|dating|reports? to|works? (?:under|with|closely)|lives? with|looks? after|"
         r"shares? a|each other|together|mentors|supervises|leads|relationship)\b"),
    Sign("someones", Category.RELATIONSHIP,
         r"(?:\bis|\bare|^[\w ]+,) (?:an? |like |one of )?"
         r"(?:(?:my|our|their|his|her)\b|(?:the )?\w+'s? \w|the [\w-]+ of)"),
    Sign("when", Category.EVENT,
         rf"\b(?:yesterday|tomorrow|tonight|today|ago|(?:last|next|this) (?:night|week|month|year|morning|evening|"
         rf"{SEASONS}|{DAYS})|(?:on|over|at|since) (?:the )?(?:{DAYS}|\d+(?:st|nd|rd|th))|"
         rf"(?:in|since|during) (?:early |late )?(?:{SEASONS}))\b"),
    Sign("date", Category.EVENT,
         rf"\b(?:\d\d?(?:st|nd|rd|th)? (?:{SEASONS})|(?:{SEASONS}) \d\d?|in (?:19|20)\d\d|\d{{4}}-\d\d-\d\d)\b"),
    Sign("clock", Category.EVENT,
         r"\b(?:\d\d?[:.]\d\d|\d\d? ?(?:am|pm)|at (?:noon|midnight|\d\d?))\b"),
    Sign("past", Category.EVENT,
         rf"\b(?:(?!need|speed|feed|seed|embed|hundred|shed)\w{{2,}}ed|{PAST})\b"),
    Sign("occasion", Category.EVENT,
         r"\b(?:meeting|appointment|party|wedding|funeral|conference|trip|flight|outage|incident|anniversary|exam|"
         r"t(?:akes?|ook) place|happened|scheduled)\b"),
    Sign("now", Category.CONTEXT,
         r"\b(?:current(?:ly)?|at (?:the moment|present|this point)|now|presently|so far|still|yet|for the time being|"
         r"these days|this (?:week|quarter|sprint)|in the (?:middle|process) of|half|paused|until|left)\b"),
    Sign("doing", Category.CONTEXT,
         r"(?:\b(?:is|are|am|been)|'m|'re) (?:\w+ly |still |only |now )?\w{2,}ing\b"),
    Sign("whereabouts", Category.CONTEXT,
         r"(?:\b(?:is|are|am)|'m|'re) (?:\w+ )?(?:on|at|in|away|between|out of|under|stuck|busy|short)\b"),
    Sign("talk", Category.CONTEXT,
         r"\b(?:conversation|discuss\w*|session|chat|topic|background|we left off|ticket|branch|sprint)\b"),
    Sign("state", Category.FACT,
         r"\b(?:is|are|has|have|owns?|holds?|lives?|works? (?:as|at|for)|uses?|runs? on|costs?|contains?|consists?|"
         r"supports?|belongs?|stores?|measures?|weighs?|expires?|named|called|located|built|born|founded|kept|written)\b"),
    Sign("being", Category.FACT,
         r"\b(?:is|are|am) (?:an?|\d[\w.]*|not|\w+ed|\w+ic|\w+ant)\b"),
    Sign("number", Category.FACT,
         r"\d"),
    Sign("code", Category.FACT,
         r"`|[a-z0-9]_[a-z0-9]|\w\(|https?://|/\w+/|\w\.(?:py|js|ts|rs|go|yaml|json|toml|md)\b"),
    Sign("label", Category.FACT,
         r"^[\w ]{3,40}: ?\S"),
)  # fmt: skip


def signs(text: str) -> list[float]:
    """1 for each sign that the beginning of the text bears, in the order of SIGNS, else 0."""
    plain = text[:READ].lower().replace("’", "'").lstrip(" \t\r\n-*•>#\"'`")
    return [float(find(plain) is not None) for find in compile_signs()]


# --- fragments -------------------------------------------------------------------------------------------------------

MORE_ORDERS = "make|stick|pin|reveal|prefer|respect|trust|draft|plan|back|note|mind|watch|wash|feed|water|pay|buy|turn"
NOUNS_TOO = (  # orders that are things as well: "list of suppliers", "test results"
    "address|answer|book|build|call|change|check|copy|draft|end|export|format|import|label|limit|link|list|load|log|look|"
    "merge|move|name|note|order|pass|pick|place|plan|point|post|prefix|print|push|quote|release|reply|report|return|"
    "open|review|round|run|schedule|search|set|share|show|sign|start|stop|store|switch|tag|talk|test|turn|update|use|wait|watch"
)
VERB = (  # what no bare name of a thing holds
    r"\b(?:is|are|was|were|be|been|am|has|have|had|do|does|did|can|could|will|would|may|might|must|should|shall|"
    r"needs?|wants?|likes?|requires?|reveals?|always|never|please|every|all|only|before|after|when|whenever|if|unless|until|don't|not|"
    r"you|your|me|to (?!the\b|an?\b|my\b|our\b)\w+)\b"
)
THING = (
    rf"^(?:(?:{NOUNS_TOO})\s+(?:\w+\s+)?(?:of|from|about)\b"
    r"|(?:book|call|draft|move|note|order|plan|post|release|report|review|talk|test|update)\s+(?:\w+s\s+)?(?:with|for|on|to)\b)"
)
FRAGMENT_WORDS = 9


@cache
def fragment_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in (VERB, rf"^(?:{ORDERS}|{MORE_ORDERS})\b", THING))


def is_fragment(text: str) -> bool:
    """Whether it only names a thing, without a verb: "notes from the meeting" asks nothing of anybody."""
    plain = text[:READ].lower().replace("’", "'").strip(" \t\r\n-*•>#\"'`.")
    if len(plain.split()) > FRAGMENT_WORDS or re.search(r"[,;:!?\n]", plain):
        return False
    verb, order, thing = fragment_patterns()
    return not verb.search(plain) and (not order.search(plain) or thing.search(plain) is not None)


@cache
def compile_signs() -> tuple[Callable[[str], re.Match[str] | None], ...]:
    """How each sign is looked for."""  # 9 ms: not before a memory is stored
    return tuple(
        re.compile(sign.pattern).match if sign.pattern.startswith("^") else re.compile(sign.pattern).search
        for sign in SIGNS
    )


# --- weights ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryWeights:
    """What is fitted: rows are signs (or numbers of a vector), columns are DETECTED."""

    fingerprint: str  # of the model whose vectors they are for
    vector: Numbers
    signs: Numbers
    bias: Numbers
    signs_alone: Numbers  # fitted without vectors, for when there is none or it is another model's
    bias_alone: Numbers

    def of_both(self, found: list[float], vector: Vector) -> Numbers:
        return vector @ self.vector + found @ self.signs + self.bias

    def of_signs_alone(self, found: list[float]) -> Numbers:
        return found @ self.signs_alone + self.bias_alone


@cache
def weights() -> CategoryWeights:
    """Those that come with the package."""
    with resources.files("scrubjay.engine.store").joinpath("categories.npz").open("rb") as stream:
        shipped = np.load(stream, allow_pickle=False)
        numbers = {name: shipped[name].astype(np.float32) for name in shipped.files if name != "fingerprint"}
        return CategoryWeights(fingerprint=str(shipped["fingerprint"]), **numbers)


def write_shipped(fitted: CategoryWeights, path: str) -> None:
    """Rebuild the shipped file; `make vectors` calls it after a change of SIGNS, the sentences or the model."""
    numbers = {name: getattr(fitted, name) for name in CategoryWeights.__slots__ if name != "fingerprint"}
    halves = {name: value.astype(np.float16) for name, value in numbers.items()}
    np.savez_compressed(path, allow_pickle=False, fingerprint=np.array(fitted.fingerprint), **halves)


# --- for other models ------------------------------------------------------------------------------------------------

EXAMPLES = {
    Category.FACT: (
        "User is 42 years old and lives near Bergen",
        "User is allergic to shellfish",
        "The user works as a veterinarian",
        "The billing service is written in Go and uses PostgreSQL",
        "The company has 240 employees",
        "The user owns a grey car",
    ),
    Category.PREFERENCE: (
        "User prefers tea to coffee",
        "The user likes short answers",
        "User hates early phone calls",
        "My favourite colour is green",
        "User enjoys jazz while working",
        "The team prefers small pull requests",
    ),
    Category.INSTRUCTION: (
        "Always answer in British English",
        "Never commit directly to the main branch",
        "Run the linter before every commit",
        "When the user asks for a recipe, give amounts in grams",
        "The assistant must ask before deleting a file",
        "Please keep summaries short",
    ),
    Category.CONTEXT: (
        "User is currently debugging a memory leak",
        "The conversation is about choosing a mortgage",
        "At the moment the build is red",
        "The user is working from a hotel this week",
        "So far we have migrated four of nine services",
        "The project is in its testing phase",
    ),
    Category.RELATIONSHIP: (
        "Anna is the user's sister",
        "User is married to Thomas",
        "Priya reports to Daniel",
        "The user's best friend is called Olaf",
        "User has two sons, Ben and Elias",
        "Our main contact at the supplier is Mr Okafor",
    ),
    Category.SKILL: (
        "User speaks fluent Portuguese",
        "The user is an expert in Kubernetes",
        "User knows how to sail",
        "User has ten years of experience with Java",
        "I can play the cello",
        "The user is a beginner in Rust",
    ),
    Category.GOAL: (
        "User wants to run a marathon next year",
        "The user plans to move to Canada",
        "Our aim is to halve the loading time",
        "User is saving up for a house",
        "The user hopes to become a team lead",
        "We want to launch the beta in October",
    ),
    Category.EVENT: (
        "User visited Rome in May 2019",
        "We released version 2.0 on 14 March",
        "The user's daughter was born last Tuesday",
        "User has a dentist appointment on Monday at 10:30",
        "The server crashed at night and was down for two hours",
        "User moved to Copenhagen in 2021",
    ),
}


def middles(embedder: Embedder) -> Numbers:
    """The mean vector of each category's examples, at length 1."""
    vectors = embedder.embed([sentence for category in DETECTED for sentence in EXAMPLES[category]])
    means = np.stack(vectors).reshape(len(DETECTED), -1, embedder.dimension).mean(axis=1)
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), dtype=np.float32)
