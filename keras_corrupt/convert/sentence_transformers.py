"""The files by which sentence-transformers reads a directory of Hugging Face's.

They say that a text's vector is the mean of its tokens' hidden vectors, as
`scoring.embed_texts` has it; the vectors of a `SentenceEncoder` have the length 1.
"""

import json

from keras_corrupt.downstream import SentenceEncoder

#: Folder of a module -> its class; the folder of the Transformer is the directory.
_MODULES = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}


def is_wanted(model, options):
    """Whether a directory gets the files: see `Options.sentence_transformers`."""
    return options.sentence_transformers or isinstance(model, SentenceEncoder)


def write(directory, model):
    """Writes the files.

    Args:
        directory: A `Path`, where `hugging_face.write` writes, too.
        model: A model of ours.

    Raises:
        ValueError: The model has no tokenizer.
    """
    if model.tokenizer is None:
        raise ValueError(
            "sentence-transformers reads texts, but the model has no tokenizer: leave "
            "out `sentence_transformers`."
        )
    modules = [name for name in _MODULES if name != "2_Normalize"]
    max_length = model.encoder.max_length
    if isinstance(model, SentenceEncoder):
        modules, max_length = [*_MODULES], model.max_length
    contents = {
        "modules.json": [
            {
                "idx": number,
                "name": str(number),
                "path": name,
                "type": f"sentence_transformers.models.{_MODULES[name]}",
            }
            for number, name in enumerate(modules)
        ],
        "sentence_bert_config.json": {
            "max_seq_length": max_length,
            "do_lower_case": False,  # the tokenizer does
        },
        "config_sentence_transformers.json": {
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": model.encoder.hidden_size,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    }
    for name in modules[1:]:
        (directory / name).mkdir()
    for name, content in contents.items():
        text = json.dumps(content, indent=2) + "\n"
        (directory / name).write_text(text, encoding="utf-8")
