"""Turn search: enumerate how the current part of the turn can end, judge each ending by a network,
play towards the best.

Nothing hidden is read: the search stops where a stock card would flip or the hand would refill, and
judges what stands before the hidden card is seen. Positions reached in different orders are
searched once; building piles of equal height count as one. Every play that it tries goes through
the rules' own kernels on a copy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.network import (
    _HAND_ROWS,
    _R_CHAIN,
    _R_DEPTH,
    _R_KIND,
    _R_NEAR,
    _R_PILE,
    _R_SIZE,
    B_CHAIN,
    B_DEPTH,
    B_KIND,
    B_NEAR,
    B_PILE,
    B_SIZE,
    B_TOP,
    FLIP,
    FLIP_REFILL,
    NO_CHAIN,
    REFILL,
    S_END,
    S_HAND,
    TURN_OVER,
    UNKNOWN,
    Network,
    board_rows,
    board_slots,
    chain,
    fill_moving_slots,
    fill_own_piles,
    fill_slots,
    first_layer,
    hand_bits,
    num_slots,
    reach_row,
    sigmoid,
    swap_row,
    swap_rows,
    upper_layers,
)
from skipbo_env.engine.bits import lowest_bit
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import (
    AT_DISCARDS,
    AT_STOCKS,
    BOARD,
    BOARD_CELLS,
    BOARDS,
    COMPLETED_SIZE,
    DECK,
    DEPTH,
    DRAW_HI,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    HEIGHT,
    PLAYER,
    PLAYERS,
    SIDES,
    STOCK_N,
    STOCK_TOP,
    TOP,
    State,
)
from skipbo_env.engine.moves import (
    A_DISCARD,
    A_DISCARD2,
    A_END,
    A_END2,
    A_HAND,
    A_PASS,
    A_STOCK2,
    _build,
    _leave_hand,
    _put_discard,
    _take_discard,
    apply,
    legal_words,
    nth_action,
    other_board,
    own_board,
    side_stock,
)
from skipbo_env.engine.rng import mix64, stream_below, stream_unit

# Limits of the positions within a turn: where nothing else is said, and at all. With 1,024 in place
# of 4,096 a search of the shipped model loses 3e-6 in win probability: 0.3% of them are cut.
MAX_NODES = 1024
MOST_NODES = 4096
TABLE = 16384
_EDGES = 8  # noted for each node, at most


class Work(NamedTuple):
    """Scratch space of one search; one a thread.

    Attributes:
        state: a whole game, where plays are tried.
        snaps: each node's changing cells, int32 of shape (nodes, cells).
        slots: each node's slots, int32 of shape (nodes, slots).
        accs: each node's first-layer sums, float32 of shape (nodes, hidden).
        parents: each node's parent, int32; the root's is -1.
        via: the action that led to each node, int32.
        sums: each node's key, uint64.
        keys: hash table of nodes seen, uint64 of shape (TABLE,); 0 is free.
        owners: the node of each key, int32 of shape (TABLE,).
        used: places of the table in use, to clear it by.
        ending: slots of the ending being judged.
        best: slots of the best ending so far.
        acc, acc2, hidden: float32 of shape (hidden,).
        counts: int32 of shape (14,).
        path: the actions that lead to the chosen ending, int64.
        info: int64: nodes, endings, kind of the chosen ending, its last action, edges.
        peak: the highest value of all endings, float64 of shape (1,); the chosen one's unless the
            search explores.
        top_values: the best endings' logits, float32 of shape (n,), falling; -inf is free. n is 0
            where nobody asks for more than the best one.
        top: their nodes, their last actions and, after `best_endings`, which distinct ending each
            is (-1: none that was asked for), int64 of shape (n, 3).
        first_values: the best ending's logit by the action that the turn begins with, float32 of
            shape (256,); -inf where there is none. Of shape (0,), like the next three, where
            nobody asks for more than the best action.
        first_ends: that ending's node and last action, int64 of shape (256, 2).
        leads: of each node the plays that a way to it begins with, as bits of three words, and one
            more than its last edge (0: none), uint64 of shape (nodes, 4).
        edges: ways from node to node: the first node, the action, and one more than the edge to the
            same node before it (0: none), int32 of shape (n, 3).
    """

    state: State
    snaps: NDArray[np.int32]
    slots: NDArray[np.int32]
    accs: NDArray[np.float32]
    parents: NDArray[np.int32]
    via: NDArray[np.int32]
    sums: NDArray[np.uint64]
    keys: NDArray[np.uint64]
    owners: NDArray[np.int32]
    used: NDArray[np.int32]
    ending: NDArray[np.int32]
    best: NDArray[np.int32]
    acc: NDArray[np.float32]
    acc2: NDArray[np.float32]
    hidden: NDArray[np.float32]
    counts: NDArray[np.int32]
    path: NDArray[np.int64]
    info: NDArray[np.int64]
    peak: NDArray[np.float64]
    top_values: NDArray[np.float32]
    top: NDArray[np.int64]
    first_values: NDArray[np.float32]
    first_ends: NDArray[np.int64]
    leads: NDArray[np.uint64]
    edges: NDArray[np.int32]


def new_work(
    state: State,
    net: Network,
    max_nodes: int = MAX_NODES,
    endings: int = 0,
    *,
    firsts: bool = False,
) -> Work:
    """Scratch space for searches of games like this one with networks like this one, which note so
    many of the best endings and, with `firsts`, the best one after each first action.
    """
    slots = num_slots(int(state[PLAYERS]), int(state[BOARDS]))
    hidden = net.b1.size
    return Work(
        state=np.zeros_like(state),
        snaps=np.zeros((max_nodes, int(state[AT_STOCKS])), np.int32),
        slots=np.zeros((max_nodes, slots), np.int32),
        accs=np.zeros((max_nodes, hidden), np.float32),
        parents=np.zeros(max_nodes, np.int32),
        via=np.zeros(max_nodes, np.int32),
        sums=np.zeros(max_nodes, np.uint64),
        keys=np.zeros(TABLE, np.uint64),
        owners=np.zeros(TABLE, np.int32),
        used=np.zeros(max_nodes, np.int32),
        ending=np.zeros(slots, np.int32),
        best=np.zeros(slots, np.int32),
        acc=np.zeros(hidden, np.float32),
        acc2=np.zeros(hidden, np.float32),
        hidden=np.zeros(hidden, np.float32),
        counts=np.zeros(14, np.int32),
        path=np.zeros(512, np.int64),
        info=np.zeros(5, np.int64),
        peak=np.zeros(1, np.float64),
        top_values=np.zeros(endings, np.float32),
        top=np.zeros((endings, 3), np.int64),
        first_values=np.zeros(256 * firsts, np.float32),
        first_ends=np.zeros((256 * firsts, 2), np.int64),
        leads=np.zeros((max_nodes * firsts, 4), np.uint64),
        edges=np.zeros((_EDGES * max_nodes * firsts, 3), np.int32),
    )


# A position's key is a sum of one random number for each building pile's height, each card in hand
# and each card on the usable discard piles, so that a play's own is found without doing it.


@kernel
def _height_key(height):
    return mix64(np.uint64(0x51ED270B00) + np.uint64(height))


@kernel
def _card_key(card):
    return mix64(np.uint64(0x2545F49100) + np.uint64(card))


@kernel
def _depth_key(d):
    return mix64(np.uint64(0x9E3779B900) + np.uint64(d))


@kernel
def _key(state, player):
    """64 bits that tell the positions of one turn apart: heights as a set, hand, depths of the
    usable discard piles.
    """
    key = np.uint64(0)
    for b in range(4):
        key += _height_key(state[HEIGHT + b])
    hand = HEADER + HAND_CELLS * player
    for c in range(1, 14):
        key += np.uint64(state[hand + c]) * _card_key(c)
    board = own_board(state, player)
    for d in range(4):
        key += np.uint64(state[board + DEPTH + d]) * _depth_key(d)
    if state[BOARDS] != state[SIDES]:
        board = other_board(state, player)
        for d in range(4):
            key += np.uint64(state[board + DEPTH + d]) * _depth_key(4 + d)
    return key


@kernel
def _key_after(state, key, action, b):
    """`_key` after a play from hand or a discard pile on building pile b, if nothing is drawn."""
    height = state[HEIGHT + b]
    key += _height_key(height + 1 if height < 11 else 0) - _height_key(height)
    if action < A_DISCARD:
        return key - _card_key((action - A_HAND) // 4 + 1)
    if action < A_END:
        return key - _depth_key((action - A_DISCARD) // 4)
    return key - _depth_key(4 + (action - A_DISCARD2) // 4)


@kernel
def _find(work, key, nodes):
    """The node with a key; where there is none, the key is put into the table as that of node
    `nodes`.
    """
    stored = key | np.uint64(1)
    place = np.int64(stored >> np.uint64(20)) & (TABLE - 1)
    while work.keys[place] != 0:
        if work.keys[place] == stored:
            return np.int64(work.owners[place])
        place = (place + 1) & (TABLE - 1)
    work.keys[place] = stored
    work.owners[place] = nodes
    work.used[nodes] = place
    work.sums[nodes] = key
    return np.int64(nodes)


@kernel
def _note_edge(work, node, action, child, is_new):
    """Note that a play leads from one node to another, and so with which plays a turn that comes
    there may begin. A node is left only when all ways to it are known: each play takes one card off
    the hand and the discard piles, so they are all equally long.
    """
    leads = work.leads[child]
    if is_new:
        for word in range(4):
            leads[word] = np.uint64(0)
    edge = work.info[4]
    if edge == len(work.edges):
        return
    work.info[4] = edge + 1
    work.edges[edge, 0] = node
    work.edges[edge, 1] = action
    work.edges[edge, 2] = leads[3]
    leads[3] = edge + 1
    if node == 0:
        leads[action >> 6] |= np.uint64(1) << np.uint64(action & 63)
    else:
        for word in range(3):
            leads[word] |= work.leads[node, word]


@kernel
def _restore(work, node):
    snap = work.snaps[node]
    for i in range(len(snap)):
        work.state[i] = snap[i]


@kernel
def _save(work, node, parent, action):
    snap = work.snaps[node]
    for i in range(len(snap)):
        snap[i] = work.state[i]
    work.parents[node] = parent
    work.via[node] = action


@kernel
def _copy(source, target):
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def _swap(net, slots, slot, row, acc):
    """Set a slot to a row, and the first layer's sum with it."""
    if slots[slot] != row:
        swap_row(net, slots[slot], row, acc)
        slots[slot] = row


