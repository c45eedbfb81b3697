"""The five parts that special tokens play, and which tokens play them."""

from collections.abc import Iterable, Mapping, Sequence

import tokenizers

#: Role -> the names that its token usually has; the first is what training gives it.
ROLES = {
    "padding": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
    "classify": ("[CLS]", "<s>", "<cls>"),
    "separate": ("[SEP]", "</s>", "<sep>"),
    "mask": ("[MASK]", "<mask>"),
}

#: Role -> its name in Hugging Face's `tokenizer_config.json`.
CONFIG_NAMES = {
    "padding": "pad_token",
    "unknown": "unk_token",
    "classify": "cls_token",
    "separate": "sep_token",
    "mask": "mask_token",
}

#: The special tokens of a vocabulary that is trained here, in the order of their ids.
SPECIAL_TOKENS = tuple(names[0] for names in ROLES.values())


def find_roles(
    vocabulary: Sequence[str], named: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Finds the token of each role.

    Args:
        vocabulary: The tokens.
        named: Role -> token, where the usual names do not tell.

    Returns:
        Role -> token, in the order of `ROLES`.

    Raises:
        ValueError: If a role is unknown, has no token, or shares one with another.

    Example:
    >>> find_roles(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])["classify"]
    '<s>'
    """
    named = named or {}
    unknown = [role for role in named if role not in ROLES]
    if unknown:
        raise ValueError(f"roles: {unknown[0]!r} is none of {', '.join(ROLES)}.")
    tokens = set(vocabulary)
    roles, missing = {}, []
    for role, names in ROLES.items():
        names = (named[role],) if role in named else names
        matches = [name for name in names if name in tokens]
        if matches:
            roles[role] = matches[0]
        else:
            missing.append(f"{role} ({' or '.join(names)})")
    if missing:
        raise ValueError(
            f"the vocabulary lacks tokens for the roles {', '.join(missing)}. Name one "
            'for each, as in from_file(path, roles={"mask": "<mask>"}), which adds a '
            "token that the vocabulary lacks; save the result and use that."
        )
    if len(set(roles.values())) < len(roles):
        raise ValueError(f"roles: two roles share a token: {roles}.")
    return roles


def special_tokens(
    names: Iterable[str], engine: tokenizers.Tokenizer
) -> list[tokenizers.AddedToken]:
    """Returns the special tokens of an engine.

    Args:
        names: The tokens.
        engine: The engine. Special tokens that it has stay as they are: for other
            libraries a mask may take the space before it.

    Returns:
        What `add_special_tokens` of the engine takes.
    """
    added = engine.get_added_tokens_decoder().values()
    special = {token.content: token for token in added if token.special}
    return [special.get(n, tokenizers.AddedToken(n, special=True)) for n in names]


def template(roles: Mapping[str, str], role_ids: Mapping[str, int]):
    """Returns a post-processor that gives other libraries the ids that `pack` gives.

    Args:
        roles: Role -> token.
        role_ids: Role -> id.

    Returns:
        One of the `tokenizers` library.
    """
    return tokenizers.processors.TemplateProcessing(
        single="classify $A separate",
        pair="classify $A separate $B:1 separate:1",
        special_tokens=[
            {"id": role, "ids": [role_ids[role]], "tokens": [roles[role]]}
            for role in ("classify", "separate")
        ],
    )


def hugging_face_config(roles):
    """Returns what `tokenizer_config.json` says to Hugging Face's readers.

    Args:
        roles: Role -> its special token.
    """
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "split_special_tokens": True,
        **{CONFIG_NAMES[role]: token for role, token in roles.items()},
    }
