"""What a caller left out, found in the text: category, tags, importance.

How much does a memory matter, if no one said? A sum of named parts, from what the text and its caller tell:

    importance = (category + explicit + personal + specific + emphatic + sweeping - doubtful) · (½ + ½ confidence)

Cut to 0..1 and rounded to two places. A plain fact is worth about a half.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine.decisions.mentions import without_edges
from scrubjay.text import tokens
from scrubjay.text.languages import in_another_language
from scrubjay.text.reading import READ as READ_AT_START
from scrubjay.text.reading import read as read_text
from scrubjay.text.words import STOP_WORDS, WORDS_REMEMBERED
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Category, Kind, Memory, NewMemory, Source

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.engine import Engine

# What is asked of an agent, and what someone is like, stays useful longest; what is going on just now, shortest.
CATEGORY = {
    Category.INSTRUCTION: 0.70,
    Category.PREFERENCE: 0.65,
    Category.GOAL: 0.60,
    Category.RELATIONSHIP: 0.60,
    Category.SKILL: 0.55,
    Category.CUSTOM: 0.50,
    Category.FACT: 0.45,
    Category.EVENT: 0.45,
    Category.CONTEXT: 0.35,
}
EXPLICIT = 0.10  # someone asked for it to be remembered
PERSONAL = 0.05  # it is about the user, or said by one
SPECIFIC = 0.03  # each name or number, up to three
MOST_SPECIFIC = 3
EMPHATIC = 0.10  # it says itself that it matters
SWEEPING = 0.05  # it holds every time or everywhere
DOUBTFUL = 0.10  # whoever said it was not sure

ABOUT_ONE = re.compile(r"\b(?:users?|i|me|my|mine|we|us|our)\b")
EMPHASIS = re.compile(
    r"\b(?:important(?:ly)?|critical(?:ly)?|crucial|urgent(?:ly)?|essential|vital|mandatory|must|never|danger(?:ous)?|"
    r"emergenc(?:y|ies)|life-threatening|severe(?:ly)?|allergic|allerg(?:y|ies)|deadlines?|confidential|"
    r"remember (?:that|to|this)|don't forget|do not forget)\b"
)
SWEEP = re.compile(r"\b(?:always|all|every|everything|everywhere|only|any|whenever|at all times)\b")
DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|probably|apparently|supposedly|not sure|unsure|i think|i guess)\b"
)


def enrich(engine: Engine, memory: Memory, new: NewMemory, vector: Vector | None) -> Memory:
    """The memory with what its caller left out."""
    return _complete(memory, new, category_of(engine, memory, new, vector), auto_tags(memory.text))


def enrich_all(
    engine: Engine, memories: Sequence[Memory], news: Sequence[NewMemory], vectors: Sequence[Vector | None]
) -> list[Memory]:
    """The same of many. One thing is found for all of them before the next: what it takes to find it is then still in
    the processor's cache, which texts that are embedded meanwhile empty again and again."""
    in_turn = engine.parts.embedding.yielding_gil
    given = in_turn(zip(memories, news, vectors, strict=True))
    categories = [category_of(engine, memory, new, vector) for memory, new, vector in given]
    tags = [auto_tags(memory.text) for memory in in_turn(memories)]
    return [_complete(*each) for each in in_turn(zip(memories, news, categories, tags, strict=True))]


def _complete(memory: Memory, new: NewMemory, category: Category, tags: tuple[str, ...]) -> Memory:
    found = new.importance
    if found is None:
        found = importance(memory.text, category=category, source=memory.source, confidence=memory.confidence)
    return replace(memory, category=category, auto_tags=tags, importance=found)


def category_of(engine: Engine, memory: Memory, new: NewMemory, vector: Vector | None) -> Category:
    if new.category:
        return new.category
    if memory.kind is Kind.CHECKPOINT:
        return Category.CONTEXT
    found = engine.parts.categoriser.category(memory.text, vector)
    if memory.kind is Kind.DECISION:  # it either tells others what to do, or says what is the case
        return Category.INSTRUCTION if found is Category.INSTRUCTION else Category.FACT
    return found


