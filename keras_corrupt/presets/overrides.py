"""What overrides the values of a config: the user's arguments and global settings."""

import keras


def with_global_policy(config):
    """Returns a saved config, with the precision that the user set for all models."""
    policy = keras.config.dtype_policy().name
    return config if policy == "float32" else {**config, "dtype": policy}


def merge(config, overrides):
    """Returns `config` with `overrides` laid over it, dict by dict."""
    merged = dict(config)
    for key, value in overrides.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = merge(merged[key], value)
        merged[key] = value
    return merged
