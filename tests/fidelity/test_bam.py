"""Born-Again Multi-Task networks: Clark's thesis, chapter 3."""

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.models.weightless import weightless
from keras_corrupt.multitask.strategies import STRATEGIES, Strategy
from keras_corrupt.tasks.glue import TASKS


def test_less_than_a_ten_thousandth_of_the_parameters_are_heads():
    """3.2.1, of BERT-Large and the tasks of table 3.1."""
    with weightless():
        large = TransformerEncoder(**ENCODERS["large"])
    outputs = [len(TASKS[name].labels or [0]) for name in TASKS if name != "WNLI"]
    heads = sum(n * (large.hidden_size + 1) for n in outputs)
    assert heads < 1e-4 * large.count_params()


def test_strategies_are_those_of_the_tables():
    # Table 3.1: who is taught, and by whom.
    for name in ("single", "multi", "single_to_single", "multi_to_multi"):
        *teacher, student = name.split("_to_")
        expected = Strategy(student == "multi", *teacher)
        assert STRATEGIES[name] == expected
    bam = Strategy(multi=True, teacher="single")
    assert STRATEGIES["single_to_multi"] == bam
    # Annealed, tasks drawn by their size to the power 0.75, unless table 3.4 says so.
    assert bam.gold_weight is None and bam.exponent == 0.75
    changes = {
        "no_layer_decay": {"layer_decay": 1.0},
        "no_task_sampling": {"exponent": 1.0},
        "no_annealing_0": {"gold_weight": 0.0},
        "no_annealing_0.5": {"gold_weight": 0.5},
    }
    for name, change in changes.items():
        assert STRATEGIES[name] == Strategy(multi=True, teacher="single", **change)
    # Table 3.3.
    for name in ("multi", "single_to_multi"):
        after = STRATEGIES[f"{name}_then_single"]
        assert (after.multi, after.start, after.teacher) == (False, name, None)
    twice = STRATEGIES["single_to_multi_to_single_to_multi"]
    assert twice.multi
    assert STRATEGIES[twice.teacher] == Strategy(teacher="single_to_multi")
