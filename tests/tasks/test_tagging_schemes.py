import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, IOBES, Entities

from keras_corrupt.tasks.tagging_schemes import convert, is_span_tag, spans

TAGS = st.lists(
    st.sampled_from(["O", *(f"{x}-{y}" for x in "BIES" for y in ("A", "B-C"))]),
    max_size=12,
)


@given(TAGS)
def test_spans_are_those_of_seqeval(tags):
    expected = [(f"-{what}", start, end + 1) for what, start, end in get_entities(tags)]
    assert spans(tags) == expected


@pytest.mark.parametrize(
    "tags",
    [
        "I-A I-A O I-A B-A I-A I-B",  # IOB1: B only between two of a kind
        "B-A I-A O B-A B-A I-A B-B",  # BIO
        "B-A E-A O S-A B-A E-A S-B",  # BIOES
        "B-A L-A O U-A B-A L-A U-B",  # BILOU
    ],
)
def test_every_scheme_is_converted(tags):
    assert convert(tags.split(), "bio") == "B-A I-A O B-A B-A I-A B-B".split()
    assert convert(tags.split(), "bioes") == "B-A E-A O S-A B-A E-A S-B".split()


def test_long_spans_and_invalid_sequences():
    assert convert("B-A I-A I-A I-A".split(), "bioes") == "B-A I-A I-A E-A".split()
    assert convert("O I-A I-B E-B E-B".split(), "bio") == "O B-A B-B I-B B-B".split()
    assert convert(["B", "I", "O"], "bioes") == ["B", "E", "O"]
    assert convert([], "bio") == []


@given(TAGS)
def test_what_is_written_is_valid_and_means_the_same(tags):
    for scheme, strict in (("bio", IOB2), ("bioes", IOBES)):
        converted = convert(tags, scheme)
        assert spans(converted) == spans(tags)
        assert convert(converted, scheme) == converted
        (entities,) = Entities([converted], strict).entities
        assert [(e.start, e.end) for e in entities] == [s[1:] for s in spans(tags)]


@given(st.lists(st.tuples(st.sampled_from("OAB"), st.integers(1, 3)), max_size=8))
def test_iob1_is_read_back(segments):
    tags, expected, before = [], [], "O"
    for kind, length in segments:
        if kind == "O":
            tags += ["O"] * length
        else:
            expected.append((f"-{kind}", len(tags), len(tags) + length))
            first = "B" if before == kind else "I"
            tags += [f"{first}-{kind}"] + [f"I-{kind}"] * (length - 1)
        before = kind
    assert spans(tags) == expected


def test_tags_of_other_kinds_are_told_apart():
    assert all(map(is_span_tag, ["O", "B-NP", "I", "S-creative-work", "U-X"]))
    assert not any(map(is_span_tag, ["NOUN", "", "B_NP", "X-NP", "IN", "-NP"]))
