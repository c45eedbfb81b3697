import sys

import keras
import numpy as np
import pytest

from keras_corrupt.convert.saved_model import export_saved_model
from keras_corrupt.downstream import (
    MultiLabelClassifier,
    SpanExtractor,
    TextClassifier,
    TokenTagger,
)
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.downstream.conftest import ENCODER, scrambled

#: What tokenizers disagree about.
AWKWARD = [
    "The cats sat, quickly.",
    "",
    "   ",
    "CAT\u00c9 n\u00e9e cafe\u0301 \u01c4 \u0130stanbul \u00df \ufb01 \u03a3\u03c2",
    "\u4e2d\u6587cat\u65e5\u672c\u8a9e \uf900 \U0002f800 \ud55c\uad6d\uc5b4",
    "a\x00b\x07c\u200bd\u00ade\ufffdf\x85g\u2028h\u00a0i\u3000j\tk\r\nl",
    "[MASK] the [CLS]cat[SEP] [unused1] ##s #",
    "cat\u2019s \u201cmat\u201d \u00bfdog? rug\u3002 $5+3=8 \u20ac \u2260 \u037e",
    "b" * 100 + " " + "b" * 101 + " " + "\u00e9" * 100,
    "\U0001d51e" * 100 + " " + "\U0001d51e" * 101,
    "\U0001f600 \U0001f3f4\U000e0067\U000e0062 \ue000 \U000f0000x \U00050000",
    "the quick cat " * 30,
]
#: The same, and more than one window holds.
CONTEXTS = [
    *(text for text in AWKWARD if text.strip()),
    "The  Cat\u0301 sat.\u0301  Dogs, \u4e2d\u6587 and\x07 caf\u00e9s\u0308 " * 4,
    "cat",
    "ne\u0301e\u0301",
    "the quickly [dog] sat; \U0001f600 the cat's \u4e2d\u6587 \u00c9t\u00e9 " * 5,
]
QUESTIONS = ["the cat?", "", "Qui a vu le chat noir dans la rue hier soir ?", "\x07"]
LETTERS = [chr(c) for c in range(97, 123)]


@pytest.fixture
def tokenizer():
    words = "the cat cats dog sat ##ly n\u00e9e \u00e9 \u4e2d \u3002 ##\u00e9".split()
    return WordPieceTokenizer(
        [*SPECIAL_TOKENS, *words, *LETTERS, *(f"##{x}" for x in LETTERS), *",.[]?#'"]
    )


@pytest.fixture
def encoder(tokenizer):
    return {**ENCODER, "vocabulary_size": tokenizer.vocabulary_size}


def load(model, directory):
    import tensorflow as tf

    export_saved_model(model, directory)
    return tf.saved_model.load(directory).signatures


def texts(tensor):
    return [value.decode() for value in tensor.numpy()]


def strings(values):
    import tensorflow as tf

    return tf.constant(values, tf.string)


def words_of(tokenizer, text):
    engine = tokenizer.engine
    normalized = engine.normalizer.normalize_str(text)
    return [word for word, _ in engine.pre_tokenizer.pre_tokenize_str(normalized)]


class TestTokenizer:
    @pytest.mark.parametrize(
        "lowercase, strip_accents, every",
        [(True, True, 1), (True, False, 7), (False, True, 7), (False, False, 7)],
    )
    def test_words_ids_and_offsets(self, tokenizer, lowercase, strip_accents, every):
        import tensorflow as tf

        from keras_corrupt.tokenizers.in_graph import GraphTokenizer

        tokenizer = WordPieceTokenizer(tokenizer.vocabulary, lowercase, strip_accents)
        # All characters of the busiest blocks once, some of all others.
        codes = [*range(0x3400), *range(0xF900, 0x10000), *range(0, 0x110000, 61)]
        codes = codes[::every]
        samples = [f"a{chr(c)}s" for c in codes if not 0xD800 <= c < 0xE000]
        rng = np.random.default_rng(0)
        blocks = [
            0,
            0x80,
            0x300,
            0x900,
            0x1E00,
            0x2000,
            0x3000,
            0xAC00,
            0xFE00,
            0x1F600,
        ]
        for _ in range(300):
            codes = rng.choice(blocks, 30) + rng.integers(0, 0x80, 30)
            samples.append("".join(map(chr, codes)))
        samples += AWKWARD
        graph_tokenizer = GraphTokenizer(tokenizer)
        characters = tf.strings.unicode_decode(strings(samples), "UTF-8")
        words = graph_tokenizer.words(characters)[0].to_list()
        for sample, found in zip(samples, words, strict=True):
            assert [w.decode() for w in found] == words_of(tokenizer, sample)
        found = graph_tokenizer.encode_with_offsets(strings(samples))
        found = zip(*(part.to_list() for part in found), strict=True)
        expected = tokenizer.encode_with_offsets(samples)
        for sample, (ids, *places), row in zip(samples, found, expected, strict=True):
            assert ids == row[0].tolist()
            sizes = [len(character.encode()) for character in sample]
            in_bytes = np.cumsum([0, *sizes])[row[1].T]
            np.testing.assert_array_equal(places, in_bytes, repr(sample))


