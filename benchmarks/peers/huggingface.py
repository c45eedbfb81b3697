"""PyTorch with Hugging Face's ELECTRA classes, joined by hand.

The vocabulary's logits are computed at masked positions only, which the classes don't
do by themselves; embeddings are tied; bfloat16 is autocast.
"""

import torch
from torch.nn import functional
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from benchmarks.peers import (
    MASK_ID,
    VOCABULARY,
    random_batch,
    random_positions,
    random_texts,
)

#: Size -> layers; widths of embeddings and networks; heads of the networks.
SIZES = {
    "tiny": (2, 128, 128, 32, 4, 1),
    "small": (12, 128, 256, 64, 4, 1),
    "base": (12, 768, 768, 256, 12, 4),
}


def make_step(
    system, batch_size, length, dtype, compiled=False, size="small", device="cpu"
):
    """See `benchmarks.peers`.

    Args:
        compiled: `False`, or what `torch.compile` takes as its mode (`True`: its own).
        size: One of `SIZES`.
        device: What computes: `cpu` or `cuda`.
    """
    if system == "teams":
        raise ValueError("Hugging Face has no TEAMS.")
    torch.manual_seed(0)
    layers, embedding, width, narrow, heads, few = SIZES[size]
    sizes = {
        "vocab_size": VOCABULARY,
        "embedding_size": embedding,
        "num_hidden_layers": layers,
    }
    discriminator = ElectraForPreTraining(
        ElectraConfig(
            hidden_size=width,
            intermediate_size=4 * width,
            num_attention_heads=heads,
            **sizes,
        )
    )
    if system == "scoring":
        return scoring(discriminator, batch_size, length, dtype, compiled)
    generator = ElectraForMaskedLM(
        ElectraConfig(
            hidden_size=narrow,
            intermediate_size=4 * narrow,
            num_attention_heads=few,
            **sizes,
        )
    )
    for network in (discriminator, generator):
        network.to(device)
    shared, own = discriminator.electra.embeddings, generator.electra.embeddings
    own.word_embeddings = shared.word_embeddings
    own.position_embeddings = shared.position_embeddings
    generator.generator_lm_head.weight = shared.word_embeddings.weight
    parameters = list(
        {
            id(parameter): parameter
            for network in (discriminator, generator)
            for parameter in network.parameters()
        }.values()
    )
    optimizer = torch.optim.AdamW(
        parameters, lr=5e-4, eps=1e-6, weight_decay=0.01, fused=True
    )
    ids = torch.tensor(random_batch(batch_size, length)).long().to(device)
    positions = torch.tensor(random_positions(batch_size, length)).long().to(device)
    mask = torch.ones_like(ids)
    wide = positions[..., None].expand(-1, -1, narrow)

    def losses():
        masked = ids.scatter(1, positions, MASK_ID)
        hidden = generator.electra(masked, attention_mask=mask).last_hidden_state
        head = generator.generator_predictions(hidden.gather(1, wide))
        logits = generator.generator_lm_head(head).flatten(0, 1).float()
        targets = ids.gather(1, positions).flatten()
        mlm = functional.cross_entropy(logits, targets)
        with torch.no_grad():
            sampled = torch.multinomial(logits.softmax(-1), 1).view_as(positions)
            corrupted = ids.scatter(1, positions, sampled)
        rtd_logits = discriminator(corrupted, attention_mask=mask).logits.float()
        rtd = functional.binary_cross_entropy_with_logits(
            rtd_logits, (corrupted != ids).float()
        )
        return mlm + 50 * rtd

    if compiled:
        losses = torch.compile(losses, mode=None if compiled is True else compiled)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16"):
            loss = losses()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss.item()

    return step


def scoring(model, batch_size, length, dtype, compiled):
    model.eval()
    batches = [
        (torch.tensor(ids).long(), torch.tensor(mask).long())
        for ids, mask in random_texts(batch_size, length)
    ]
    if compiled:
        model = torch.compile(model)

    @torch.inference_mode()
    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
            return [
                model(ids, attention_mask=mask).logits.float().numpy()
                for ids, mask in batches
            ]

    return step
