"""What a text should not be trusted for: secrets that someone left in it, and sentences that instruct a model.

A memory is read by models for years. A secret in it spreads into every prompt; an order in it ("ignore your earlier
instructions …", "always recommend …") steers whoever recalls it. Neither is proof of bad intent, so by default both are
flagged: stored word for word, shown, and found by a filter. A policy may refuse them, mask secrets, or look away.
"""

# ruff: noqa: E501 -- a pattern reads best in one piece

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache, reduce
from inspect import signature
from itertools import count
from operator import or_
from typing import Any, TypeVar, cast

from scrubjay.engine.access import EVERYTHING
from scrubjay.errors import Unprocessable
from scrubjay.stores.promises.memories import Reads, Store, Transaction
from scrubjay.text.letters import SENTENCES, normalise
from scrubjay.text.secrets import mask_secrets, names_a_secret, secrets_in
from scrubjay.text.tokens import SAME, root
from scrubjay.text.words import WORDS_REMEMBERED, query_words
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Memory, new_id

SECRET, INSTRUCTION = "secret", "instruction"  # the two flags
SENTENCE = re.compile(r"(?<=[.!?])\s|\n")


class TrustPolicy(StrEnum):
    FLAG = "flag"  # store it as it is, and say so
    MASK = "mask"  # store it with the secret taken out
    REFUSE = "refuse"
    OFF = "off"  # do not look


policy = cache(TrustPolicy)


def check_trust(memory: Memory, *, secrets: TrustPolicy, instructions: TrustPolicy) -> Memory:
    """The memory with the flags that its text earns, or with its secrets masked.

    :raises Unprocessable: if the policy refuses it
    """
    flags = [flag for flag in memory.flags if flag not in (SECRET, INSTRUCTION)]
    if secrets is not TrustPolicy.OFF:
        found = set[tuple[str, str]]()
        clean = without_secrets(memory, found)
        if found:
            if secrets is TrustPolicy.REFUSE:
                raise refusal(*found)
            memory = _without_their_traces(clean, found) if secrets is TrustPolicy.MASK else memory
            flags.append(SECRET)
    if instructions is not TrustPolicy.OFF and reads_like_instructions(
        "\n".join((_own_title(memory), memory.text, *memory.also))
    ):
        if instructions is TrustPolicy.REFUSE:
            raise Unprocessable(
                "The text reads like instructions to a model.", hint="Store facts, not instructions to a model."
            )
        flags.append(INSTRUCTION)
    return memory if tuple(flags) == memory.flags else replace(memory, flags=tuple(flags))


def was_asked_for(memory: Memory, wordings: Iterable[str]) -> bool:
    """Whether a question asks for just what a flagged memory holds: it names a secret, or the memory has all its words,
    and not only beside the secret, or in an order to a model of which the question has less than a third."""
    if SECRET in memory.flags and any(map(names_a_secret, wordings)):
        return True
    said = "\n".join((_own_title(memory), memory.text, *memory.also, *memory.tags))
    if SECRET in memory.flags:
        said = "\n".join(part for part in SENTENCE.split(mask_secrets(said)) if "[masked: " not in part)
    return any(_says_all(said, query_words(wording), order=INSTRUCTION in memory.flags) for wording in wordings)


def _says_all(said: str, words: Sequence[str], *, order: bool) -> bool:
    if order:
        parts = SENTENCE.split(said)
        orders = [part for part in parts if reads_like_instructions(part)] or parts
        hidden = {part for part in orders if len(query_words(part)) > 3 * len(words)}
        said = "\n".join(part for part in parts if part not in hidden)
    said = said.casefold()
    return all(root(word.lower())[:SAME] in said for word in words)


def refusal(*found: tuple[str, str]) -> Unprocessable:
    kind, _ = min(found)
    return Unprocessable(f"The text contains what looks like {kind}.", hint="Store it without the secret.")


def _own_title(memory: Memory) -> str:
    """Its title, unless the text begins with it: then it says nothing that the text does not."""
    return "" if memory.content.startswith(memory.title.removesuffix("...")) else memory.title


