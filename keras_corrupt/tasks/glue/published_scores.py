"""What papers report on GLUE's development sets."""

from typing import NamedTuple


class PublishedScores(NamedTuple):
    """What a paper reports of a system on GLUE's development sets, in percent.

    Attributes:
        source: The paper and its table.
        size: Size of the network, as the paper calls it, `++` for more data.
        system: The pretraining method, as the paper calls it.
        average: The paper's own, of eight tasks: all but WNLI.
        scores: Task -> its main metric, where the paper has it. `MNLI` is matched,
            `MNLI-mm` mismatched.
    """

    source: str
    size: str
    system: str
    average: float
    scores: dict


_THESIS_5_4 = """
CoLA SST-2 MRPC STS-B QQP  MNLI QNLI RTE  average size system
60.6 93.2  88.0 90.0  91.3 86.6 92.3 70.4 84.0 large BERT
66.1 95.6  91.4 92.2  92.0 89.3 94.0 82.7 87.9 large RoBERTa-100K
68.0 96.4  90.9 92.1  92.2 90.2 94.7 86.6 88.9 large RoBERTa-500K
69.0 97.0  90.8 92.2  92.3 90.8 94.9 85.9 89.1 large XLNet
67.0 95.9  89.1 91.2  91.5 89.6 93.5 79.5 87.2 large BERT (ours)
69.3 96.0  90.6 92.1  92.4 90.5 94.5 86.8 89.0 large ELECTRA-400K
69.1 96.9  90.8 92.6  92.4 90.9 95.0 88.0 89.5 large ELECTRA-1.75M
"""

_COCO_LM_1 = """
MNLI MNLI-mm QQP  QNLI SST-2 CoLA RTE  MRPC STS-B average size system
84.5 -       91.3 91.7 93.2  58.9 68.6 87.3 89.5 83.1 base BERT
86.0 85.3    90.0 91.9 93.4  64.3 70.8 84.9 89.1 83.7 base ELECTRA
85.7 85.2    89.7 91.3 92.3  62.1 75.0 86.0 88.0 83.7 base MC-BERT
86.2 86.2    91.3 92.2 93.3  63.6 73.6 89.9 89.2 84.9 base TUPE
85.8 85.5    91.3 92.0 93.7  60.1 68.2 87.3 88.5 83.3 base RoBERTa (ours)
86.9 86.7    91.9 92.6 93.6  66.2 75.1 88.2 89.7 85.5 base ELECTRA (ours)
88.5 88.3    92.0 93.1 93.2  63.9 84.8 91.4 90.3 87.2 base COCO-LM
86.8 -       91.4 91.7 94.7  60.2 74.0 88.2 89.5 84.6 base++ XLNet
87.6 -       91.9 92.8 94.8  63.6 78.7 90.2 91.2 86.4 base++ RoBERTa
88.5 -       91.7 93.5 95.1  65.2 81.3 91.8 91.0 87.1 base++ UniLM V2
86.7 -       90.0 92.9 94.5  64.3 78.3 89.2 89.8 85.7 base++ CLEAR
90.2 90.0    92.2 94.2 94.6  67.3 87.4 91.2 91.8 88.6 base++ COCO-LM
90.8 90.8    92.3 94.9 97.0  69.0 85.9 90.8 92.5 89.2 large++ XLNet
90.2 90.2    92.2 94.7 96.4  68.0 86.6 90.9 92.4 88.9 large++ RoBERTa
90.9 -       92.4 95.0 96.9  69.1 88.0 90.8 92.6 89.4 large++ ELECTRA
91.4 91.6    92.8 95.7 96.9  73.9 91.0 92.2 92.7 90.8 large++ COCO-LM
"""

# These tables have averages alone.
_THESIS_5_3 = """
average size system
71.2 96M ELMo
78.8 117M GPT
75.1 small BERT
82.2 base BERT
79.9 small ELECTRA
79.0 small ELECTRA, 50% trained
77.7 small ELECTRA, 25% trained
76.0 small ELECTRA, 12.5% trained
74.1 small ELECTRA, 6.25% trained
85.1 base ELECTRA
"""

_TEAMS_1 = """
average size system
78.52 small BERT
80.36 small ELECTRA (ours)
80.70 small TEAMS
79.10 small++ BERT
81.71 small++ ELECTRA (ours)
81.24 small++ ELECTRA (released)
81.99 small++ TEAMS
83.46 base BERT
84.63 base ELECTRA (ours)
85.57 base TEAMS
84.26 base++ BERT
86.29 base++ ELECTRA (ours)
87.13 base++ ELECTRA (released)
87.16 base++ TEAMS
84.91 large BERT
89.20 large ELECTRA (ours)
89.38 large ELECTRA (released)
89.44 large TEAMS
"""

_TEAMS_2 = """
average size system
79.10 small++ MLM only (BERT)
81.71 small++ RTD only (ELECTRA)
79.65 small++ MWS only
81.99 small++ RTD and MWS (TEAMS)
"""


#: How the names begin of the systems that results are set beside.
COMPARED = ("BERT", "ELECTRA", "TEAMS", "COCO-LM")


def published_scores():
    """Returns what the papers report, to compare results with.

    Rows of a table that lack the average are left out. "(ours)" is the paper's own
    reimplementation.

    Returns:
        A list of `PublishedScores`.

    >>> [p.scores["RTE"] for p in published_scores() if p.system == "ELECTRA-400K"]
    [86.8]
    """
    return [
        row
        for source, text in {
            "Clark's thesis, table 5.3": _THESIS_5_3,
            "Clark's thesis, table 5.4": _THESIS_5_4,
            "TEAMS, table 1": _TEAMS_1,
            "TEAMS, table 2": _TEAMS_2,
            "COCO-LM, table 1": _COCO_LM_1,
        }.items()
        for row in _published(source, text)
    ]


def _published(source, text):
    header, *lines = (line.split() for line in text.strip().splitlines())
    for cells in lines:
        *scores, average, size = cells[: len(header) - 1]
        scores = dict(zip(header, scores, strict=False))
        yield PublishedScores(
            source,
            size,
            " ".join(cells[len(header) - 1 :]),
            float(average),
            {task: float(score) for task, score in scores.items() if score != "-"},
        )
