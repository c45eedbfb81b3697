"""`keras-corrupt demo`: a page in the browser to try a model, drawn by Gradio."""

import dataclasses
import os

import tyro

from keras_corrupt.commands.bounds import Bounds, check_bounds
from keras_corrupt.commands.frame import command


@dataclasses.dataclass(frozen=True)
class Config:
    """Shows a page in the browser to try a model.

    It has a part for each ability of the model: words that look replaced, how
    likely sentences are, the nearest of some sentences, and a fine-tuned model's
    answers. Needs Gradio: pip install 'keras-corrupt[demo]'.
    """

    preset: tyro.conf.Positional[str] = "tiny_en"
    """A pretrained or fine-tuned model: a preset's directory or name, or
    hf://owner/name."""
    host: str = "127.0.0.1"
    """The address to listen at: by default this machine alone reaches the page, and
    with 0.0.0.0 every machine of the network does."""
    port: int = 7860
    """The port to listen at."""
    share: bool = False
    """Lend the page a public address on Gradio's servers, which pass all texts on."""
    system: str | None = None
    """`module:Class` of the model, where it is not one of this package."""


def demo(config):
    """Shows the page until the user stops it: see `Config`."""
    check_bounds(vars(config), {"port": Bounds(1, 65535, closed=True)})
    # Before Gradio is imported, which otherwise reports its use.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        import gradio
    except ImportError as error:
        raise ImportError(
            f"The page needs Gradio ({error}): pip install 'keras-corrupt[demo]'."
        ) from error

    import keras

    from keras_corrupt.cli.tabs import tabs_of
    from keras_corrupt.models import load_preset

    tabs = tabs_of(load_preset(config.preset, keras.Model, config.system))
    if not tabs:
        raise ValueError(f"{config.preset} does nothing that a page could show.")
    print(f"http://{config.host}:{config.port} (Ctrl-C ends it)", flush=True)
    page(gradio, config.preset, tabs).launch(
        quiet=not config.share,  # or the public address would not be seen
        server_name=config.host,
        server_port=config.port,
        share=config.share,
        # The fonts of the system, because others come from a server.
        theme=gradio.themes.Default(font="sans-serif", font_mono="monospace"),
        footer_links=[],
    )


def page(gradio, title, tabs):
    """Returns the page, `gradio.Blocks`.

    Args:
        gradio: The module.
        title: The name at the top.
        tabs: A list of `Tab`.
    """
    with gradio.Blocks(
        title=f"keras-corrupt: {title}", analytics_enabled=False
    ) as blocks:
        gradio.Markdown(f"# {title}")
        for tab in tabs:
            with gradio.Tab(tab.title):
                gradio.Markdown(tab.about)
                boxes = [
                    gradio.Textbox(box.example, label=box.label, lines=box.lines)
                    for box in tab.boxes
                ]
                button = gradio.Button("Run", variant="primary")
                shown = gradio.Dataframe if not tab.marks else gradio.HighlightedText
                button.click(shown_by(gradio, tab), boxes, shown(label=tab.title))
    return blocks


def shown_by(gradio, tab):
    """Returns a tab's function, with results and errors that Gradio can show."""

    def run(*texts):
        try:
            answer = tab.answer(*texts)
        except ValueError as error:
            raise gradio.Error(str(error)) from error
        if tab.marks:
            return answer
        return {"headers": answer.header, "data": answer.rows}

    return run


@command("Run the same command again.")
def main(prog="keras-corrupt demo"):
    """Runs the command line of `prog`, the name of the program."""
    demo(tyro.cli(Config, prog=prog, use_underscores=True))


if __name__ == "__main__":
    main()