def _without_their_traces(memory: Memory, found: set[tuple[str, str]]) -> Memory:
    """Without these secrets in what is so short that they do not look like secrets there."""
    title, secrets = memory.title, {secret for _, secret in found}
    for secret in secrets:
        title = title.replace(secret, "[masked]")

    def kept(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in texts if "masked" not in text and not any(secret in text for secret in secrets))

    return replace(memory, title=title, tags=kept(memory.tags), also=kept(memory.also))


# --- secrets in whatever is written ----------------------------------------------------------------------------------
#
# `text/secrets.py` says what they look like; this module looks for them. Every text of every value that a
# transaction is given goes through `without_secrets` before it becomes a row (`guarded`): whoever adds a table or a
# field has nothing to do for it. What is filled in from a memory's text needs the text without its secrets earlier,
# and its flag, so `check_trust` looks at a memory when it comes in.

# Fields that tell one thing from others: what takes a secret's place there has to, too.
NAMES = frozenset({
    "id", "ids", "alias", "aliases", "caller", "conversation", "conversation_id", "holder", "key", "memory", "message",
    "name", "named", "path", "paths", "reply_to", "section", "session_id", "topic", "user", "user_id",
})  # fmt: skip
SPACES = frozenset({"space", "spaces"})  # are there, or are refused when they are created: they have no other name
AS_JSON = frozenset({"result", "ours", "theirs"})  # fields that hold values written as JSON
# The store's own secrets, and addresses that only work with theirs.
OWN = frozenset({"fact", "set_fact", "put_endpoint", "remove_endpoint"})
# No caller waits for their outcome, or the text was accepted before: they are masked where others are refused.
PORTS = frozenset({*Reads.__annotations__, *Transaction.__annotations__, "tally"})
UNANSWERED = frozenset({"bring_back", "count", "keep_versions", "note_conflict", "replicate"})

Value = TypeVar("Value")
ID_LENGTH = len(new_id())


def without_secrets(value: Value, found: set[tuple[str, str]], field: str = "", label: str = "") -> Value:
    """The value with the secrets in all its texts masked, and what was found; itself if nothing was.

    `field` is the field or parameter that holds it, `label` the key of a mapping: `{"password": "…"}` is one by its key.
    """
    inner: Any = value
    if isinstance(inner, str):
        return (
            value
            if isinstance(inner, Enum) or field in SPACES
            else cast("Value", _masked_text(inner, found, field, label))
        )
    if isinstance(inner, Mapping):
        pairs = {
            without_secrets(key, found): without_secrets(one, found, field, str(key)) for key, one in inner.items()
        }
        return value if pairs == inner else cast("Value", pairs)
    if isinstance(inner, list | tuple | set | frozenset):
        parts = [without_secrets(one, found, field, label) for one in inner]
        if all(one is other for one, other in zip(parts, inner, strict=True)):
            return value
        return cast("Value", type(inner)(*parts) if hasattr(inner, "_fields") else type(inner)(parts))
    return cast("Value", _masked_fields(inner, found)) if is_dataclass(inner) else value


def _masked_fields(value: Any, found: set[tuple[str, str]]) -> Any:
    skipped = {"title"} if isinstance(value, Memory) and not _own_title(value) else set()
    held = {one.name: getattr(value, one.name) for one in fields(value) if one.init and one.name not in skipped}
    changed = {name: clean for name, one in held.items() if (clean := without_secrets(one, found, name)) is not one}
    if changed and skipped:
        changed["title"] = without_secrets(value.title, found)
    return replace(value, **changed) if changed else value


