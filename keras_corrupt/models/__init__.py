"""Pretraining models, one file each. Start with README.md in this folder."""

from keras_corrupt.models.adversarial_electra import AdversarialElectra
from keras_corrupt.models.all_tokens_mlm import AllTokensMLM
from keras_corrupt.models.coco_lm import CocoLM
from keras_corrupt.models.electra import Electra
from keras_corrupt.models.electra_tt import ElectraTT
from keras_corrupt.models.electric import Electric
from keras_corrupt.models.masked_lm import MaskedLM
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.models.replace_mlm import ReplaceMLM
from keras_corrupt.models.teams import Teams
from keras_corrupt.models.two_tower import TwoTower
from keras_corrupt.models.unigram_electra import UnigramElectra
from keras_corrupt.presets import load_preset

__all__ = [
    "AdversarialElectra",
    "AllTokensMLM",
    "CocoLM",
    "Electra",
    "ElectraTT",
    "Electric",
    "MaskedLM",
    "Pretrainer",
    "ReplaceMLM",
    "Teams",
    "TwoTower",
    "UnigramElectra",
    "load_preset",
]
