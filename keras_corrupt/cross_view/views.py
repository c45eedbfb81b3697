"""The views of Cross-View Training: what auxiliary modules see."""

#: Of a tagger: the word and those before it (forward) or after it (backward), those
#: before it or after it alone (future, past), or the sentence (Clark's thesis, 4.2.2).
VIEWS = ("forward", "backward", "future", "past", "full")
#: Of a parser: for a candidate edge's head, and for its dependent, the word and those
#: before it, or the word and those after it (4.2.3).
VIEW_PAIRS = (
    "forward_forward",
    "forward_backward",
    "backward_forward",
    "backward_backward",
    "full",
)
#: Of a translator's auxiliary decoders: the sentence through attention of which weights
#: are dropped; a translation without its last word; or all of both (4.2.4).
TRANSLATION_VIEWS = ("attention_dropout", "future", "full")
#: The baselines, in which the primary module itself sees another sentence (4.3.2).
BASELINES = ("word_dropout", "vat")


def check_views(views, known_views, baselines=BASELINES):
    """Raises a `ValueError` unless views are different ones of those, or baselines."""
    known = known_views + baselines
    if not set(views) <= set(known) or len(set(views)) != len(views):
        raise ValueError(
            f"`views` must be different ones of {', '.join(known)}; got {views}."
        )
