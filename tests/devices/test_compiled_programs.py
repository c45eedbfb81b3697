import keras
import pytest

from keras_corrupt.devices import compiled_programs


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX keeps them")
@pytest.mark.parametrize(
    "devices, variable, kept",
    [(["gpu:0"], None, True), ([], None, False), (["gpu:0"], "", False)],
)
def test_programs_for_accelerators_are_kept(
    devices, variable, kept, tmp_path, monkeypatch
):
    import jax

    monkeypatch.setattr(compiled_programs, "accelerators", lambda: devices)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(compiled_programs.FOLDER, raising=False)
    if variable is not None:
        monkeypatch.setenv(compiled_programs.FOLDER, variable)
    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update(names[1], 1)
    try:
        compiled_programs.keep()
        folder = str(tmp_path / "keras_corrupt" / "compiled")
        assert (jax.config.jax_compilation_cache_dir == folder) == kept
        assert (jax.config.jax_persistent_cache_min_compile_time_secs == 0) == kept
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
