import itertools

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_corrupt.downstream.span_extractor import SpanExtractor
from keras_corrupt.downstream.span_heads import IMPOSSIBLE
from keras_corrupt.downstream.span_windows import (
    Window,
    collect_spans,
    token_span,
    window_starts,
)
from keras_corrupt.tasks.question_answering import Answer, Question
from tests.conftest import COMPILED, SIZES

ENCODER = SIZES["discriminator"]


def make(tokenizer, **arguments):
    model = SpanExtractor(ENCODER, tokenizer, **arguments)
    model.compile(jit_compile=COMPILED)
    return model


# === Features ===


def test_windows_by_hand(tokenizer):
    # Room for 12 - 3 - 2 = 7 tokens of the context, in steps of 7 // 2 = 3.
    model = make(tokenizer, max_length=12, max_question_length=2, answerability=True)
    context = "The cats sat  on a MAT, quick slow dog"
    tokens = ["the", "cat", "##s", "sat", "on", "a", "mat", ",", "quick", "slow", "dog"]
    question = ["the", "dog"]  # and "ran" cut off
    labels = [[("sat  on", 9), ("dog", 35)]]
    found = model.features([Question("the dog ran", context)], labels)
    expected = [
        (0, tokens[:7], {"start": 7, "end": 8, "unanswerable": 0}),
        (3, tokens[3:10], {"start": 4, "end": 5, "unanswerable": 0}),
        (6, tokens[6:], {"start": 0, "end": 0, "unanswerable": 1}),
    ]
    assert len(found) == len(expected)
    for window, (first, part, targets) in zip(found, expected, strict=True):
        row = window.inputs
        assert tokenizer.tokens(row["token_ids"]) == [
            *("[CLS]", *question, "[SEP]", *part, "[SEP]"),
        ]
        n = len(part)
        assert row["segment_ids"].tolist() == [0] * 4 + [1] * (n + 1)
        assert row["selectable"].tolist() == [1, 0, 0, 0] + [1] * n + [0]
        assert (window.first, window.targets, window.example) == (first, targets, 0)
        assert row["start"] == targets["start"]
    words = [context[a:b] for a, b in found[1].offsets]
    assert words == ["sat", "on", "a", "MAT", ",", "quick", "slow"]
    unlabelled = model.features([("the dog ran", context)])[0]
    assert unlabelled.targets == {} and "start" not in unlabelled.inputs


def test_unanswerable_question(tokenizer):
    model = make(tokenizer, answerability=True)
    window = model.features([("who", "the cat")], [[]])[0]
    assert window.targets == {"start": 0, "end": 0, "unanswerable": 1}
    with pytest.raises(ValueError, match=r"labels\[1\].*no answer.*answerability=True"):
        make(tokenizer).features([("a", "the cat")] * 2, [[("the", 0)], []])
    for other in ({"text": ["the"], "answer_start": [0]}, ["the"]):
        with pytest.raises(ValueError, match=r"labels\[0\]` is a list of answers"):
            make(tokenizer).features([("a", "the cat")], [other])


@pytest.mark.parametrize(("room", "stride"), [(10, 5), (10, 99), (7, 2), (2, 1)])
def test_windows_cover_the_context(room, stride):
    for length in range(1, 40):
        starts = list(window_starts(length, room, stride))
        seen = {t for s in starts for t in range(s, min(s + room, length))}
        assert seen == set(range(length))
        # The last one is needed.
        assert len(starts) == 1 or starts[-2] + room < length


def test_token_span():
    offsets = np.array([[0, 3], [4, 7], [7, 8], [9, 12]])
    assert token_span(offsets, 4, 7) == (1, 1)
    assert token_span(offsets, 5, 6) == (1, 1)  # part of a token
    assert token_span(offsets, 3, 9) == (1, 2)
    assert token_span(offsets, 3, 4) is None


MODELS = {}


def one_model(tokenizer):
    if not MODELS:
        MODELS[0] = make(tokenizer, head_type="bert")
    return MODELS[0]


