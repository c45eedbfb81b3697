import gzip
import lzma
import subprocess
import sys

import pytest

from keras_corrupt.cross_view.tasks.translation import TranslationTask, read_parallel
from keras_corrupt.tasks.task import Split

ENGLISH = "The cat sat.\nIt can't run!\nA dog ran, and ran.\n"
GERMAN = "Die Katze saß.\nSie kann nicht rennen!\nEin Hund rannte und rannte.\n"


def written(tmp_path, text, name, encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return str(path)


def make_task(tmp_path, source=ENGLISH, target=GERMAN, min_count=1, **arguments):
    paths = written(tmp_path, source, "f.en"), written(tmp_path, target, "f.de")
    files = {"train": paths, "dev": paths}
    return TranslationTask("toy", files, min_count=min_count, **arguments)


class TestReading:
    def test_sentences_are_divided_and_translations_kept(self, tmp_path):
        source = written(tmp_path, "\ufeff" + ENGLISH.replace("\n", " \r\n"), "f.en")
        split = read_parallel(source, written(tmp_path, GERMAN, "f.de"))
        assert split.examples[1] == ["It", "ca", "n't", "run", "!"]
        assert split.labels == GERMAN.splitlines()
        split = read_parallel(source, in_words=True)
        assert split.examples[1] == ["It", "can't", "run!"] and split.labels is None

    @pytest.mark.parametrize("module, name", [(gzip, "f.gz"), (lzma, "f.xz")])
    def test_compressed_files(self, tmp_path, module, name):
        whole = module.compress(ENGLISH.encode())
        path = written(tmp_path, whole, name)
        plain = written(tmp_path, ENGLISH, "f.en")
        assert read_parallel(path) == read_parallel(plain)
        path = written(tmp_path, whole[:-9], name)
        with pytest.raises(ValueError, match=f"{name} is damaged or cut short"):
            read_parallel(path)

    def test_only_line_ends_end_a_line(self, tmp_path):
        path = written(tmp_path, "a\u2028b\x0cc\nd\n", "f")
        assert len(read_parallel(path, path)) == 2

    @pytest.mark.parametrize(
        "text, message",
        [
            ("a\n\nb\n", ":2 is empty"),
            ("a\n \t\u3000\r\nb\n", ":2 is empty"),
            ("", " has no words"),
            ("...\n- !\n", " has no words"),
            ("Öl\n".encode("latin-1"), ":1 is not UTF-8 text"),
            ("a\nb\n".encode("utf-16"), ":1 is not UTF-8 text"),
            ("a\nb\n".encode("utf-16-le"), ":1 has a zero byte"),
        ],
    )
    def test_errors_name_file_and_line(self, tmp_path, text, message):
        path = written(tmp_path, text, "f.de")
        with pytest.raises(ValueError, match=f"f.de{message}") as error:
            read_parallel(path)
        assert "\n" not in str(error.value)

    def test_each_line_has_its_translation(self, tmp_path):
        source = written(tmp_path, ENGLISH, "f.en")
        target = written(tmp_path, GERMAN + "Noch einer.\n", "f.de")
        with pytest.raises(ValueError, match="f.en has 3 lines and .*f.de 4: each"):
            read_parallel(source, target)
        with pytest.raises(FileNotFoundError, match="is not a file"):
            read_parallel(source, tmp_path)


class TestTask:
    def test_words_that_are_frequent_are_learned(self, tmp_path):
        assert make_task(tmp_path, min_count=2).model_arguments == {
            "labels": ["rannte", "￭."],
            "in_words": False,
        }
        task = make_task(tmp_path, in_words=True, max_train=1)
        assert task.model_arguments["labels"] == ["Die", "Katze", "saß."]
        assert len(task.splits["train"]) == 1 and len(task.splits["dev"]) == 3

    def test_five_times_are_too_few(self, tmp_path):
        text = "fünf sechs\n" * 5 + "sechs\n"
        paths = [written(tmp_path, text, "f.de")] * 2
        task = TranslationTask("toy", {"train": paths, "dev": paths})
        assert task.model_arguments["labels"] == ["sechs"]

    def test_long_sentences_are_left_out_of_training(self, tmp_path):
        task = make_task(tmp_path, max_length=5)
        assert task.splits["train"].labels == GERMAN.splitlines()[:2]
        assert task.splits["train"].examples == task.splits["dev"].examples[:2]
        ((reason, (count, where)),) = task.splits["train"].skipped.items()
        assert (reason, count) == ("more than 5 words", 1) and where.endswith("f.en:3")
        assert len(task.splits["dev"]) == 3
        assert "Hund" not in task.model_arguments["labels"]

    @pytest.mark.parametrize(
        "files, arguments, message",
        [
            (None, {"min_count": 9}, "f.de has no word 9 times.*`min_count=9`"),
            (None, {"max_length": 2}, "f.en: every sentence.*`max_length=2`"),
            (None, {"bleu_tokenizer": "x"}, "`bleu_tokenizer` must be one of 13a"),
            ({"train": ("a", "b")}, {}, "`files` needs a 'train' and a 'dev'"),
            ({"train": "ab", "dev": ("a", "b")}, {}, r"`files\['train'\]` must be"),
            ({"train": ("a", "b"), "dev": ("a",)}, {}, r"`files\['dev'\]` must be"),
        ],
    )
    def test_bad_arguments(self, tmp_path, files, arguments, message):
        with pytest.raises(ValueError, match=message):
            if files:
                TranslationTask("toy", files, **arguments)
            else:
                make_task(tmp_path, **arguments)

    @pytest.mark.parametrize("in_words", [False, True])
    def test_bleu_is_that_of_the_command(self, tmp_path, in_words):
        pytest.importorskip("sacrebleu")
        target = GERMAN * 2 + "Ein Hund saß, wo die Katze saß .\n"
        task = make_task(tmp_path, "a\n" * 7, target, in_words=in_words)
        found = GERMAN.replace("Hund", "Kater") + GERMAN + "Ein Hund saß wo er saß.\n"
        split = task.splits["dev"]
        path = task.write_predictions(found.splitlines(), "dev", tmp_path)
        options = ["--tokenize", "none"] if in_words else []
        command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "f.de"), "-i"]
        command += [path, "--score-only", "--width", "6", *options]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        metrics = task.metrics(found.splitlines(), split)
        assert metrics["bleu"] == pytest.approx(float(ran.stdout), abs=1e-5)
        assert 20 < metrics["bleu"] < 90
        assert task.metrics(split.labels, split)["bleu"] == pytest.approx(100.0)

    def test_a_translation_is_needed_for_each(self, tmp_path):
        task = make_task(tmp_path)
        with pytest.raises(ValueError, match="1 translations of 3 sentences"):
            task.metrics(["Nein."], task.splits["dev"])

    def test_guess_and_failure(self, tmp_path):
        task = make_task(tmp_path)
        split = task.splits["dev"]
        # Of 5 words, the median; the others have 4 and 6.
        guesses = task.guesses(split)
        assert guesses == ["Sie kann nicht rennen!"] * 3
        assert "as 'Sie kann nicht rennen!'" in task.failure(guesses, split)
        assert task.failure(["a", "a", "b"], split) is None
        assert task.failure(["a"], Split([["b"]], ["a"])) is None
        assert task.unseen == {"train": {}, "dev": {}}

    def test_a_missing_library(self, tmp_path, monkeypatch):
        task = make_task(tmp_path)
        monkeypatch.setitem(sys.modules, "sacrebleu", None)
        with pytest.raises(ImportError, match=r"'.\[translation\]'"):
            task.metrics(["a"] * 3, task.splits["dev"])