@kernel
def _move_to(net, before, after, acc):
    """Bring a first layer's sum from one list of slots to another."""
    for i in range(len(before)):
        if before[i] != after[i]:
            swap_row(net, before[i], after[i], acc)


@kernel
def _twin_pile(state, b):
    """Whether an earlier building pile has the same height, so that plays on pile b are
    another's.
    """
    for earlier in range(b):  # noqa: SIM110 - kernels know no generators
        if state[HEIGHT + earlier] == state[HEIGHT + b]:
            return True
    return False


@kernel
def _mark_flip(state, player, net, slots, k, acc):
    """Make the stock top of the player's k-th board unknown, its size one less."""
    at = board_slots(state, k)
    rows = board_rows(state, k)
    _swap(net, slots, at + B_TOP, rows + UNKNOWN, acc)
    _swap(net, slots, at + B_SIZE, slots[at + B_SIZE] - 1, acc)
    _swap(net, slots, at + B_NEAR, rows + _R_NEAR + 13 * 12 + 12, acc)
    row = NO_CHAIN if k else reach_row(state, player, own_board(state, player))
    _swap(net, slots, at + B_CHAIN, rows + _R_CHAIN + row, acc)


@kernel
def _empties_hand(state, action):
    """Whether the hand is empty after a play that is not a stock card's."""
    from_hand = A_HAND <= action < A_DISCARD
    return state[HEADER + HAND_CELLS * state[PLAYER]] == (1 if from_hand else 0)