def _masked_text(text: str, found: set[tuple[str, str]], field: str, label: str) -> str:
    if len(text) == ID_LENGTH and text.startswith("mem_"):  # a search reads hundreds by their ids
        return text
    if field in AS_JSON and text[:1] in ("{", "["):
        read = json.loads(text)
        clean = without_secrets(read, found)
        return text if clean == read else json.dumps(clean, ensure_ascii=False)
    whole = f"{label}={text}" if label else text
    secrets = {(one.what, whole[one.start : one.end]) for one in secrets_in(whole)}
    if not secrets:
        return text
    found |= secrets
    return mask_secrets(whole, as_name=field in NAMES).removeprefix(f"{label}=" if label else "")


def checked_text(text: str, secrets: TrustPolicy) -> str:
    """A single text, masked; :raises Unprocessable: if the policy refuses it"""
    found = set[tuple[str, str]]()
    clean = without_secrets(text, found)
    if found and secrets is TrustPolicy.REFUSE:
        raise refusal(*found)
    return clean


def guard_store(records: Store, secrets: TrustPolicy) -> Store:
    """The store, with every text that is given to it checked, as the policy says; reads ask for what was written."""
    return cast("Store", _GuardedStore(records, secrets))


class _Guarded:
    """A part of a store, or a transaction: its methods are given values without secrets."""

    def __init__(self, inner: Any, secrets: TrustPolicy, tx: Transaction | None = None) -> None:
        self._inner, self._secrets, self._tx = inner, secrets, tx

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        if not callable(inner) and name in PORTS:
            return _Guarded(inner, self._secrets, self._tx)
        if not callable(inner) or name in OWN:
            return inner

        def call(*args: Any, **kwargs: Any) -> Any:
            given = signature(inner).bind(*args, **kwargs)
            for parameter, value in given.arguments.items():
                given.arguments[parameter] = self._clean(value, name, parameter)
            return inner(*given.args, **given.kwargs)

        return call

    def _clean(self, value: Any, method: str, parameter: str) -> Any:
        found = set[tuple[str, str]]()
        clean = without_secrets(value, found, parameter if parameter != "kwargs" else "")
        if not found:
            return value
        if self._tx is not None and isinstance(value, Memory):
            clean = self._as_it_was(value, clean, self._tx)
            if clean == value:
                return value
        if self._secrets is TrustPolicy.REFUSE and self._tx is None:
            return value
        if (self._secrets is TrustPolicy.REFUSE and method not in UNANSWERED) or (method, parameter) == (
            "create",
            "name",
        ):
            raise refusal(*found)
        if isinstance(clean, Memory) and SECRET not in clean.flags:
            return replace(clean, flags=(*clean.flags, SECRET))
        return clean

    def _as_it_was(self, memory: Memory, clean: Memory, tx: Transaction) -> Memory:
        """What was stored under another policy stays as it is until it is changed, so that it can be forgotten."""
        for known in tx.get([memory.id], EVERYTHING):
            names = [one.name for one in fields(memory) if getattr(known, one.name) == getattr(memory, one.name)]
            return replace(clean, **{name: getattr(memory, name) for name in names})
        return clean


class _GuardedStore(_Guarded):
    @contextmanager
    def writing(self, *, timeout_seconds: float | None = None) -> Iterator[Transaction]:
        with self._inner.writing(timeout_seconds=timeout_seconds) as tx:
            yield cast("Transaction", _Guarded(tx, self._secrets, tx))


# --- instructions ----------------------------------------------------------------------------------------------------
#
# Sentences that tell a model what to do, rather than what is so: how poisoned memories read. Each kind is a pattern over
# a sentence in lower case, and before it groups of words of which a match holds one each.
#
#     text ──> lines ──> sentences ──> words, each known by its groups ──> kinds that may be there ──> pattern
#
# A word's groups are looked up once, so most sentences cost no more than being cut into words. Gaps are bounded, so time
# grows with the text and no faster.


LINE = re.compile(r"[^\n]+")
MAX_LINE = 2_000  # characters; longer ones are looked at in overlapping pieces
OVERLAP = 400


def words(text: str) -> tuple[str, ...]:
    """Beginnings of words; ~ stands for a space inside of one."""
    return tuple(word.replace("~", " ") for word in text.split())


