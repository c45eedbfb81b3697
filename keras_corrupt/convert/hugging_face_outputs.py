"""What transformers makes of a directory of Hugging Face's, for the check of it."""

from keras_corrupt.convert.files import read_json
from keras_corrupt.convert.hugging_face_modernbert import KIND


def outputs(directory, inputs):
    """Returns what transformers makes of a directory: name -> array."""
    import torch
    import transformers

    if not (directory / "config.json").exists():  # one of several tasks
        return {
            f"{task.name}/{name}": array
            for task in directory.iterdir()
            for name, array in outputs(task, inputs).items()
        }
    names = {
        "input_ids": "token_ids",
        "token_type_ids": "segment_ids",
        "attention_mask": "padding_mask",
    }
    if read_json(directory / "config.json")["model_type"] == KIND:
        del names["token_type_ids"]
    tensors = {n: torch.tensor(inputs[ours]).long() for n, ours in names.items()}

    def run(folder):
        architecture = read_json(folder / "config.json")["architectures"][0]
        network = getattr(transformers, architecture).from_pretrained(folder).eval()
        with torch.no_grad():
            result = network(**tensors, output_hidden_states=True)
        if architecture.endswith("ForQuestionAnswering"):
            logits = torch.stack([result.start_logits, result.end_logits], -1)
        else:
            logits = getattr(result, "logits", None)
        kind = {
            **{"ForPreTraining": "rtd", "ForMaskedLM": "mlm"},
            "ForQuestionAnswering": "spans",
        }
        name = next((v for k, v in kind.items() if architecture.endswith(k)), "logits")
        predictions = {} if logits is None else {name: logits.numpy()}
        return {"hidden": result.hidden_states[-1].numpy(), **predictions}

    arrays = run(directory)
    if (directory / "generator").is_dir():
        arrays["mlm"] = run(directory / "generator")["mlm"]
    return arrays