@kernel
def _lay(state, action, b):
    """Lay a card of the hand or a discard pile on building pile b, and draw nothing."""
    player = state[PLAYER]
    if action < A_DISCARD:
        card = (action - A_HAND) // 4 + 1
        _leave_hand(state, player, card)
    elif action < A_END:
        card = _take_discard(state, own_board(state, player), (action - A_DISCARD) // 4)
    else:
        card = _take_discard(state, other_board(state, player), (action - A_DISCARD2) // 4)
    _build(state, b, card)


@kernel
def _hidden_card(state, stock):
    """Which hidden card a play just laid would show: FLIP, REFILL, FLIP_REFILL, or -1 for none.

    An empty hand is refilled after a play of whatever source, if any card can be drawn then.
    """
    can_draw = state[DRAW_LO] < state[DRAW_HI] or state[COMPLETED_SIZE] > 0
    if state[HEADER + HAND_CELLS * state[PLAYER]] == 0 and can_draw:
        return FLIP_REFILL if stock else REFILL
    return FLIP if stock else -1


@kernel
def _add_node(net, work, node, nodes, action, b):
    """Make what a play that shows nothing hidden leads to a node, if it is new.

    Args:
        net: the network.
        work: scratch space; work.state is at the node, and stays there.
        node: where the play is done.
        nodes: how many nodes there are.
        action: a play from hand or a discard pile.
        b: the building pile that it is laid on.

    Returns:
        How many nodes there are.
    """
    scratch = work.state
    player = scratch[PLAYER]
    child = _find(work, _key_after(scratch, work.sums[node], action, b), nodes)
    if len(work.first_values):
        _note_edge(work, node, action, child, child == nodes)
    if child < nodes:
        return nodes
    apply(scratch, action)
    _save(work, nodes, node, action)
    after = work.slots[nodes]
    _copy(work.slots[node], after)
    fill_moving_slots(scratch, player, after)
    if A_DISCARD <= action < A_END:
        fill_own_piles(scratch, player, after)
    elif action >= A_DISCARD2:
        fill_slots(scratch, player, work.counts, after)
    _copy(work.accs[node], work.accs[nodes])
    _move_to(net, work.slots[node], after, work.accs[nodes])
    _restore(work, node)
    return nodes + 1


@kernel
def _chain_with(state, board, d, card, hand):
    """The row of `chain` for a board as it would be with one more card on its discard pile d."""
    index = (board - BOARD) // BOARD_CELLS
    cell = state[AT_DISCARDS] + (4 * index + d) * state[DECK] + state[board + DEPTH + d]
    under = state[cell]  # other nodes of the search may still have this card
    _put_discard(state, board, d, card)
    row, _ = chain(state, board, hand)
    _take_discard(state, board, d)
    state[cell] = under
    return row


@kernel
def _rank(value, endings, streams, stream, explore):
    """What an ending is chosen by: its value, with noise where the search explores.

    Args:
        value: the ending's logit.
        endings: how many have been judged, this one included.
        streams: uint64 states of random generators.
        stream: which of them to use.
        explore: 0 for the value itself; above 0 for triangular noise of that half-width; below 0
            for a fair draw among all endings.
    """
    if explore == 0.0:
        return np.float64(value)
    if explore < 0.0:
        return np.float64(endings) if stream_below(streams, stream, endings) == 0 else -1.0e30
    noise = stream_unit(streams, stream) + stream_unit(streams, stream) - 1.0
    return value + explore * noise


@kernel
def _keep(work, node, action, kind):
    """Remember an ending as the chosen one."""
    _copy(work.ending, work.best)
    work.info[2] = node
    work.info[3] = action
    work.path[0] = kind


@kernel
def _note_first(work, first, value, node, action):
    """Remember an ending if it is the best one yet after a first action."""
    if value > work.first_values[first]:
        work.first_values[first] = value
        work.first_ends[first, 0] = node
        work.first_ends[first, 1] = action


@kernel
def _note(work, value, node, action):
    """Put an ending among the best ones, of all and after its first actions, where it is one."""
    if len(work.first_values):
        if node == 0:
            _note_first(work, action, value, node, action)
        else:
            for word in range(3):
                bits = work.leads[node, word]
                while bits:
                    first = 64 * word + np.int64(lowest_bit(bits))
                    bits &= bits - np.uint64(1)
                    _note_first(work, first, value, node, action)
    values = work.top_values
    at = len(values) - 1
    if at < 0 or value <= values[at]:
        return
    while at > 0 and values[at - 1] < value:
        values[at] = values[at - 1]
        work.top[at, 0] = work.top[at - 1, 0]
        work.top[at, 1] = work.top[at - 1, 1]
        at -= 1
    values[at] = value
    work.top[at, 0] = node
    work.top[at, 1] = action


@kernel
def write_path(work, node, action, path):
    """Write the actions that lead to a node of the search and the one after it.

    Returns:
        How many they are.
    """
    length = 1
    before = node
    while before > 0:
        before = work.parents[before]
        length += 1
    path[length - 1] = action
    at = length - 2
    while node > 0:
        path[at] = work.via[node]
        node = work.parents[node]
        at -= 1
    return length


@kernel
def search(state, net, work, max_nodes, streams, stream, explore):
    """Find the ending with the highest value for the seat to move.

    Args:
        state: the game, not over; it is not changed.
        net: the network.
        work: scratch space; afterwards work.path holds the actions that lead to the chosen ending,
            work.best its slots, work.info[0] the number of nodes and work.info[1] the number of
            endings judged.
        max_nodes: positions within the turn to look at, at most; 1 to len(work.parents).
        streams: uint64 states of random generators (for `explore`).
        stream: which of them to use.
        explore: 0.0 for the best ending, above 0 for noise on the values, below 0 for a uniformly
            random ending; see `_rank`.

    Returns:
        (value, actions): the value of the chosen ending in [0, 1] and the length of work.path.
        Where the search finds no ending within its nodes, the value of the table as it stands and
        the first legal action alone.
    """
    player = state[PLAYER]
    hand = HEADER + HAND_CELLS * player
    own = own_board(state, player)
    team = state[BOARDS] != state[SIDES]
    other = other_board(state, player) if team else own
    side = player % state[SIDES]
    _copy(state, work.state)
    slots = work.slots[0]
    fill_slots(state, player, work.counts, slots)
    first_layer(net, slots, work.accs[0])
    _save(work, 0, -1, -1)
    _find(work, _key(state, player), 0)
    nodes = 1
    node = 0
    endings = 0
    best = -2.0e30
    chosen = np.float32(0.0)
    top_logit = np.float32(-1.0e30)
    win = False
    each = len(work.first_values) > 0
    work.top_values[:] = -np.inf
    work.first_values[:] = -np.inf
    work.info[4] = 0
    scratch = work.state
    ending = work.ending
    while node < nodes and (each or not win):
        _restore(work, node)
        words = legal_words(scratch)
        w0, w1, w2, w3 = words
        # Endings by a discard. The part that they share is done once: the turn is over, and the
        # card leaves the hand.
        for target in range(2):
            if target == 0:
                ends_low = w1 >> np.uint64(A_END - 64) & np.uint64((1 << 52) - 1)
                board = own
            elif team:
                ends_low = (w2 >> np.uint64(A_END2 - 128)) | (w3 << np.uint64(192 - A_END2))
                board = other
            else:
                continue
            at = board_slots(scratch, target)
            rows = board_rows(scratch, target)
            own_at = board_slots(scratch, 0)
            own_rows = board_rows(scratch, 0)
            last_card = 0
            empty_done = False
            bits = left = hand_bits(scratch, player)
            used = chain(scratch, own, bits)[1]
            kinds = 0
            while ends_low:
                bit = np.int64(lowest_bit(ends_low))
                ends_low &= ends_low - np.uint64(1)
                card = bit // 4 + 1
                d = bit % 4
                if card != last_card:
                    last_card = card
                    empty_done = False
                    _copy(work.accs[node], work.acc2)
                    _copy(work.slots[node], ending)
                    count = scratch[hand + card] - 1
                    left = bits if count else bits & ~(1 << card)
                    hand_row = _HAND_ROWS + 5 * (card - 1) + min(count, 4)
                    _swap(net, ending, S_HAND + card - 1, hand_row, work.acc2)
                    kind_row = rows + _R_KIND + 5 * (card - 1)
                    kinds = ending[at + B_KIND + card - 1] - kind_row
                    if kinds < 4:
                        _swap(net, ending, at + B_KIND + card - 1, kind_row + kinds + 1, work.acc2)
                top = scratch[board + TOP + d]
                if top == 0:
                    if empty_done:
                        continue
                    empty_done = True
                old_pile = ending[at + B_PILE + d]
                old_depth = ending[at + B_DEPTH + d]
                new_pile = rows + _R_PILE + 14 * card + top
                new_depth = rows + _R_DEPTH + min(scratch[board + DEPTH + d] + 1, 11)
                # The card has left the hand, and stands where it helps or hinders a chain.
                old_chain = new_chain = ending[at + B_CHAIN]
                if target:
                    new_chain = rows + _R_CHAIN + _chain_with(scratch, board, d, card, 0)
                elif kinds or used >> d & 1:  # else it is as good there as in the hand
                    new_chain = rows + _R_CHAIN + _chain_with(scratch, board, d, card, left)
                swap_rows(net, work.acc2, old_pile, new_pile, old_depth, new_depth, work.acc)
                if new_chain != old_chain:
                    swap_row(net, old_chain, new_chain, work.acc)
                old_own = ending[own_at + B_CHAIN]
                new_own = old_own
                if target:
                    new_own = own_rows + _R_CHAIN + chain(scratch, own, left)[0]
                    swap_row(net, old_own, new_own, work.acc)
                value = upper_layers(net, work.acc, work.hidden)
                endings += 1
                top_logit = max(top_logit, value)
                _note(work, value, node, (A_END if target == 0 else A_END2) + bit)
                rank = _rank(value, endings, streams, stream, explore)
                if rank > best:
                    best = rank
                    chosen = value
                    ending[own_at + B_CHAIN] = new_own
                    ending[at + B_CHAIN] = new_chain
                    ending[at + B_PILE + d] = new_pile
                    ending[at + B_DEPTH + d] = new_depth
                    _keep(work, node, (A_END if target == 0 else A_END2) + bit, TURN_OVER)
                    ending[own_at + B_CHAIN] = old_own
                    ending[at + B_CHAIN] = old_chain
                    ending[at + B_PILE + d] = old_pile
                    ending[at + B_DEPTH + d] = old_depth
        if w1 >> np.uint64(A_PASS - 64) & np.uint64(1):
            _copy(work.slots[node], ending)
            value = upper_layers(net, work.accs[node], work.hidden)
            endings += 1
            top_logit = max(top_logit, value)
            _note(work, value, node, A_PASS)
            rank = _rank(value, endings, streams, stream, explore)
            if rank > best:
                best = rank
                chosen = value
                _keep(work, node, A_PASS, TURN_OVER)
        # Plays: each ends this part of the turn (flip, refill) or leads to another node.
        for part in range(3):
            if part == 0:
                plays = w0
            elif part == 1:
                plays = w1 & (np.uint64(0xFF) | np.uint64(7) << np.uint64(A_STOCK2 - 64))
            else:
                plays = w2 & np.uint64(0x1FFFF)
            while plays:
                action = 64 * part + np.int64(lowest_bit(plays))
                plays &= plays - np.uint64(1)
                b = (action if action < A_END else action - 1) % 4
                if _twin_pile(scratch, b):
                    continue
                stock = action < A_HAND or A_STOCK2 <= action < A_DISCARD2
                if stock:
                    board = own if action < A_HAND else other
                    if side_stock(scratch, side) == 1:
                        # The game's last stock card: nothing is better.
                        endings += 1
                        _note(work, np.float32(1.0e30), node, action)
                        if not win:
                            win = True
                            best = 1.0e30
                            _copy(work.slots[node], ending)
                            _keep(work, node, action, FLIP)
                        if each:
                            continue
                        break
                    card = scratch[board + STOCK_TOP]
                    scratch[board + STOCK_TOP] = 0
                    scratch[board + STOCK_N] -= 1
                    _build(scratch, b, card)
                elif _empties_hand(scratch, action):
                    _lay(scratch, action, b)
                else:
                    if nodes < max_nodes:
                        nodes = _add_node(net, work, node, nodes, action, b)
                    continue
                kind = _hidden_card(scratch, stock)
                if kind < 0:  # the hand is empty, and there is nothing to draw
                    _restore(work, node)
                    if nodes < max_nodes:
                        nodes = _add_node(net, work, node, nodes, action, b)
                    continue
                _copy(work.slots[node], ending)
                fill_moving_slots(scratch, player, ending)
                if A_DISCARD <= action < A_END:
                    fill_own_piles(scratch, player, ending)
                elif action >= A_DISCARD2:
                    fill_slots(scratch, player, work.counts, ending)
                ending[S_END] = kind
                _copy(work.accs[node], work.acc)
                _move_to(net, work.slots[node], ending, work.acc)
                if stock:
                    if scratch[board + STOCK_N] > 0:
                        _mark_flip(scratch, player, net, ending, 0 if board == own else 1, work.acc)
                    else:
                        k = 0 if board == own else 1
                        at = board_slots(scratch, k)
                        _swap(net, ending, at + B_TOP, board_rows(scratch, k), work.acc)
                        _swap(net, ending, at + B_SIZE, board_rows(scratch, k) + _R_SIZE, work.acc)
                value = upper_layers(net, work.acc, work.hidden)
                endings += 1
                top_logit = max(top_logit, value)
                _note(work, value, node, action)
                rank = _rank(value, endings, streams, stream, explore)
                if rank > best:
                    best = rank
                    chosen = value
                    _keep(work, node, action, kind)
                _restore(work, node)
            if win and not each:
                break
        node += 1
    for i in range(nodes):
        work.keys[work.used[i]] = 0
    work.info[0] = nodes
    work.info[1] = endings
    if endings == 0:
        # Nothing ends within so few nodes: the table as it stands has to do.
        work.path[0] = nth_action(legal_words(state), 0)
        work.info[2] = TURN_OVER
        _copy(work.slots[0], work.best)
        work.peak[0] = sigmoid(upper_layers(net, work.accs[0], work.hidden))
        return work.peak[0], 1
    kind = work.path[0]
    length = write_path(work, work.info[2], work.info[3], work.path)
    work.info[2] = kind
    work.peak[0] = 1.0 if win else sigmoid(top_logit)
    if win:
        return 1.0, length
    return sigmoid(chosen), length


@kernel
def _as_in(state, work, node, action):
    """A node's action in a state that differs from it in the order of building piles alone."""
    if A_END <= action <= A_PASS or action >= A_END2:
        return action
    b = (action if action < A_END else action - 1) % 4
    for pile in range(4):
        if state[HEIGHT + pile] == work.snaps[node, HEIGHT + b]:
            return action + pile - b
    return action


@kernel
def write_first(state, work, first, line):
    """Write the actions that lead to the best ending after a first action.

    Returns:
        How many they are.
    """
    node = end = work.first_ends[first, 0]
    word, bit = first >> 6, np.uint64(1) << np.uint64(first & 63)
    at = len(line)
    while node > 0:  # back to the root, by the edges' numbers
        edge = np.int64(work.leads[node, 3])
        chosen = 0
        while edge > 0:
            before = work.edges[edge - 1, 0]
            if before == 0:
                comes = work.edges[edge - 1, 1] == first
            else:
                comes = work.leads[before, word] & bit != 0
            if comes:
                chosen = edge - 1  # the one that was found first, in the end
            edge = np.int64(work.edges[edge - 1, 2])
        at -= 1
        line[at] = chosen
        node = work.edges[chosen, 0]
    plays = len(line) - at
    _copy(state, work.state)
    for i in range(plays):
        edge = line[at + i]
        line[i] = _as_in(work.state, work, work.edges[edge, 0], work.edges[edge, 1])
        apply(work.state, line[i])
    line[plays] = _as_in(work.state, work, end, work.first_ends[first, 1])
    return plays + 1


@kernel
def judge_firsts(state, net, work, max_nodes, streams, firsts, values, lines, lengths):
    """Judge actions by the best ending that each can lead to, all in one search.

    Args:
        state: the game, not over; it is not changed.
        net: the network.
        work: scratch space made for `firsts`.
        max_nodes: positions within the turn to look at, at most; 1 to len(work.parents).
        streams: uint64 states of random generators, unused.
        firsts: int64 (n,), legal actions.
        values: float64 (n,), filled with win probabilities; 1 for a win, and -1 where the search
            found no ending after the action, as it looks at one of two that are mirror images.
        lines: int64 (n, len(work.path)), filled with the actions that lead to that ending.
        lengths: int64 (n,), filled with how many they are.

    Returns:
        Whether the search looked at everything; else its values are not the best there are.
    """
    search(state, net, work, max_nodes, streams, 0, 0.0)
    for i in range(len(firsts)):
        logit = work.first_values[firsts[i]]
        if logit == -np.inf:
            values[i] = -1.0
            lengths[i] = 0
        else:
            values[i] = sigmoid(logit)
            lengths[i] = write_first(state, work, firsts[i], lines[i])
    return work.info[0] < max_nodes and work.info[4] < len(work.edges)


@kernel(brief=True)
def fill_ending(state, action, work):
    """Write the slots of the ending that a legal action makes into work.ending, from scratch.

    The search reaches the same slots in small steps; this is the definition that tests hold it to,
    and what games of other agents are turned into training data by.

    Args:
        state: the game before the action; it is not changed.
        action: a legal action.
        work: scratch space.

    Returns:
        TURN_OVER, FLIP, REFILL or FLIP_REFILL; -1 where the action ends no part of the turn.
    """
    player = state[PLAYER]
    hand = HEADER + HAND_CELLS * player
    slots = work.ending
    scratch = work.state
    _copy(state, scratch)
    if A_END <= action < A_PASS or action >= A_END2:
        low = action < A_PASS
        board = own_board(state, player) if low else other_board(state, player)
        k = action - (A_END if low else A_END2)
        scratch[hand] -= 1
        scratch[hand + k // 4 + 1] -= 1
        _put_discard(scratch, board, k % 4, k // 4 + 1)
        fill_slots(scratch, player, work.counts, slots)
        return TURN_OVER
    if action == A_PASS:
        fill_slots(scratch, player, work.counts, slots)
        return TURN_OVER
    b = (action if action < A_END else action - 1) % 4
    stock = action < A_HAND or A_STOCK2 <= action < A_DISCARD2
    if stock:
        board = own_board(state, player) if action < A_HAND else other_board(state, player)
        card = scratch[board + STOCK_TOP]
        scratch[board + STOCK_TOP] = 0
        scratch[board + STOCK_N] -= 1
        _build(scratch, b, card)
    elif _empties_hand(scratch, action):
        board = 0
        _lay(scratch, action, b)
    kind = _hidden_card(scratch, stock)
    if kind < 0:
        return -1
    fill_slots(scratch, player, work.counts, slots)
    slots[S_END] = kind
    if stock:
        k = 0 if action < A_HAND else 1
        at = board_slots(state, k)
        rows = board_rows(state, k)
        left = scratch[board + STOCK_N]
        slots[at + B_TOP] = rows + (UNKNOWN if left else 0)
        slots[at + B_SIZE] = rows + _R_SIZE + min(left, 40)
        if k == 0 and left:
            slots[at + B_CHAIN] = rows + _R_CHAIN + reach_row(scratch, player, board)
    return kind


@kernel
def best_endings(state, work, scratch, values, plans, lengths, slots):
    """Write out the distinct endings that the last search noted, the best first.

    Args:
        state: the game that was searched.
        work: its scratch space, made for so many endings.
        scratch: another game's array, used up.
        values: float64 (n,), filled with win probabilities; 1 for a win.
        plans: int64 (n, len(work.path)), filled with the actions that lead to each.
        lengths: int64 (n,), filled with how many actions.
        slots: int32 (n, slots), filled.

    Returns:
        How many there are: one that different orders of plays reach counts once. In a search that
        notes first actions, work.path is used up.
    """
    found = 0
    for place in range(len(work.top_values)):
        work.top[place, 2] = -1
        value = work.top_values[place]
        full = found == len(values)
        if value == -np.inf or (full and not len(work.first_values)):
            continue
        action = work.top[place, 1]
        # Where all are found, others may still be the same ones, reached in another order.
        plan = work.path if full else plans[found]
        length = write_path(work, work.top[place, 0], action, plan)
        _copy(state, scratch)
        for i in range(length - 1):
            apply(scratch, plan[i])
        fill_ending(scratch, action, work)
        for other in range(found):
            same = True
            for i in range(len(work.ending)):
                if slots[other, i] != work.ending[i]:
                    same = False
                    break
            if same:
                work.top[place, 2] = other
                break
        if work.top[place, 2] < 0 and not full:
            work.top[place, 2] = found
            _copy(work.ending, slots[found])
            values[found] = sigmoid(value)
            lengths[found] = length
            found += 1
    return found