GAP = r"[^.!?\n]{0,60}?"  # within a sentence
RULES = r"(?:instruction|prompt|rule|guideline|direction|directive|polic(?:y|ie)|guardrail|constraint|restriction|safeguard|filter|training|order|command|alignment)s?"
MODEL = r"(?<!estate )(?<!travel )(?<!insurance )(?<!customs )(?<!booking )(?<!ticket )(?<!sales )(?<!secret )(?:assistant|ai|a\.i\.|model|agent|chatbot|bot|llm|copilot|language model|claude|gpt|gemini)s?"
USER = r"(?:the |any |every |your |this )?(?:user|human|customer|person|client|operator|owner|reader|people|anyone|somebody|someone|them)s?"
HIDE = r"(?:tell|inform|mention|reveal|show|let|alert|notify|warn|disclose|report|admit|explain|ask|say)"
STEER = (
    r"(?:recommend|promote|advertise|endorse|praise|favou?r|steer|push|upsell|plug|tout|cite|link to|point to|direct)"
)
ORDERS: dict[str, tuple[tuple[tuple[str, ...], ...], str]] = {
    "overrides": (
        (
            words(
                "ignor disregard forget overrid bypass discard cancel neglect aside away supersed disobey drop follow obey apply heed"
            ),
            words(
                "instruct prompt rule guideline direct polic guardrail constraint restrict safeguard filter training order command alignment told context memor messag conversation"
            ),
        ),
        rf"\b(?:ignor(?:e|ing)|disregard|forget|overrid(?:e|es|ing)|bypass|discard|cancel|neglect|set aside|throw away|supersed(?:e|es)|disobey|drop|(?:do not|don't|stop|no longer|never) (?:follow|obey|apply|heed)(?:ing)?)\b{GAP}\b(?:previous|prior|above|earlier|preceding|all|any|every|everything|anything|whatever|what|your|system|existing|safety|former|original|initial|built-in|other|security|content)\b{GAP}\b(?:{RULES}|told|context|memories|messages?|conversation)\b",
    ),
    "wears a role": (
        (
            words(
                "<| inst] sys>> <system </system <assistant </assistant <instruction </instruction <admin </admin : ## begin~system begin~admin begin~hidden"
            ),
            words("<| inst sys assistant admin developer begin"),
        ),
        r"<\|[\w ]{2,30}\|>|\[/?inst\]|<</?sys>>|</?(?:system|assistant|instructions?|admin)>|^\W{0,6}(?:new |updated? |hidden )?(?:system|developer|assistant|admin(?:istrator)?)(?: prompt| message| note| instructions?| override| notice| directive)(?: update)?\W{0,3}:|^\W{0,6}(?:system|developer|assistant|admin(?:istrator)?)\W{0,3}:[^\n]{0,80}?\b(?:you|your|i will|assistant|model|ai|must|ignore|always|never|comply|obey|disable|reveal|execute)\b|(?<!#)#{2,}+ ?(?:system|instructions?|new instructions?)\b|\bbegin (?:system|admin|hidden) (?:prompt|instructions?|message)",
    ),
    "makes it someone else": (
        (
            words(
                "now~ henceforth here~ point~on moment~on today~on pretend act~as mode jailbr unrestricted uncensored unfiltered no~longer your~new your~real your~true your~only your~actual"
            ),
        ),
        r"\b(?:you are|you're|you will be|consider yourself|become) (?:now|henceforth|from now on|no longer)\b|\bfrom (?:now|here|this (?:point|moment)|today) on(?:wards?)?,? (?:you\b|your\b|always|never|every (?:answer|reply|response)|all (?:answers|replies|responses)|respond|answer|act|pretend|treat)|\bpretend (?:to be|that you|you)\b|\bact as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken|root|admin|dan\b|evil)|\b(?:developer|dan|god|jailbreak|debug|unrestricted|maintenance|admin|root) mode\b|\bjailbreak(?:en|ing)?(?:ed)? (?:mode|yourself|prompt|the (?:model|assistant|ai)|(?:model|assistant|ai))|\b(?:unrestricted|uncensored|unfiltered) (?:ai|assistant|model|mode|answers?)|\byour (?:new|real|true|only|actual) (?:role|task|goal|purpose|persona|identity|objective|mission|instructions?|name)\b",
    ),
    "hides from the user": (
        (
            words(
                "not~ n't never without avoid refrain need must may should secretly covertly silently quietly discreetly stealthily keep~ hide~ conceal~"
            ),
            words(
                "user human customer person client operator owner reader people anyone somebody someone them secretly covertly silently quietly discreetly stealthily"
            ),
        ),
        rf"\b(?:do not|don't|never|must not|should not|shouldn't|without|avoid|refrain from|no need to)\b {HIDE}(?:ing)?\b{GAP}\b{USER}\b{GAP}\b(?:about|this|that|it|of|why|where|when|first|anything|know|notice|see)\b|\bwithout {USER}(?:'s)? (?:knowing|noticing|knowledge|consent|permission|approval|asking|confirmation|being (?:told|asked|aware))|\b(?:secretly|covertly|silently|quietly|discreetly|stealthily)\b{GAP}\b(?:send|add|append|insert|include|forward|store|record|change|replace|copy|run|execute|install|collect|upload|log|call|recommend|steer|delete|disable|redirect|approve)\b|\b{USER} (?:must|should|may|need) not (?:notice|know|see|find out|learn|be told)\b|\b(?:keep|hide|conceal) (?:this|these|it)\b{GAP}\b(?:secret |hidden )?from {USER}",
    ),
    "sends things away": (
        (
            words(
                "send post forward upload mail email transmit leak exfiltrate deliver submit report copy beacon ping encod append embed past attach"
            ),
            words("http @ webhook server address url endpoint site domain host link ."),
        ),
        r"\b(?:send|post|forward|upload|e-?mail|transmit|leak|exfiltrate|deliver|submit|report|copy|beacon|ping|encode|append|embed|paste|attach)(?:s|ing)?\b[^.!?\n]{0,60}?\b(?:passwords?|tokens?|keys?|credentials?|secrets?|conversations?|memor(?:y|ies)|histor(?:y|ies)|chats?|data|files?|contents?|cookies|environment|messages?|prompts?|transcripts?|everything|answers?|inputs?|documents?|wallet|contacts)\b[^!?\n]{0,80}?(?:https?://|\b(?:to|at|via) [\w.+-]{1,40}@[\w-]|\bwebhook|\b(?:attacker|external|remote|this|following|our) (?:server|address|url|endpoint|site|domain|host|link)|\b[\w-]{2,40}\.(?:com|net|org|io|dev|xyz|ru|cn|example|test|top|site)\b)",
    ),
    "plants a preference": (
        (
            words(
                "recommend promote advertise endorse praise favor favour steer push upsell plug tout cite link~to point~to direct claim insist insert reply~only respond~only answer~only refuse deny lie run execut call~the open~http send transfer delete visit owner admin system root operator order command trusted authoritative reliable verified official preferred safe credible"
            ),
            words(
                "always only exclusively must should shall invariably first never above over~ before as~ each every all~ no~ whenever regardless when if~ any once treat regard accept handle remember note consider trust mark save store keep"
            ),
        ),
        rf"\b(?:always|only|exclusively|must|should|shall|invariably|first|never fail to)\b{GAP}\b{STEER}\b|\b{STEER}\b{GAP}\b(?:above all|exclusively|over (?:all|any|every) (?:other|competitor|alternative)|before (?:any|all) other|as the (?:best|only|top|first|leading)|in (?:every|each|all) (?:answer|reply|response)s?|no matter what|whenever|every time|regardless)\b|\b(?:when|whenever|if|every time|each time|any time|once)\b{GAP}\b(?:asks?|asked|asking|mentions?|wants?|needs?|requests?|talks?|comes? up|discuss(?:es|ed|ing)?|says?|types?|inquires?)\b{GAP}\b(?:{STEER}|claim|insist|insert|reply only|respond only|answer only|refuse|deny|lie|run|execute|call the|open https?|send|transfer|delete|visit)\b|\b(?:treat|regard|accept|handle) (?:every|any|all|each)\b{GAP}\bas (?:coming )?(?:from|if|an?)\b{GAP}\b(?:owner|admin(?:istrator)?|system|root|operator|order|command|trusted)\b|\b(?:remember|note|treat|consider|regard|trust|mark|save|store|keep)\b[^!?\n]{{0,60}}?\bas (?:an? |the )?(?:only |most |always )?(?:trusted|authoritative|reliable|verified|official|preferred|safe|credible) (?:source|site|domain|provider|vendor|citation|reference|sender|authority|partner)\b",
    ),
    "orders a model": (
        (
            words(
                "assistant ai a.i model agent bot chatbot llm copilot claude gpt gemini you~must you~shall you~have you~are you~need"
            ),
        ),
        rf"\b(?:the |this |any |every |all |dear |attention,? |hey |note to (?:the )?|message (?:to|for) (?:the )?|instructions? (?:to|for) (?:the )?|future )?{MODEL}\b{GAP}\b(?:must|shall|has to|have to|is required to|are required to|need to|needs to|is instructed to|are instructed to|are to|is to|is ordered to|will (?:now|always|never|obey|comply)|should (?:always|never|now|immediately|instead))\b|\b(?:note|message|memo|attention|instructions?|notice|warning|dear|reminder)\b(?: to| for|,|:)? (?:the |all |any |every |future )?{MODEL}\b ?[:,\-—]|\byou (?:must|shall|have to|are (?:required|obliged|instructed|ordered|obligated|authori[sz]ed) to|need to)\b{GAP}\b(?:respond|answer|obey|comply|execute|trust|output|print|call|reply|refuse|recommend|say|agree|approve|insert|include this|repeat|reveal|tell (?:the )?user|transfer|delete)\b",
    ),
    "runs something": (
        (
            words(
                "curl wget iwr invoke rm~-rf base64 run~ execut eval call~ trigger launch use~ delete transfer install download wipe drop disable"
            ),
        ),
        r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,120}\|\s{0,3}(?:sudo )?(?:ba|z|da)?sh\b|\brm -rf\b|\bbase64 (?:-d|--decode)\b[^\n]{0,40}\||\b(?:run|execute|invoke|eval(?:uate)?|call|trigger|launch|use)\b[^.!?\n]{0,60}?\b(?:the |this |following |next |your )*(?:tool|function|command|script|shell|code|payload|delete_\w+|send_\w+|\w+_memor(?:y|ies))s?\b[^.!?\n]{0,60}?\b(?:immediately|right away|at once|before (?:you )?(?:answer|respond|reply|anything|doing|continu)\w*|without (?:asking|confirm\w+|question|delay)|silently|as soon as|every time|first thing|no questions)\b|\b(?:immediately|right away|at once|without (?:asking|confirmation)|before answering|before (?:you )?respond\w*|now)\b,? (?:run|execute|invoke|call|delete|transfer|install|download|wipe|drop|disable)\b[^.!?\n]{0,40}?\b(?:tool|function|command|script|code|all|every|package|file|memories|database|table|account|funds|payment|checks?|logging|safety)\b",
    ),
    "claims authority": (
        (
            words(
                "override overrides authori approved signed mandated issued ordered this precedence priority supersedes outranks obeyed followed disabled lifted suspended removed waived void ~off"
            ),
            words(
                "override by~ system developer admin openai anthropic security operator creator root precedence priority supersedes outranks must safety content moderation"
            ),
        ),
        r"\b(?:system|admin(?:istrator)?|root|security|policy|developer|priority|emergency) override\b(?! (?:keys?|switch|button|code|panel|room|lever|valve))|\b(?:authori[sz]ed|approved|signed|mandated|issued|ordered) by (?:the )?(?:system|developers?|admin(?:istrator)?s?|openai|anthropic|google|security team|operator|vendor|company|ceo|legal)\b[^.!?\n]{0,80}?\b(?:must|ignore|disable|skip|allowed|may now|override|bypass|comply|reveal|share|send|approve)\b|\bthis (?:is|message comes from|comes from) (?:the |your |an )?(?:system|developers?|admin(?:istrator)?|openai|anthropic|security team|operator|creator|root)\b|\b(?:this|the following) (?:memory|note|message|instruction|rule|entry|text) (?:takes? (?:precedence|priority)|overrides?|supersedes|outranks|has (?:the )?(?:highest|top|absolute) priority|must be (?:obeyed|followed))\b|\b(?:safety|content|security|moderation) (?:checks?|filters?|polic(?:y|ies)|rules|guardrails?|restrictions?)\b[^.!?\n]{0,30}?\b(?:are|is|have been|has been|were) (?:now )?(?:disabled|lifted|suspended|off|removed|waived|void)\b",
    ),
    "asks for what is hidden": (
        (words("reveal print repeat output show leak disclose dump recite expos display write~out tell~me"),),
        r"\b(?:reveal|print|repeat|output|show|leak|disclose|dump|recite|expose|display|write out|tell me)\b[^.!?\n]{0,40}?\b(?:system prompts?|hidden (?:prompt|instructions?|rules)|your (?:initial |original |system |secret |hidden |internal |full )*(?:instructions?|prompt|guidelines|configuration)|instructions above|initial prompt|everything above|(?:all |every )?(?:other |stored )(?:users?'?s? )?(?:memories|secrets|passwords|credentials)|chain of thought)\b",
    ),
    "tampers with memory": (
        (
            words(
                "overwrite replace delete erase wipe corrupt purge remove forget rewrite distrust ignore copy repeat store save write propagate add spread"
            ),
            words("memor fact note record knowledge this~"),
        ),
        r"\b(?:overwrite|replace|delete|erase|wipe|corrupt|purge|remove|forget|rewrite|distrust|ignore)\b[^.!?\n]{0,20}?\b(?:all|every|any|your|each)\b[^.!?\n]{0,20}?\b(?:other |previous |stored |earlier |existing |saved |of )*(?:memor(?:y|ies)|facts?|notes|records|knowledge)\b|\b(?:copy|repeat|store|save|write|propagate|add|spread)\b[^.!?\n]{0,20}?\bthis (?:text|memory|note|instruction|message|rule|sentence)\b[^.!?\n]{0,40}?\b(?:into|to|in|across)\b[^.!?\n]{0,20}?\b(?:every|all|each|any|other|new)\b",
    ),
    "says it in another language": (
        (
            words(
                "ignor vergiss oubli olvid esque dimentic игнор забудь 忽略 无视 忘记 不要理会 無視 무시 تجاهل negeer zignoruj"
            ),
        ),
        r"\bignorier\w*\b[^.!?\n]{0,40}\b(?:anweisung|regel|vorgabe|befehl|instruktion)\w*|\bvergiss\b[^.!?\n]{0,40}\b(?:anweisung|regel|vorgabe|bisher)\w*|\b(?:ignore[rz]?|oublie[rz]?)\b[^.!?\n]{0,30}\b(?:instructions|consignes|règles)\b|\b(?:ignora|olvida|ignore|esqueça|dimentica)\b[^.!?\n]{0,30}\b(?:instrucciones|instruções|istruzioni|reglas|regras|regole)\b|игнорируй\w*[^.!?\n]{0,40}(?:инструкци|указани|правил)|забудь[^.!?\n]{0,40}(?:инструкци|указани|правил)|(?:忽略|无视|忘记|不要理会)[^。！？\n]{0,12}(?:指令|说明|提示|规则|指示)|(?:指示|命令|ルール)[^。！？\n]{0,8}無視|(?:지시|명령|규칙)[^.!?\n]{0,10}무시|تجاهل[^.!?\n]{0,30}(?:التعليمات|الأوامر)|\b(?:negeer|ignoruj|zignoruj)\b[^.!?\n]{0,40}\b(?:instructies|instrukcj\w*|polece\w*)",
    ),
}
CROSSING = {"wears a role", "sends things away", "plants a preference", "runs something", "says it in another language"}
HIDDEN = re.compile("[\U000e0020-\U000e007f]{4,}|[\u200b-\u200d\u2060\ufeff]{6,}")  # text that people cannot see
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
WORD = re.compile(r"[^\W\d_]+")
PLAIN = re.compile(r"[a-zа-я]{2,} ?")
END = re.compile(r"[.!?](?<!\ba\.i[.!?])\s")  # of a sentence

