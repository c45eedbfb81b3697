"""Models to hubs, by the libraries made for that. Nothing else here sends anything."""

import re
import shutil
from pathlib import Path

import keras

from keras_corrupt.convert.card import model_card
from keras_corrupt.convert.conversion import OURS, check_generator, convert
from keras_corrupt.convert.hubs import local_copy, not_installed
from keras_corrupt.presets import load_preset
from keras_corrupt.presets.directory import read_config
from keras_corrupt.presets.locations import trained_presets

_FORMS = {
    "hf": r"hf://(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?",
    "kaggle": r"kaggle://(?P<name>[\w-]+/[\w-]+/\w+/[\w.-]+)",
}
_TOKENS = {
    "hf": "log in by `hf auth login`, or set HF_TOKEN",
    "kaggle": "log in by `kagglehub.login()`, or set KAGGLE_API_TOKEN",
}


class Destination:
    """Where on a hub models go.

    Args:
        address: `hf://owner/name`, also with `@revision`, or
            `kaggle://owner/model/framework/variation`.
        private: Whether a repository of Hugging Face's that is made is private.
            Kaggle's models always are, until their owner publishes them.

    Raises:
        ValueError: It is no such address.
    """

    def __init__(self, address, private=False):
        forms = {hub: re.fullmatch(form, address) for hub, form in _FORMS.items()}
        self.hub = next((hub for hub, match in forms.items() if match), None)
        if self.hub is None:
            raise ValueError(
                "`push` must be hf://owner/name, also with @revision, or "
                f"kaggle://owner/model/framework/variation; got {address!r}."
            )
        groups = forms[self.hub].groupdict()
        self.name, self.revision = groups["name"], groups.get("revision")
        self.private = private

    def address(self, revision=None):
        """Returns the address of a revision, by which the model is loaded again.

        On Kaggle, which has no revisions, the variation's name tells it.

        >>> Destination("kaggle://me/model/keras/small").address("step-100")
        'kaggle://me/model/keras/small-step-100'
        """
        mark = {"hf": "@", "kaggle": "-"}[self.hub]
        revision = revision or self.revision
        return f"{self.hub}://{self.name}" + (f"{mark}{revision}" if revision else "")

    def check_token(self):
        """Raises a `ValueError` if nobody is logged in, or the library is missing."""
        try:
            if self.hub == "hf":
                from huggingface_hub import get_token
            else:
                from kagglehub.config import get_kaggle_credentials as get_token
        except ImportError as error:
            raise not_installed(self.hub, self.address()) from error
        if not get_token():
            raise ValueError(
                f"{self.address()} needs a token: {_TOKENS[self.hub]}. --dry_run tells "
                "without one what would be pushed."
            )

    def push(self, directory, revision=None):
        """Pushes a directory, on Hugging Face as one commit.

        Args:
            directory: A `Path`.
            revision: The revision, the address's own if not given.

        Raises:
            ValueError: It cannot be pushed.
        """
        address = self.address(revision)
        try:
            if self.hub == "hf":
                self._to_hugging_face(directory, revision or self.revision)
            else:
                import kagglehub

                handle = address.removeprefix("kaggle://")
                kagglehub.model_upload(handle, str(directory))
        except Exception as error:  # each library has its own
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ValueError(
                f"{address} cannot be pushed to: {reason} The same command pushes "
                "again; what was listed as pushed before is there."
            ) from error

    def _to_hugging_face(self, directory, revision):
        import huggingface_hub

        api = huggingface_hub.HfApi()
        api.create_repo(self.name, private=self.private or None, exist_ok=True)
        if revision:
            api.create_branch(self.name, branch=revision, exist_ok=True)
        api.upload_folder(
            repo_id=self.name,
            folder_path=directory,
            revision=revision,
            commit_message="Model from keras_corrupt",
        )


def stage(source, folder, destination, to=OURS, **options):
    """Makes the directories that are to be pushed.

    Args:
        source: As for `convert`. With a run's `preset`, the presets that the run has
            kept come, too.
        folder: A directory to make them in.
        destination: The `Destination`.
        to: The format.
        options: Options of `convert`.

    Returns:
        Revision -> directory; the revision of `source` itself is `None`.

    Raises:
        ValueError: One cannot be converted.
    """
    staged, name = {}, destination.name.split("/")[-1]
    for revision, preset in revisions_of(source).items():
        directory = Path(folder) / (revision or name)
        if to == OURS and _is_ours(preset):
            if generator := options.get("generator"):
                check_generator(local_copy(generator), Path(preset))
            shutil.copytree(preset, directory, ignore=shutil.ignore_patterns(".*"))
        else:
            convert(preset, directory, to, **options)
        write_missing_card(directory, preset, name)
        staged[revision] = directory
    return staged


def revisions_of(source):
    """Returns the presets of a run: revision -> path; the last one's is `None`."""
    path = Path(trained_presets().get(source, source))
    kept = sorted((path.parent / "presets").glob("step-*"))
    revisions = {f"step-{int(p.name[5:])}": p for p in kept if p.name[5:].isdecimal()}
    return {None: path if path.is_dir() else source} | (
        revisions if path.name == "preset" else {}
    )


def write_missing_card(directory, source, name):
    """Writes the `README.md` of a preset that has none."""
    path = directory / "README.md"
    if not path.exists():
        model = load_preset(directory, keras.Model)
        card = model_card(model, Path(source), OURS, name)
        path.write_text(card, encoding="utf-8")


def listing(directory):
    """Returns the files that a push of a directory sends, with their bytes."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    sizes = [path.stat().st_size for path in files]
    lines = [f"{len(files)} files, {sum(sizes):,} bytes"]
    for path, size in zip(files, sizes, strict=True):
        lines.append(f"  {size:>13,}  {path.relative_to(directory).as_posix()}")
    return "\n".join(lines)


def _is_ours(path):
    try:
        return bool(read_config(Path(path)))
    except ValueError:
        return False
