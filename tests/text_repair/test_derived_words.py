"""Forms of known words by the rules of spelling."""

from indel.text_repair.derived_words import is_derived

KNOWN = """text google study stop plan visit make bake large happy quick hope dish veto box house
    plant houses microwaves under cover phone smart retweets cry beautiful simple full heat"""
FORMS = """texted googled googling studies studied stopped planning visited baked baker larger
    happily happiness quickly hoped dishes vetoes boxes houseplant smartphone microwave retweet
    cries beautifully fully reheat"""
MISSPELLED = """studys stoped planing visitted bakeed larg happyly happyness googl boxs crys
    simplely teh s ed"""


def derived(words: str) -> list[str]:
    known = frozenset(KNOWN.split())
    return [word for word in words.split() if is_derived(word, known.__contains__)]


def test_forms() -> None:
    assert derived(FORMS) == FORMS.split()


def test_misspelled_forms() -> None:
    assert derived(MISSPELLED) == []
