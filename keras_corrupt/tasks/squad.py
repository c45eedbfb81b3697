"""SQuAD 1.1 and 2.0 (Rajpurkar et al., 2016; 2018): data, metrics, predictions."""

import json
import statistics
from pathlib import Path

from keras_corrupt.files.text import read_text
from keras_corrupt.files.whole import write_whole
from keras_corrupt.tasks.question_answering import Answer, Question
from keras_corrupt.tasks.task import Split, Task
from keras_corrupt.tasks.tfds import read_examples

VERSIONS = ("1.1", "2.0")
NOT_FOUND = "an answer that the context lacks"


class SquadTask(Task):
    """Question answering on SQuAD, or on other data in SQuAD's format.

    SQuAD's official evaluation, as Model Garden has it, computes the metrics. For
    version 2.0 there are two groups of them. `f1` and `exact_match` score what the
    model says: `""` where no answer has a probability above one half. The `best_`
    ones are for the threshold that suits the evaluated questions best, which is what
    papers report for development sets; `best_f1_threshold` is this probability in
    percent.

    An answer without a character is none, as if it were not listed.

    A training question is left out, and counted, where no answer is in its context;
    one that starts elsewhere than the file says is taken from its nearest place.
    Questions to evaluate on are never left out.

    Args:
        source: A directory with `train-v1.1.json` and `dev-v1.1.json` (`v2.0` for
            version 2.0) and perhaps `test-v1.1.json`, whose answers are not read; or
            a dict, split name -> path, whose names begin with `train`, `dev` or
            `test`; or `"tfds:squad"`, which TensorFlow Datasets downloads once.
        version: `"1.1"`, where every question has an answer, or `"2.0"`.

    Raises:
        ValueError: A file is missing, malformed, or of the other version.
    """

    kind = "span_extraction"
    main_metric = "f1"

    def __init__(self, source, version="1.1"):
        if version not in VERSIONS:
            raise ValueError(f"`version` must be one of {VERSIONS}; got {version!r}.")
        self.answerability = version == "2.0"
        self.name = f"squad{version.replace('.', '')}"
        self.model_arguments = {"answerability": self.answerability}
        if source == "tfds:squad":
            names = {"train": "train", "dev": "validation"}
            rows = {name: tfds_rows(version, names[name]) for name in names}
        else:
            files = find_files(source, version)
            rows = {name: json_rows(files[name]) for name in files}
        self.splits = {name: self._split(name, rows[name]) for name in rows}

    def _split(self, name, rows):
        examples, labels, ids, skipped = [], [], {}, {}
        for where, row in rows:
            question, context, identity = (
                member(row, key, str, where) for key in ("question", "context", "id")
            )
            if not context.strip():
                raise ValueError(f"{where}: its context is empty.")
            if identity in ids:
                raise ValueError(
                    f"{where} and {ids[identity]} have one id, {identity!r}."
                )
            if not name.startswith("test"):
                answers, located = self._answers(row, context, where)
                if answers and not located and name.startswith("train"):
                    count, first = skipped.get(NOT_FOUND, (0, where))
                    skipped[NOT_FOUND] = count + 1, first
                    continue
                labels.append(located if name.startswith("train") else answers)
            ids[identity] = where
            examples.append(Question(question, context))
        if not examples:
            raise ValueError(f"The split {name!r} has no question that can be used.")
        return Split(examples, labels or None, list(ids), skipped)

    def _answers(self, row, context, where):
        """Returns the answers as they are, and those found in the context."""
        answers = [
            (member(a, "text", str, where), member(a, "answer_start", int, where))
            for a in member(row, "answers", list, where)
            if member(a, "text", str, where).strip()
        ]
        if not answers and not self.answerability:
            raise ValueError(
                f"{where}: it has no answer, which is SQuAD 2.0's way. Pass "
                '`version="2.0"`.'
            )
        impossible = row.get("is_impossible", not answers)
        if self.answerability and impossible != (not answers):
            raise ValueError(
                f"{where}: `is_impossible` is {impossible}, but it has {len(answers)} "
                "answers."
            )
        starts = [nearest(text, context, start) for text, start in answers]
        located = [
            (text, start)
            for (text, _), start in zip(answers, starts, strict=True)
            if start is not None
        ]
        return answers, located

    def metrics(self, predictions, split):
        """Returns the official metrics in percent; see the class.

        Args:
            predictions: An `Answer` for each question.
            split: A `Split` with labels.
        """
        evaluate = _official_evaluations()[self.answerability]

        def by_id(values):
            return dict(zip(split.ids, values, strict=True))

        gold = by_id([{"text": text} for text, _ in gold] for gold in split.labels)
        questions = [{"id": i, "answers": answers} for i, answers in gold.items()]
        data = [{"paragraphs": [{"qas": questions}]}]
        scores = evaluate(data, by_id(p.final_text() for p in predictions))
        if not self.answerability:
            metrics = {"f1": scores["final_f1"], "exact_match": scores["exact_match"]}
            return {name: 100 * value for name, value in metrics.items()}
        metrics = {"f1": scores["f1"], "exact_match": scores["exact"]}
        for kind, name in (("HasAns", "answerable"), ("NoAns", "unanswerable")):
            if f"{kind}_f1" in scores:
                metrics[f"{name}_f1"] = scores[f"{kind}_f1"]
        best = evaluate(
            data,
            by_id(p.text for p in predictions),
            by_id(p.null_probability for p in predictions),
        )
        metrics["best_f1"] = best["final_f1"]
        metrics["best_exact_match"] = best["final_exact"]
        metrics["best_f1_threshold"] = 100 * best["final_f1_thresh"]
        return metrics

    def guesses(self, split):
        """For 2.0, no answer to any question; for 1.1, how each context begins.

        As many words of it are taken as a training answer has, by the median: answers
        have too little in common for one text to do better than 0.
        """
        if self.answerability:
            return [Answer("", 0, 0.0, null_odds=1.0)] * len(split)
        gold = [answers[0][0] for answers in self.splits["train"].labels]
        count = int(statistics.median(len(text.split()) for text in gold))
        beginnings = [" ".join(e.context.split()[:count]) for e in split.examples]
        return [Answer(text, 0, 0.0) for text in beginnings]

    def failure(self, predictions, split):
        """Says whether no answer has a word of the right one; see `Task.failure`."""
        answerable = sum(map(bool, split.labels))
        metrics = self.metrics(predictions, split)
        if metrics.get("answerable_f1", metrics["f1"]) or not answerable:
            return None
        if not any(p.final_text() for p in predictions):
            return f"it answers none of {len(predictions):,} questions"
        return "no answer that it gives has a word of the right one"

    def write_predictions(self, predictions, name, directory):
        """Writes the official format: JSON, id -> text (`""` for no answer).

        For 2.0 there is a second file, id -> null odds, for the official script's
        option `--na-prob-file`. The files are `squad20-dev-predictions.json` and
        `squad20-dev-null_odds.json`.

        Returns:
            The path of the file of texts.
        """
        ids = self.splits[name].ids
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        texts = [prediction.final_text() for prediction in predictions]
        odds = [prediction.null_odds for prediction in predictions]
        path = directory / f"{self.name}-{name}-predictions.json"
        if self.answerability:
            odds_path = directory / f"{self.name}-{name}-null_odds.json"
            _write(odds_path, dict(zip(ids, odds, strict=True)))
        _write(path, dict(zip(ids, texts, strict=True)))
        return path