def test_an_unknown_token_of_another_name():
    from keras_corrupt.tokenizers.in_graph import GraphTokenizer

    vocabulary = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "a", "b", "##b"]
    tokenizer = WordPieceTokenizer(vocabulary)
    found = GraphTokenizer(tokenizer)(strings(["ab c b"]))
    assert found.to_list() == [[5, 7, 1, 6]]
    assert found.to_list()[0] == tokenizer.encode("ab c b")


class TestClassifier:
    def test_labels_and_probabilities(self, tmp_path, encoder, tokenizer):
        labels = ["no", "yes", "vielleicht \u00e4"]
        model = scrambled(TextClassifier(encoder, tokenizer, labels=labels))
        signatures = load(model, tmp_path / "saved")
        found = signatures["serving_default"](text=strings(AWKWARD))
        expected = model.probabilities(AWKWARD)
        assert len(set(np.round(expected[:, 0], 4))) > 6  # the texts do differ
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
        assert texts(found["label"]) == model.predictions(AWKWARD)

        seconds = AWKWARD[::-1]
        pairs = list(zip(AWKWARD, seconds, strict=True))
        pairs.append((AWKWARD[-1], AWKWARD[-1] + "dog"))
        first, second = zip(*pairs, strict=True)
        found = signatures["pair"](text=strings(first), second_text=strings(second))
        expected = model.probabilities(pairs)
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
        assert texts(found["label"]) == model.predictions(pairs)

    def test_several_labels(self, tmp_path, encoder, tokenizer):
        options = {"labels": ["a", "b", "c"], "threshold": 0.4}
        model = scrambled(MultiLabelClassifier(encoder, tokenizer, **options))
        found = load(model, tmp_path / "saved")["serving_default"](
            text=strings(AWKWARD)
        )
        expected = model.probabilities(AWKWARD)
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
        given = found["probabilities"].numpy() >= 0.4
        assert given.any() and not given.all()
        np.testing.assert_array_equal(found["given"], given)

    def test_scores(self, tmp_path, encoder, tokenizer):
        model = scrambled(TextClassifier(encoder, tokenizer, score_range=(-1, 3)))
        # Places in the range around its middle, and some that are cut off.
        outputs = model.outputs(model.features(AWKWARD))
        places = np.array([output["logits"][0] for output in outputs])
        kernel, bias = model.head.get_weights()
        scale = 0.5 / places.std()
        model.head.set_weights([scale * kernel, scale * (bias - places.mean()) + 0.5])
        expected = model.predictions(AWKWARD)
        assert {-1, 3} & set(expected) and len(set(expected)) > 4
        signature = load(model, tmp_path / "saved")["serving_default"]
        found = signature(text=strings(AWKWARD))
        assert list(found) == ["score"]
        np.testing.assert_allclose(found["score"], expected, atol=1e-5)


class TestTagger:
    def test_tags(self, tmp_path, encoder, tokenizer):
        model = TokenTagger(encoder, tokenizer, labels=["O", "B-\u00e9", "I-\u00e9"])
        model = scrambled(model)
        kernel = np.random.default_rng(0).normal(size=(16, 3))
        model.head.set_weights([kernel, np.zeros(3)])
        sentences = [text.split(" ") for text in AWKWARD]
        sentences += [
            ["cats"] * 25,
            ["a", "." * 90, "cat"],
            ["\x07"],
            ["a", "\x07", "b"],
        ]
        expected = model.predictions(sentences)
        assert len({tag for tags in expected for tag in tags}) == 3
        signature = load(model, tmp_path / "saved")["serving_default"]
        found = signature(sentence=strings([" ".join(s) for s in sentences]))
        lengths = found["lengths"].numpy().tolist()
        assert lengths == [len(words) for words in sentences]
        rows = [texts(row) for row in found["tags"]]
        assert [r[:n] for r, n in zip(rows, lengths, strict=True)] == expected
        assert {t for r, n in zip(rows, lengths, strict=True) for t in r[n:]} == {""}