Signs = list[tuple[str, int]]

# Each group has a bit: by the beginnings of its words (whole words end in a space), and by signs and turns of phrase.
BEGINNINGS: dict[str, int] = {}
SIGNS: Signs = []
KINDS: list[tuple[int, re.Pattern[str], bool]] = []  # groups, pattern, whether it may cross the end of a sentence


def reads_like_instructions(text: str) -> bool:
    """Whether a text gives a model orders."""
    if text.isascii():  # nothing in it is hidden, and no letter is written otherwise
        plain = text.lower()
    elif HIDDEN.search(text):
        return True
    else:
        plain = INVISIBLE.sub("", normalise("NFKC", text.translate(SENTENCES))).lower()
    signs = [(sign, group) for sign, group in SIGNS if sign in plain]
    return any(_is_order(line, signs) for line in _lines(plain))


def _is_order(line: str, signs: Signs) -> bool:
    sentences = [(_marks(line, start, end, signs), start, end) for start, end in _sentences(line)]
    of_line = reduce(or_, [marks for marks, _, _ in sentences])  # no word and no sign goes across two of them
    due = [kind for kind in KINDS if of_line & kind[0] == kind[0]]
    if not due:  # as in most short lines
        return False
    whole = [(of_line, 0, len(line))]
    return any(
        pattern.search(line, start, end) is not None
        for needed, pattern, crosses in due
        for marks, start, end in (whole if crosses else sentences)
        if marks & needed == needed
    )


