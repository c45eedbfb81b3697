"""The views of Cross-View Training: what auxiliary modules see."""

#: A tagger's modules see the word and the words before it (forward) or after it
#: (backward), only the words before it (future) or after it (past), or the sentence
#: (Clark's thesis, 4.2.2).
VIEWS = ("forward", "backward", "future", "past", "full")
#: A parser's modules see, for a candidate edge's head and for its dependent, the word
#: and the words before it, or the word and the words after it (4.2.3).
VIEW_PAIRS = (
    "forward_forward",
    "forward_backward",
    "backward_forward",
    "backward_backward",
    "full",
)
#: A translator's auxiliary decoders see the sentence through attention with dropped
#: weights; a translation without its last word; or all of both (4.2.4).
TRANSLATION_VIEWS = ("attention_dropout", "future", "full")
#: The baselines, in which the primary module itself sees another sentence (4.3.2).
BASELINES = ("word_dropout", "vat")


def check_views(views, known_views, baselines=BASELINES):
    """Raises a `ValueError` unless views are different ones of those, or baselines."""
    choices = known_views + baselines
    if not set(views) <= set(choices) or len(set(views)) != len(views):
        raise ValueError(
            f"`views` must be different ones of {', '.join(choices)}; got {views}."
        )