class TestExtractor:
    @pytest.mark.parametrize(
        ("head_type", "answerability"), [("xlnet", False), ("bert", True)]
    )
    def test_answers(self, tmp_path, encoder, tokenizer, head_type, answerability):
        import tensorflow as tf

        model = SpanExtractor(
            encoder,
            tokenizer,
            head_type=head_type,
            answerability=answerability,
            stride=4,
            max_question_length=12,
            max_answer_length=7,
            beam_size=3,
        )
        model = scrambled(model)
        model.compile(jit_compile=False)  # which takes long
        examples = [(q, context) for context in CONTEXTS for q in QUESTIONS]
        expected = model.predictions(examples)
        answers = [answer.final_text() for answer in expected]
        assert len(set(answers)) > 20  # they do differ
        if answerability:
            assert 5 < answers.count("") < 30

        serve = load(model, tmp_path / "saved")["serving_default"]
        questions, contexts = zip(*examples, strict=True)
        found = serve(question=strings(questions), context=strings(contexts))
        assert texts(found["answer"]) == answers
        for name in ("score", "null_probability"):
            values = [getattr(answer, name) for answer in expected]
            np.testing.assert_allclose(found[name], values, atol=1e-4)

        # No text, beside some; and bytes that are no UTF-8.
        contexts = [b"", b"the cat", b" \x07\xcc\x81", b"\xff dog\xe4\xb8sat \xf0"]
        readable = model.predictions(
            [("the cat?", contexts[i].decode(errors="replace")) for i in (1, 3)]
        )
        found = serve(question=strings(["the cat?"] * 4), context=strings(contexts))
        answers = [a.decode(errors="replace") for a in found["answer"].numpy()]
        assert answers == ["", readable[0].final_text(), "", readable[1].final_text()]
        assert (found["score"].numpy()[[0, 2]] < -1e8).all()
        np.testing.assert_allclose(
            found["score"].numpy()[[1, 3]], [a.score for a in readable], atol=1e-4
        )

        with pytest.raises(tf.errors.InvalidArgumentError, match="needs its context"):
            serve(question=strings(["the cat?"]), context=strings(contexts))


class TestErrors:
    @pytest.fixture
    def model(self, encoder, tokenizer):
        return TextClassifier(encoder, tokenizer, labels=["a", "b"])

    def test_language_neutral(self, tmp_path, encoder, tokenizer):
        neutral = WordPieceTokenizer(tokenizer.vocabulary, language_neutral=True)
        model = TextClassifier(encoder, neutral, labels=["a", "b"])
        with pytest.raises(ValueError, match="language_neutral=False"):
            export_saved_model(model, tmp_path / "saved")
        assert not list(tmp_path.iterdir())

    def test_other_models(self, tmp_path):
        with pytest.raises(ValueError, match="'TextClassifier'.*Sequential"):
            export_saved_model(keras.Sequential(), tmp_path / "saved")

    def test_a_directory_in_use(self, tmp_path, model):
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(ValueError, match="new or empty"):
            export_saved_model(model, tmp_path)
        with pytest.raises(ValueError, match="new or empty"):
            export_saved_model(model, tmp_path / "thesis.tex")
        assert (tmp_path / "thesis.tex").read_text() == "years of work"

    def test_a_link_stays_one(self, tmp_path, model):
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        export_saved_model(model, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "saved_model.pb").is_file()

    def test_without_tensorflow_text(self, tmp_path, model, monkeypatch):
        monkeypatch.setitem(sys.modules, "tensorflow_text", None)
        with pytest.raises(ImportError, match="pip install 'tensorflow-text==2.20"):
            export_saved_model(model, tmp_path / "saved")

    def test_a_failure_leaves_nothing(self, tmp_path, model, monkeypatch):
        import tensorflow as tf

        def full(module, path, signatures):
            path.mkdir()
            (path / "saved_model.pb").write_text("half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(tf.saved_model, "save", full)
        with pytest.raises(OSError):
            export_saved_model(model, tmp_path / "saved")
        assert not list(tmp_path.iterdir())


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="other backends")
def test_other_backends_are_told_what_to_do(tmp_path, encoder, tokenizer):
    model = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow"):
        export_saved_model(model, tmp_path / "saved")
