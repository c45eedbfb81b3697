r"""The cloze task, solved by two towers (Clark's thesis, 5.1.5; Baevski et al., 2019).

    q(x_t | x_\t) = softmax(W [h->_{t-1}, h<-_{t+1}])_{x_t}
    L_cloze       = mean over tokens t of -log q(x_t | x_\t)

h-> are the states of a left-to-right Transformer, h<- those of a right-to-left one, and
x_\t is the text x without its token t. Neither of the two states has seen x_t, so that
one pass gives q at every position. The thesis does not say what stands before the first
and after the last token; here it is zeros. No token that is learned from reads them:
[CLS] and [SEP] stand at the edges.
"""

from keras import ops


def states_around(left_to_right, right_to_left, padding_mask):
    """Puts the state before each position beside the one after it.

    Args:
        left_to_right: `[batch, length, hidden]`, states that have seen the tokens up to
            their own.
        right_to_left: The same, of states that have seen those from their own on.
        padding_mask: `[batch, length]`, 1 for tokens, 0 for padding.

    Returns:
        `[batch, length, 2 * hidden]`; zeros in place of a state where there is no
        token.

    >>> import numpy as np
    >>> right, left = np.array([[[1], [2], [3]]]), np.array([[[7], [8], [9]]])
    >>> np.array(states_around(right, left, np.array([[1, 1, 0]]))).tolist()
    [[[0, 8], [1, 0], [2, 0]]]
    """
    before, after = (
        states * ops.cast(padding_mask, states.dtype)[..., None]
        for states in (left_to_right, right_to_left)
    )
    before = ops.pad(before, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    after = ops.pad(after, ((0, 0), (0, 1), (0, 0)))[:, 1:]
    return ops.concatenate([before, after], axis=-1)