def importance(text: str, *, category: Category, source: Source, confidence: float) -> float:
    """0..1 in steps of a hundredth; never falls when source, confidence, names or emphasis grow."""
    total = sum(parts(text, category=category, source=source).values())
    return round(min(1.0, max(0.0, total * (0.5 + 0.5 * confidence))), 2)


def parts(text: str, *, category: Category, source: Source) -> dict[str, float]:
    """What each part adds, by name."""
    plain = text[:READ_AT_START].lower().replace("’", "'")
    return {
        "category": CATEGORY[category],
        "explicit": EXPLICIT if source is Source.EXPLICIT else 0.0,
        "personal": PERSONAL if ABOUT_ONE.search(plain) else 0.0,
        "specific": SPECIFIC * min(MOST_SPECIFIC, len(read_text(text).specifics)),
        "emphatic": EMPHATIC if EMPHASIS.search(plain) else 0.0,
        "sweeping": SWEEPING if SWEEP.search(plain) else 0.0,
        "doubtful": -DOUBTFUL if DOUBT.search(plain) else 0.0,
    }


# --- what is a text about, in a few words? Key phrases, best first ---------------------------------------------------
#
#     User prefers dark mode in all applications
#     ──── ─────── ········· ── ─── ············       ── ends a phrase, ·· is one
#
# A phrase is a run of up to three words between words that say little (stop words, verbs, dates) and punctuation. It
# counts for more the more words it has, the more often it comes, the earlier, and if it holds names or identifiers.
# English is understood best; scripts without spaces give no phrases at all rather than wrong ones. Linear in the text.

MOST = 5  # phrases of one text
LONGEST = 3  # words of a phrase
MAX_PHRASE = 50  # characters
MAX_WORD = 30  # characters; what is longer is a key or a hash
READ = 8_000  # characters: a longer text has said by then what it is about

# A word, with what an apostrophe adds. Compounds (e-mail, snake_case, config.yaml) are one word, as are C++ and C#.
# Possessive, so that nothing is tried a second way.
LETTERS = r"[^\W_]++(?:[\u0300-\u036f]++[^\W_]*+)*+"
WORD = rf"({LETTERS}(?:[_.\-]{LETTERS})*+(?:\+\+|#)?)(?:['’](\w++))?"
WITH_GAP = re.compile(rf"([\W_]*+)(?:{WORD}|\Z)")  # what is before a word, the word, its ending; at the end no word
ENDS = frozenset(".!?:\n")  # of a sentence
CHUNK = re.compile(r"\S++")
# Scripts without spaces, and those whose vowel signs Python takes for no letters (Devanagari … Sinhala).
UNREADABLE = (
    ("\u0900", "\u109f"),
    ("\u1100", "\u11ff"),
    ("\u1780", "\u17ff"),
    ("\u2e80", "\ud7ff"),
    ("\uf900", "\ufaff"),
    ("\uff66", "\uffdc"),
    ("\U0001b000", "\U0001b16f"),
    ("\U00020000", "\U0003ffff"),
)
# Letters and digits mixed at length are a token, not a word; so is an id, of which one in fifty has no digit.
SECRET = re.compile(r"(?=.*\d)(?=.*[a-zA-Z]).{16,}|mem_[0-9a-z]{12}\Z")

