"""Is a text in another language than English? Told from its letters and its small words; no model is asked.

It decides whether the model for other languages is of use to a store, so a wrong yes costs a download: names and loan
words must not do. A text too short to tell counts as English.
"""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W\d_]+")
LATIN = 0x0250  # letters from here on are of other scripts
OTHER_SCRIPT = 0.3  # share of such letters; a quotation or a name has less
ENOUGH = 1.5  # what small words of other languages must add up to, and more than the English ones
IN_NAMES = 0.5  # how much a small word counts that names have, too; or an accent

ENGLISH = frozenset(
    "the and is are was of to in for on with that it as at by from this has have not be or an i you we they he she "
    "his her their our my your its what where when who which how why does do did will can should no if then than but "
    "about into there been were had after before now only all any".split()
)
# No English word is among them, but for those that matter little beside the others.
FOREIGN = frozenset(
    "und ist nicht ein eine einen einem einer mit für auf dem zu sich auch wird werden wurde sind hat haben bei nach "
    "über aus ich wir ihr sie ihre seine wenn oder aber nur noch bitte kein keine immer beim zum zur seit wo wie wer "
    "welche welcher "
    "le les est une dans pour avec sur aux et qui que quel quelle où ses ont sont pas plus chez depuis nous vous elle "
    "leur cette ce au par mais très "
    "una unos por para con está están es que no su sus se ha han pero como más muy desde cuando donde qué cuál quién "
    "también sin sobre hasta "
    "uma não com em são foi pelo pela como mais você dos das na nos nas ele ela seu sua até qual onde quem quando "
    "il che è non sono della nel alla gli questo anche dove quando chi perché "
    "het een niet met voor zijn naar wordt deze ook bij geen wat waar hoe "
    "och att är inte det som på av för med den har till om ett vi ska "
    "og ikke af til er hvor jeg som "
    "nie jest się na do że jak przez dla są czy gdzie co po "
    "ve bir bu için ile çok değil ne nerede ja ei on että tai missä kun".split()
) - ENGLISH
NAMES = frozenset("de la el los las van von der das di del da do du des den zu und y e o".split())


def in_another_language(text: str) -> bool:
    """Whether a text is surely in another language than English, or in several."""
    letters = [letter for letter in text if letter.isalpha()]
    others = sum(ord(letter) >= LATIN for letter in letters)
    if others:
        return others > OTHER_SCRIPT * len(letters)
    words = [word.lower() for word in WORD.findall(text)]
    foreign = sum(IN_NAMES if word in NAMES else word in FOREIGN or IN_NAMES * (not word.isascii()) for word in words)
    return foreign >= ENOUGH and foreign > sum(word in ENGLISH for word in words)
