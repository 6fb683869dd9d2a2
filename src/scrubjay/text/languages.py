"""In which language is a text? Its letters and its small words say so; no model is asked.

Two questions are asked, and a text that is too short to tell counts as English for both. `in_another_language` decides
whether the model for other languages is of use to a store: a wrong yes costs a download, so names and loan words must
not do. `is_english` decides whether rules that read English may judge a text: there a wrong yes is the mistake.
"""

from __future__ import annotations

from functools import lru_cache

from scrubjay.text.tokens import word_set, words_of
from scrubjay.text.words import STOP_WORDS

BEGINNING = 400  # characters that are looked at to tell English
MOSTLY_ASCII = 0.9  # share of these letters in an English text
LATIN = 0x0250  # letters from here on are of other scripts
OTHER_SCRIPT = 0.3  # share of these letters; a quotation or a name has less
ENOUGH = 1.5  # what small words of other languages must add up to, and more than the English ones
IN_A_NAME = 0.5  # how much one counts that names have, too
ACCENTS = 1.0  # what words with accents add up to at most: loan words have them, too


ENGLISH = word_set(
    "the and is are was of to in for on with that it as at by from this has have not be or an i you we they he she "
    "his her their our my your its what where when who which how why does do did will can should no if then than but "
    "about into there been were had after before now only all any"
)
FOREIGN = word_set(
    "und ist nicht ein eine einen einem einer mit für auf dem sich auch wird werden wurde sind hat haben bei nach "
    "über aus ich wir ihr sie ihre seine wenn oder aber nur noch bitte kein keine immer beim zum zur seit wo wie wer "
    "welche welcher "
    "le les est une dans pour avec sur aux et qui que quel quelle où ses ont sont pas plus chez depuis nous vous elle "
    "leur cette ce au par mais très "
    "una unos por para con está están es su sus se ha han pero como más muy desde cuando donde qué cuál quién "
    "también sin sobre hasta "
    "uma não com em são foi pelo pela mais você dos das na nos nas ele ela seu sua até qual onde quem quando "
    "il che è non sono della nel alla gli questo anche dove chi perché "
    "het een niet met voor zijn naar wordt deze ook bij geen wat waar hoe "
    "och att är inte det som på av för med har till om ett vi ska "
    "og ikke af er hvor jeg "
    "nie jest się że jak przez dla są czy gdzie co po "
    "ve bir bu için ile çok değil ne nerede ja ei että tai missä kun"
)
NAMES = word_set("de la el los las van von der das di del da do du des den zu und y e o")
# Small words of other languages that English texts have too: "a non-smoker", "plus 2 %", "CO2", "blood group O".
ENGLISH_TOO = ENGLISH | STOP_WORDS | word_set("plus non till nas co com po jest e o y u van de est")
TELLING = (FOREIGN | NAMES) - ENGLISH_TOO
COUNTS = dict.fromkeys(FOREIGN, 1.0) | dict.fromkeys(NAMES, IN_A_NAME)  # what a small word counts for
ENGLISH_ALONE = ENGLISH_TOO - COUNTS.keys() - {"am"}  # and neither Dutch nor German


def in_another_language(text: str) -> bool:
    """Whether a text is surely in another language than English, or in several."""
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        others = sum(ord(letter) >= LATIN for letter in letters)
        if others:
            return others > OTHER_SCRIPT * len(letters)
    words = words_of(text)
    foreign = sum([COUNTS[word] for word in words if word in COUNTS])
    if not text.isascii():
        foreign += min(ACCENTS, IN_A_NAME * sum(not word.isascii() for word in words))
    return foreign >= ENOUGH and foreign > sum(word in ENGLISH for word in words)


@lru_cache(maxsize=2_000)
def is_english(text: str) -> bool:
    """Whether the words that hold a sentence together are English, as far as there are any."""
    text = text[:BEGINNING]
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        if sum(letter.isascii() for letter in letters) < MOSTLY_ASCII * len(letters):
            return False
    words = words_of(text)
    foreign = sum(word in TELLING for word in words)
    return not foreign or foreign < sum(word in ENGLISH_ALONE for word in words)