def one_hot_outputs(model, windows):
    """What a head that knows the targets would return."""
    outputs = []
    for window in windows:
        places = np.arange(ENCODER["max_length"])
        start = 10.0 * (places == window.targets["start"])[None]
        end = 10.0 * (places == window.targets["end"])[None]
        ends = np.repeat(end[:, None], model.beam_size, axis=1).astype("float32")
        selectable = np.zeros((1, len(places)), "int32")
        selectable[0, : len(window.inputs["selectable"])] = window.inputs["selectable"]
        found = model.head.best_spans(
            ops.convert_to_tensor(start, "float32"),
            lambda _, ends=ends: ops.convert_to_tensor(ends),
            ops.convert_to_tensor(selectable),
        )
        outputs.append({name: np.array(value[0]) for name, value in found.items()})
    return outputs


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_windows_never_lose_an_answer(data):
    tokenizer = make_tokenizer()
    model = one_model(tokenizer)
    model.max_length = data.draw(st.integers(8, 24))
    model.max_question_length = data.draw(st.integers(1, 20))
    model.stride = data.draw(st.integers(1, 20))
    words = st.sampled_from(["the", "Cats", "slowly", "Mat,", "b", "x", "über"])
    pieces = data.draw(st.lists(words, min_size=1, max_size=40))
    spaces = data.draw(st.lists(st.sampled_from([" ", "  "]), min_size=40, max_size=40))
    context = "".join(itertools.chain(*zip(pieces, spaces, strict=False)))
    question = " ".join(data.draw(st.lists(words, max_size=12)))
    [(_, offsets)] = tokenizer.encode_with_offsets([context])
    asked = min(len(tokenizer.encode(question)), model.max_question_length)
    room = model.max_length - 3 - min(asked, (model.max_length - 3) // 2)
    longest = room - min(model.stride, room // 2) + 1
    first = data.draw(st.integers(0, len(offsets) - 1))
    last = data.draw(st.integers(first, min(first + longest, len(offsets)) - 1))
    start, end = int(offsets[first, 0]), int(offsets[last, 1])
    examples = [Question(question, context)]
    windows = model.features(examples, [[(context[start:end], start)]])
    assert not all(window.targets["unanswerable"] for window in windows)
    for window in windows:
        assert len(window.inputs["token_ids"]) <= model.max_length
    answer = model.decode(examples, windows, one_hot_outputs(model, windows))[0]
    assert (answer.start, answer.text) == (start, context[start:end])


def make_tokenizer():
    from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer

    words = "the cat ##s slow ##ly mat , b x uber".split()
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words])


# === From scores to answers ===


def window(first, count, words=("ab", "cd", "ef", "gh", "ij", "kl", "mn", "op")):
    """Of a context of eight words; `[CLS] [SEP]` go before."""
    offsets = np.array([[3 * i, 3 * i + 2] for i in range(len(words))])
    segments = np.array([0, 0] + [1] * (count + 1))
    return Window({"segment_ids": segments}, {}, 0, first, offsets[first:][:count])


def output(spans, null_score=0.0):
    """A beam of spans (first, last token in the sequence) -> score."""
    return {
        "starts": np.array([start for start, _ in spans]),
        "start_scores": np.zeros(len(spans)),
        "ends": np.array([[end] for _, end in spans]),
        "end_scores": np.array([[score] for score in spans.values()]),
        "null_score": null_score,
    }


def test_a_span_counts_where_most_surrounds_it():
    windows = [window(0, 6), window(3, 5)]
    # The context's tokens 4 and 5 are places 6 and 7 of one, 3 and 4 of the other.
    both = [output({(6, 7): 9.0, (2, 2): 1.0}), output({(3, 4): 4.0, (6, 6): 2.0})]
    found = list(
        zip(*map(np.ndarray.tolist, collect_spans(windows, both)), strict=True)
    )
    # Token 4 to 5 have 0 tokens on their right in the first window, 1 on their left
    # in the second.
    assert sorted(found) == [(0, 0, 0, 1.0), (1, 4, 5, 4.0), (1, 7, 7, 2.0)]


def test_a_span_of_the_lesser_window_is_better_than_none():
    windows = [window(0, 6), window(3, 5)]
    first = output({(6, 7): 9.0})
    second = output({(2, 2): IMPOSSIBLE})
    found = [part.tolist() for part in collect_spans(windows, [first, second])]
    assert found == [[0], [4], [5], [9.0]]


def test_decode_keeps_the_text_as_it_is_written(tokenizer):
    model = make(tokenizer, answerability=True, head_type="xlnet")
    context = "Ab CD, ef gh  ij kl mn op"
    shown = Window(
        {"segment_ids": np.array([0, 0, 1, 1, 1, 1, 1])},
        {},
        0,
        0,
        np.array([[0, 2], [3, 5], [5, 6], [7, 9]]),
    )
    beam = output({(3, 5): 2.0, (2, 2): 3.0, (5, 5): 1.0}, null_score=-0.25)
    answer = model.decode([("q", context)], [shown], [beam])[0]
    assert answer[:4] == ("Ab", 0, 3.0, -0.25)
    assert answer.candidates == (("Ab", 0, 3.0), ("CD, ef", 3, 2.0), ("ef", 7, 1.0))


def test_null_odds_are_those_of_the_likeliest_window(tokenizer):
    windows = [window(0, 6), window(3, 5), window(6, 2)]
    beams = zip([4.0, 1.0, 2.0], [3.0, 1.5, 2.0], strict=True)
    outputs = [output({(2, 2): score}, null_score) for score, null_score in beams]
    for head_type, odds in (("xlnet", 1.5), ("bert", 1.5 - 4.0)):
        model = make(tokenizer, answerability=True, head_type=head_type)
        answer = model.decode([("q", "ab cd ef gh ij kl mn op")], windows, outputs)[0]
        assert (answer.text, answer.null_odds) == ("ab", odds)


