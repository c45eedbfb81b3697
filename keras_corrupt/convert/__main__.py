"""`python -m keras_corrupt.convert`: models to other libraries, back, and to hubs."""

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import tyro

from keras_corrupt.commands.frame import command


def convert(
    source: Annotated[str, tyro.conf.Positional],
    target: Annotated[str | None, tyro.conf.Positional] = None,
    to: Literal[
        "keras_corrupt", "hugging_face", "keras_hub", "model_garden", "onnx", "litert"
    ] = "keras_corrupt",
    generator: str | None = None,
    approximate_gelu: bool | None = None,
    check: bool = True,
    sentence_transformers: bool = False,
    push: str | None = None,
    private: bool = False,
    dry_run: bool = False,
    system: str | None = None,
) -> None:
    """Writes a model in another library's format, or as a preset of this one.

    Nothing leaves the machine without --push.

    Args:
        source: A preset, directory or name; a directory of Hugging Face's ELECTRA,
            BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ModernBERT or COCO-LM, or of
            KerasHub; the prefix of a checkpoint of Model Garden or of Google's
            TensorFlow 1 code; hf://owner/name or kaggle://handle.
        target: The directory to make. With --push it may be left out.
        to: The format.
        generator: Where ELECTRA's generator is, if it is published by itself.
        approximate_gelu: Whether the encoder has gelu's tanh approximation, where the
            source does not say; or gets it, where the target has nothing else.
        check: Load what was written with its own library, if that is installed, and
            compare the outputs.
        sentence_transformers: Write the files of sentence-transformers, too, for
            vectors of texts; with --to hugging_face. A SentenceEncoder's are always
            written.
        push: Push to a hub: hf://owner/name, also with @revision, or
            kaggle://owner/model/framework/variation. Without a target the source is
            pushed, in the format of --to; the preset of a run with the presets that the
            run has kept, as revisions such as step-10000.
        private: Make a new repository on Hugging Face a private one.
        dry_run: Say what --push would push, and where to, and push nothing.
        system: module:Class of the model, where it is not one of this package.
    """
    if target is None and push is None:
        raise ValueError("give a `target`, the directory to make, or --push.")
    if push is None and (private or dry_run):
        raise ValueError("--private and --dry_run are for --push.")

    import keras

    from keras_corrupt.convert import conversion, pushing
    from keras_corrupt.presets.registry import import_class

    if system:
        import_class(system, keras.Model)  # by which its preset finds it
    options = {
        "to": to,
        "generator": generator,
        "approximate_gelu": approximate_gelu,
        "check": check,
        "sentence_transformers": sentence_transformers,
    }
    destination = push and pushing.Destination(push, private)
    if push and not dry_run:
        destination.check_token()
    with tempfile.TemporaryDirectory(prefix="keras_corrupt_") as folder:
        if target is None:
            directories = pushing.stage(source, folder, destination, **options)
        else:
            result = conversion.convert(source, target, **options)
            print(f"{target}: {type(result.model).__name__} as {to}")
            for name in result.untrained_networks:
                print(f"  without {name}: the source has none")
            if result.difference is not None:
                print(f"  checked: outputs differ by {result.difference:.1e} at most")
            elif check and to != conversion.OURS:
                print("  not checked: the format's own library is not installed")
            directories = {None: Path(target)} if push else {}
        for revision, directory in directories.items():
            if not dry_run:
                destination.push(directory, revision)
            files = pushing.listing(directory)
            print(f"{destination.address(revision)}: {files}")
    if dry_run:
        print("Nothing was pushed.")


@command("Run the same command again: it begins anew.")
def main(prog: str = "python -m keras_corrupt.convert") -> None:
    """Runs the command line of `prog`, the name of the program."""
    tyro.cli(convert, prog=prog, use_underscores=True)


if __name__ == "__main__":
    main()
