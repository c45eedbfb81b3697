"""`python -m keras_corrupt.convert`: models from and to other libraries."""

from typing import Annotated, Literal

import tyro

from keras_corrupt.commands.frame import command


def convert(
    source: Annotated[str, tyro.conf.Positional],
    target: Annotated[str, tyro.conf.Positional],
    to: Literal[
        "keras_corrupt", "hugging_face", "keras_hub", "model_garden", "onnx", "litert"
    ] = "keras_corrupt",
    generator: str | None = None,
    approximate_gelu: bool | None = None,
    check: bool = True,
) -> None:
    """Writes a model in another library's format, or as a preset of this one.

    Args:
        source: A preset, directory or name; a directory of Hugging Face's ELECTRA,
            BERT, ModernBERT or COCO-LM, or of KerasHub; the prefix of a checkpoint of
            Model Garden or of Google's TensorFlow 1 code; hf://owner/name or
            kaggle://handle.
        target: The directory to make.
        to: The format.
        generator: Where ELECTRA's generator is, if it is published by itself.
        approximate_gelu: Whether the encoder has gelu's tanh approximation, where the
            source does not say; or gets it, where the target has nothing else.
        check: Load what was written with its own library, if that is installed, and
            compare the outputs.
    """
    from keras_corrupt.convert import conversion

    done = conversion.convert(source, target, to, generator, approximate_gelu, check)
    print(f"{target}: {type(done.model).__name__} as {to}")
    for name in done.left_out:
        print(f"  without {name}: the source has none")
    if done.difference is not None:
        print(f"  checked: outputs differ by {done.difference:.1e} at most")
    elif check and to != conversion.OURS:
        print("  not checked: the format's own library is not installed")


@command("Run the same command again: it begins anew.")
def main() -> None:
    """Runs the command line."""
    tyro.cli(convert, prog="python -m keras_corrupt.convert", use_underscores=True)


if __name__ == "__main__":
    main()