VERBS = frozenset(
    """
    add adopt agree aim allow annoy answer arrive ask attend avoid beat become begin believe belong break bring buy
    call care change choose come consider consist contain crash create decide describe die discuss dislike drink drive
    eat end enjoy ensure expect explain fail fall favor favour feel find finish fly follow forget get give go handle
    happen hate have hear help hold hope include intend join keep know lead learn leave let like listen live look lose
    love make mean meet mention move need own pay plan play prefer put read receive remember report require run save
    say see seem sell send set share show sit speak spend start stay stop store study support take talk teach tell
    think travel try turn understand update use visit wait walk want watch wear win wish work write
    """.split()  # noqa: SIM905 -- read as words
)
PAST = frozenset(
    """
    ate became began born bought brought built came chose felt found gave given gone got heard held kept knew known led
    left lost made meant met paid ran said sat saw seen sent sold spent spoke taken taught thought told took went wore
    won written wrote
    """.split()  # noqa: SIM905
)
SAYING_LITTLE = frozenset(
    """
    able above according actually ago almost along already although always among another any anybody anyone anything
    around available away back bad based behind below besides best better big bit cannot case certain comfortable
    course current currently day days different done else end enough especially etc even ever every everybody everyone
    everything example except far favorite favourite first fond full good great half herself himself hour hours however
    important instead itself keen kind last late later least less little long lot main many may maybe might minute
    minutes moment month months much must myself near nearly never new next nobody none nothing number often old one
    ones others ourselves part people per perhaps person please possible present previous quite rather ready really
    right second several shall since small somebody someone something sometimes somewhere soon sort still sure team
    themselves thing things third though time times today together tomorrow tonight toward towards type unless up upon
    user users usually various via want way week weekend weeks well whatever whenever wherever whether whole within
    without year years yes yesterday yet yourself
    zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand
    sixty seventy eighty ninety
    january february march april june july august september october november december spring summer autumn winter
    monday tuesday wednesday thursday friday saturday sunday morning afternoon evening night am pm
    class const def else false function import let null public return self static true var void
    """.split()  # noqa: SIM905
)
# The commonest little words of a few other languages, without those that are good English.
ELSEWHERE = frozenset(
    """
    der das den dem ein eine einen einem einer und ist sind nicht mit von zu auf für im bei ich er sie wir ihr auch
    le la les un une des et est sont pas avec de du au aux dans je il elle nous vous qui que sur plus
    el los las una y es son con por para del al que en su se lo gli che di della sono non per
    o os uma e do da em na não het een en niet van op zijn met
    """.split()  # noqa: SIM905
)
NAMING_OTHERS = ("builds", "debates", "synthesizes", "supersedes")  # it may name other decisions
LITTLE = STOP_WORDS | SAYING_LITTLE | ELSEWHERE | PAST
NAMES_BEGIN = frozenset(("big", "good", "great", "little", "long", "new", "old"))  # New York, but not a new job
NOUNS_IN_LY = frozenset(("assembly", "family", "supply", "anomaly", "italy", "butterfly"))
NOUNS_IN_ED = frozenset(("bed", "red", "seed", "feed", "speed", "weed", "shed", "breed", "greed", "sled", "led", "med"))


@dataclass(frozen=True, slots=True)
class PhraseWord:
    text: str  # as it is shown: lower case
    stem: str
    telling: bool  # a name, an identifier or an abbreviation
    has_letters: bool


OTHER_LETTERS = re.compile("[^\\W\\d_a-zA-Z\u00c0-\u024f]+")


def auto_tags(text: str) -> tuple[str, ...]:
    """At most five key phrases, each once, in lower case; none if the text names nothing."""
    if in_another_language(text):  # its small words are not known here: phrases would be made of them
        text = OTHER_LETTERS.sub("\n", text)
        if in_another_language(text) or not text.strip():
            return ()
    text = text[:READ]
    lower = text.lower()
    found = phrases(without_edges(text) if any(word in lower for word in NAMING_OTHERS) else text)
    keys = [tuple([word.stem for word in phrase]) for phrase in found]
    often, repeated = Counter([stem for key in keys for stem in key]), Counter(keys)
    first: dict[tuple[str, ...], int] = {}
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    scores = {key: score(found[place], often, repeated[key], place) for key, place in first.items()}
    chosen: dict[str, frozenset[str]] = {}
    for key in sorted(scores, key=scores.__getitem__, reverse=True):
        parts = frozenset(key)
        if all(2 * len(parts & other) <= min(len(parts), len(other)) for other in chosen.values()):
            chosen[phrase_text(found[first[key]])] = parts
        if len(chosen) == MOST:
            break
    return tuple(chosen)


def score(phrase: list[PhraseWord], often: Counter[str], repeats: int, place: int) -> float:
    weight = sum([1 + math.log2(often[word.stem]) + word.telling for word in phrase]) / len(phrase)
    fullness = (1.0, 1.4, 1.5)[len(phrase) - 1]
    earliness = 0.7 + 0.3 / (1 + place / 8)
    return weight * fullness * (1 + 0.5 * min(repeats - 1, 4)) * earliness