def test_a_threshold_in_percent_is_refused(tokenizer):
    with pytest.raises(ValueError, match="a probability, from 0 to 1; got 63"):
        make(tokenizer, answerability=True).answer(["who?"], ["the cat"], threshold=63)


def test_null_threshold():
    odds = np.log(0.3 / 0.7)
    answer = Answer("cat", 0, 1.0, odds)
    np.testing.assert_allclose(answer.null_probability, 0.3)
    assert answer.final_text() == "cat"
    assert answer.final_text(threshold=0.29) == ""
    assert Answer("cat", 0, 1.0).final_text(threshold=0.0) == "cat"
    extremes = [Answer("", 0, 0.0, odds).null_probability for odds in (-800.0, 800.0)]
    assert extremes == [0.0, 1.0]


# === The whole model ===


def questions():
    """The answer is the animal; without one there is none."""
    rng = np.random.default_rng(0)
    words = "the a sat ran on under mat rug quick slow . ,".split()
    examples, labels = [], []
    for i in range(48):
        before = " ".join(rng.choice(words, rng.integers(0, 8)))
        after = " ".join(rng.choice(words, rng.integers(1, 8)))
        animal = ["The Cat", "Dogs", ""][i % 3]
        context = " ".join(part for part in (before, animal, after) if part)
        examples.append(Question("b", context))
        labels.append([(animal, context.index(animal))] if animal else [])
    return examples, labels


@pytest.mark.usefixtures("graphs")
def test_learns_and_comes_back_from_its_preset(tokenizer, tmp_path):
    model = make(tokenizer, answerability=True, max_length=16, dropout=0.0)
    examples, labels = questions()
    model.compile(keras.optimizers.Adam(5e-3), jit_compile=COMPILED)
    batches = model.batches(model.features(examples, labels), 16, seed=0)
    model.fit(batches, epochs=35, verbose=0, shuffle=False)
    answers = model.answer(*zip(*examples, strict=True))
    gold = [label[0][0] if label else "" for label in labels]
    assert np.mean([a == g for a, g in zip(answers, gold, strict=True)]) > 0.9

    model.save_to_preset(tmp_path / "preset")
    loaded = SpanExtractor.from_preset(tmp_path / "preset")
    assert loaded.get_config() == model.get_config()
    loaded.compile(jit_compile=COMPILED)
    before, after = (m.predictions(examples[:6]) for m in (model, loaded))
    assert [a.text for a in before] == [a.text for a in after]
    for name in ("score", "null_odds"):
        np.testing.assert_allclose(
            *([getattr(a, name) for a in answers] for answers in (before, after)),
            rtol=1e-5,
        )


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize("head_type", ["xlnet", "bert"])
def test_compiled_by_xla(tokenizer, head_type):
    model = make(tokenizer, answerability=True, head_type=head_type, beam_size=3)
    windows = model.features([("a", "the cat"), ("the mat", "slow dogs . sat")])
    plain = model.outputs(windows)
    model.compile(jit_compile=not COMPILED)
    for expected, found in zip(plain, model.outputs(windows), strict=True):
        np.testing.assert_array_equal(found["starts"], expected["starts"])
        for name in ("start_scores", "end_scores", "null_score"):
            np.testing.assert_allclose(found[name], expected[name], atol=1e-4)


def test_padding_and_batching_change_nothing(tokenizer):
    model = make(tokenizer, answerability=True, max_length=20)
    long = "the quick dog ran on the rug , " * 5
    examples = [("a", "the cat"), ("the mat", long), ("b c", "slow dogs . sat")]
    together = model.predictions(examples, batch_size=2)
    alone = [model.predictions([e], batch_size=2)[0] for e in examples]
    for a, b in zip(together, alone, strict=True):
        assert a.text == b.text
        np.testing.assert_allclose([a.score, a.null_odds], [b.score, b.null_odds], 1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"head_type": "span"}, r"head_type.*\['bert', 'xlnet'\].*'span'"),
        ({"stride": 0}, "`stride` must be 1 or more; got 0"),
        ({"beam_size": 0}, "`beam_size`"),
        ({"max_answer_length": -1}, "`max_answer_length`"),
    ],
)
def test_wrong_arguments(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(tokenizer, **arguments)


def test_wrong_examples(tokenizer):
    model = make(tokenizer)
    with pytest.raises(ValueError, match=r"examples\[1\]. must be a pair of strings"):
        model.features([("a", "b"), "ab"])
    with pytest.raises(ValueError, match=r"examples\[0\].*without any text"):
        model.features([("a", " \u0000 ")])
    for start in (5, -1, 100):
        with pytest.raises(ValueError, match=rf"labels\[0\].*'cat' at.* {start},"):
            model.features([("a", "the cat")], [[("cat", start)]])
    with pytest.raises(ValueError, match="`questions` must be a list"):
        model.answer("who", "cat")
    with pytest.raises(ValueError, match="must be as many; got 2 and 1"):
        model.answer(["who", "what"], ["the cat"])
    with pytest.raises(ValueError, match="is no text to the tokenizer"):
        model.features([("a", "the  cat")], [[(" ", 3)]])
