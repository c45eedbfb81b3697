"""Which model learns a task of which kind."""

from keras_corrupt.downstream.candidate_ranker import CandidateRanker
from keras_corrupt.downstream.multi_label_classifier import MultiLabelClassifier
from keras_corrupt.downstream.prompt_classifier import PromptClassifier
from keras_corrupt.downstream.sentence_encoder import SentenceEncoder
from keras_corrupt.downstream.span_extractor import SpanExtractor
from keras_corrupt.downstream.text_classifier import TextClassifier
from keras_corrupt.downstream.token_tagger import TokenTagger

#: Kind of a task -> class of its model.
MODELS = {
    "text_classification": TextClassifier,
    "multi_label_classification": MultiLabelClassifier,
    "tagging": TokenTagger,
    "span_extraction": SpanExtractor,
    "candidate_ranking": CandidateRanker,
    "prompts": PromptClassifier,
    "sentence_similarity": SentenceEncoder,
}


def model_class(task):
    """Returns the class of a task's model.

    Raises:
        ValueError: The task brings none, and there is none for its kind.
    """
    if task.model is None and task.kind not in MODELS:
        raise ValueError(
            f"The task {task.name} is of the kind {task.kind!r}, but there are models "
            f"for {', '.join(MODELS)} alone. Give it a `model`, a `DownstreamModel`."
        )
    return task.model or MODELS[task.kind]