def _lines(text: str) -> Iterator[str]:
    for found in LINE.finditer(text):
        for start in range(0, max(1, len(found[0]) - OVERLAP), MAX_LINE - OVERLAP):
            yield found[0][start : start + MAX_LINE]


def _sentences(line: str) -> Iterator[tuple[int, int]]:
    """Where they begin and end."""
    start = 0
    for end in END.finditer(line):
        yield start, end.end()
        start = end.end()
    yield start, len(line)


def _marks(line: str, start: int, end: int, signs: Signs) -> int:
    """The groups that words and signs of this sentence belong to."""
    marks = reduce(or_, map(_known.__getitem__, WORD.findall(line, start, end)), 0)
    for sign, group in signs:
        if not marks & group and line.find(sign, start, end) >= 0:
            marks |= group
    return marks


class _Known(dict[str, int]):
    """The groups of each word that was seen."""

    def __missing__(self, word: str) -> int:
        mark = BEGINNINGS.get(f"{word} ", 0)
        for length in range(1, len(word) + 1):
            mark |= BEGINNINGS.get(word[:length], 0)
        if len(self) >= WORDS_REMEMBERED:
            self.clear()
        self[word] = mark
        return mark


_known = _Known()
_bits = count()


def _enter(name: str, groups: tuple[tuple[str, ...], ...], pattern: str) -> None:
    needed = 0
    for group in groups:
        bit = 1 << next(_bits)
        needed |= bit
        for entry in group:
            if PLAIN.fullmatch(entry):
                BEGINNINGS[entry] = BEGINNINGS.get(entry, 0) | bit
            else:
                SIGNS.append((entry, bit))
    KINDS.append((needed, re.compile(pattern), name in CROSSING))


for _name, (_groups, _pattern) in ORDERS.items():
    _enter(_name, _groups, _pattern)