def find_files(source, version):
    """Returns split name -> path of a directory or of a dict; see `SquadTask`."""
    if isinstance(source, dict):
        wrong = [n for n in source if not n.startswith(("train", "dev", "test"))]
        lacks_dev = not any(name.startswith("dev") for name in source)
        if wrong or lacks_dev or "train" not in source:
            raise ValueError(
                "`source` needs a split `train` and one whose name begins with `dev`, "
                f"and others may begin with `dev` or `test`; got {list(source)}."
            )
        return source
    directory = Path(source)
    if not directory.is_dir():
        raise ValueError(
            f"{directory} is no directory. It must be one, or tfds:squad (in Python "
            "also a dict of files)."
        )
    files = {k: directory / f"{k}-v{version}.json" for k in ("train", "dev", "test")}
    missing = [files[k].name for k in ("train", "dev") if not files[k].exists()]
    if missing:
        raise ValueError(
            f"{directory} lacks {' and '.join(missing)}; it has "
            f"{sorted(path.name for path in directory.iterdir())[:10]}."
        )
    return {name: path for name, path in files.items() if path.exists()}


def json_rows(path):
    """Yields the questions of a file in SQuAD's format.

    Args:
        path: A JSON file: `data`, articles, `paragraphs`, `qas`.

    Yields:
        For each question where it stands, for messages, and a dict with `id`,
        `question`, `context` and what else the file says of it.

    Raises:
        FileNotFoundError: There is no file.
        ValueError: It is malformed.
    """
    text = read_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from error
    for i, article in enumerate(member(content, "data", list, path)):
        of_article = f"{path}, article {i}"
        for j, paragraph in enumerate(member(article, "paragraphs", list, of_article)):
            of_paragraph = f"{of_article}, paragraph {j}"
            context = member(paragraph, "context", str, of_paragraph)
            for k, row in enumerate(member(paragraph, "qas", list, of_paragraph)):
                where = f"{of_paragraph}, question {k}"
                if not isinstance(row, dict):
                    raise ValueError(f"{where}: it is no JSON object.")
                yield where, {**row, "context": context}


def tfds_rows(version, split):
    """Yields what `json_rows` yields, of TensorFlow Datasets' `squad`."""
    for i, row in enumerate(read_examples(f"squad/v{version}", split)):
        texts, starts = row["answers"]["text"], row["answers"]["answer_start"]
        answers = [
            {"text": text.decode(), "answer_start": int(start)}
            for text, start in zip(texts, starts, strict=True)
        ]
        strings = {k: row[k].decode() for k in ("id", "question", "context")}
        yield (
            f"tfds:squad/v{version}, {split}, row {i}",
            {**strings, "answers": answers},
        )


def member(parent, key, kind, where):
    """Returns a member of a JSON object, which must be there and of a type."""
    value = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(value, kind):
        raise ValueError(
            f"{where}: `{key}` must be there and a {kind.__name__}; got {value!r:.60}."
        )
    return value


def nearest(text, context, start):
    """Returns where `text` occurs in `context`, nearest to `start`, or `None`.

    >>> nearest("an", "an answer and an end", 12)
    10
    """
    positions, position = [], context.find(text)
    while position >= 0:
        positions.append(position)
        position = context.find(text, position + 1)
    return min(positions, key=lambda position: abs(position - start), default=None)


def _official_evaluations():
    try:
        from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0
    except ImportError as error:
        raise ImportError(
            "SQuAD's metrics need tf-models-official: pip install -e '.[squad]'."
        ) from error
    return squad_evaluate_v1_1.evaluate, squad_evaluate_v2_0.evaluate


def _write(path, content):
    write_whole(path, json.dumps(content, ensure_ascii=False))