def phrases(text: str) -> list[list[PhraseWord]]:
    """Runs of words that say something; of a long run the last words, where English puts the noun."""
    found: list[list[PhraseWord]] = []
    open_run: list[PhraseWord] = []
    sentence_starts = True
    if "://" in text or "@" in text:
        text = CHUNK.sub(without_addresses, text)
    for gap, raw, ending in WITH_GAP.findall(text):
        if gap != " ":
            sentence_starts = sentence_starts or not ENDS.isdisjoint(gap)
            if open_run:
                found += finish_run(open_run)
                open_run = []
        word = read(raw, ending, sentence_starts=sentence_starts, inside=bool(open_run))
        if word is not None:
            open_run.append(word)
        if open_run and (word is None or ending):  # "user's dog": what is possessed begins a phrase of its own
            found += finish_run(open_run)
            open_run = []
        sentence_starts = False
    return found


def without_addresses(chunk: re.Match[str]) -> str:
    """Links and mail addresses are not a subject, and rather personal."""
    return "." if "://" in chunk[0] or "@" in chunk[0] else chunk[0]


def finish_run(run: list[PhraseWord]) -> list[list[PhraseWord]]:
    """The phrase of a run, if it has one."""
    run = run[-LONGEST:]
    while run and (not run[0].has_letters or len(phrase_text(run)) > MAX_PHRASE):
        run = run[1:]  # a number is good for "python 3.12", not on its own
    return [] if not run or (len(run) == 1 and len(run[0].text) < 3 and not run[0].telling) else [run]


def read(raw: str, ending: str, *, sentence_starts: bool, inside: bool) -> PhraseWord | None:
    """The word, or None for one that ends a phrase."""
    if len(raw) < 2 or len(raw) > MAX_WORD or (ending and ending.lower() != "s"):
        return None
    known = by_itself(raw) if raw.isalpha() else by_itself.__wrapped__(raw)  # a code or a number is not remembered
    if known is None or (known.verb_inside if inside else known.verb):
        return None
    name = known.capital and not sentence_starts
    if known.little and not (name and known.begins_names):
        return None
    return known.telling if name else known.plain


class ByItself(NamedTuple):
    """What is known of a word wherever it stands."""

    plain: PhraseWord
    telling: PhraseWord  # the same as a name
    capital: bool
    little: bool
    begins_names: bool
    verb: bool
    verb_inside: bool  # within a phrase


@lru_cache(WORDS_REMEMBERED)
def by_itself(raw: str) -> ByItself | None:
    """None for what is never part of a phrase."""
    lower = unicodedata.normalize("NFC", raw).lower()
    if SECRET.match(raw) or is_adverb(lower) or is_unreadable(lower):
        return None
    marked = "_" in raw or "." in raw or any(letter.isupper() for letter in raw[1:])
    stem, has_letters = tokens.stem(lower), any(map(str.isalpha, lower))
    return ByItself(
        plain=PhraseWord(lower, stem, marked, has_letters),
        telling=PhraseWord(lower, stem, True, has_letters),
        capital=raw[0].isupper(),
        little=lower in LITTLE,
        begins_names=lower in NAMES_BEGIN,
        verb=is_verb(lower, inside=False),
        verb_inside=is_verb(lower, inside=True),
    )


def is_verb(word: str, *, inside: bool) -> bool:
    """A common verb in any of its forms. One in -ing within a phrase is a noun: machine learning."""
    if word.endswith("ing"):
        return not inside and any(base in VERBS for base in (word[:-3], f"{word[:-3]}e", word[:-4]))
    if word.endswith("ed"):
        return word not in NOUNS_IN_ED and "-" not in word
    if word.endswith("ies"):
        return f"{word[:-3]}y" in VERBS
    return word in VERBS or (word.endswith("s") and (word[:-1] in VERBS or word[:-2] in VERBS))


def is_adverb(word: str) -> bool:
    return word.endswith("ly") and len(word) > 4 and word not in NOUNS_IN_LY


def is_unreadable(word: str) -> bool:
    return not word.isascii() and any(low <= letter <= high for letter in word for low, high in UNREADABLE)


def phrase_text(phrase: list[PhraseWord]) -> str:
    return " ".join([word.text for word in phrase])
