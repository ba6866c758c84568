"""The rules in motion: legal actions, playing, discarding, drawing, reshuffling, the end of a game.

Every environment, agent, search, replay and HTTP answer goes through these kernels. Action ids are
those of `skipbo_env.actions`. `docs/rules.md` has the rules in words.
"""

from __future__ import annotations

import numpy as np

from skipbo_env.engine.bits import lowest_bit, popcount, positive_cells, spread_bits
from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import (
    ACTIONS,
    AT_DISCARDS,
    AT_DRAW,
    AT_SEEN,
    AT_STOCKS,
    BOARD,
    BOARD_CELLS,
    BOARDS,
    COMPLETED,
    COMPLETED_SIZE,
    DECK,
    DEPTH,
    DISCARDED,
    DRAW_HI,
    DRAW_LO,
    DRAW_PER_TURN,
    FEWEST_STOCK,
    HAND_CELLS,
    HAND_SIZE,
    HEADER,
    HEIGHT,
    MAX_TURNS,
    MUST_PLAY_STOCK,
    ORDERED_DISCARDS,
    PASSES,
    PLAYER,
    PLAYERS,
    REASON,
    RESHUFFLED,
    RESHUFFLES,
    SCRIPT_FAULT,
    SIDES,
    STALEMATE,
    STOCK_EMPTY,
    STOCK_N,
    STOCK_SIZE,
    STOCK_TOP,
    TEAM_DISCARD,
    TEAMS,
    TOP,
    TURN_LIMIT,
    TURNS,
    TWO_ENDED,
    UNDER,
    UNDER_BITS,
    UNDER_MASK,
    WILD,
    WILD_BITS,
    WILD_DISCARD,
    WINNER,
)
from skipbo_env.engine.rng import shuffle

MAX_HAND = 20
A_STOCK, A_HAND, A_DISCARD, A_END, A_PASS, A_STOCK2, A_DISCARD2, A_END2 = (
    0, 4, 56, 72, 124, 125, 129, 145,
)  # fmt: skip
# Sets of 52 bits: bit 4(card - 1) + pile stands for a card and a pile.
_ALL = np.uint64((1 << 52) - 1)
_WILDS = np.uint64(15 << 48)
_ONE_PILE = np.uint64(sum(1 << 4 * k for k in range(13)))


@inlined
def own_board(state, player):
    """First header cell of the board that is the player's own."""
    teams = state[TEAMS]
    if teams == 0:
        return BOARD + BOARD_CELLS * player
    return _team_board(teams, player, 0)


@inlined
def other_board(state, player):
    """First header cell of the other board of the player's team (teams only)."""
    return _team_board(state[TEAMS], player, 1)


@inlined
def _team_board(teams, player, other):
    # player // teams for the 2 or 3 teams and 12 seats that there are; divisions take too long here
    row = player * (64 if teams == 2 else 43) >> 7
    return BOARD + BOARD_CELLS * (player - row * teams + ((row + other) & 1) * teams)


@inlined
def _wanted(state):
    """52 bits: bit 4(card - 1) + b is set where building pile b takes the card."""
    bits = _WILDS
    for b in range(4):
        bits |= np.uint64(1) << np.uint64(4 * state[HEIGHT + b] + b)
    return bits


@inlined
def _fits(wanted, card):
    """Four bits: the building piles that take the card; none for card 0."""
    return (wanted << np.uint64(4) >> np.uint64(4 * card)) & np.uint64(15)


@inlined
def _held(state, hand):
    """52 bits: the four bits from 4(card - 1) on are set where the hand holds the card."""
    bits = positive_cells(state, hand + 1) & np.uint64(0x1FFF)
    bits = (bits | bits << np.uint64(24)) & np.uint64(0x000000FF000000FF)
    bits = (bits | bits << np.uint64(12)) & np.uint64(0x000F000F000F000F)
    bits = (bits | bits << np.uint64(6)) & np.uint64(0x0303030303030303)
    bits = (bits | bits << np.uint64(3)) & np.uint64(0x1111111111111111)
    return bits * np.uint64(15)


@inlined
def _discard_plays(state, wanted, board):
    """16 bits: bit 4d + b is set where the top of discard pile d fits building pile b."""
    bits = np.uint64(0)
    for d in range(4):
        bits |= _fits(wanted, state[board + TOP + d]) << np.uint64(4 * d)
    return bits


@inlined
def _in_order(state, board):
    """52 bits: bit 4(card - 1) + d is set where the card on the board's pile d keeps the order."""
    bits = _ALL
    for d in range(4):
        top = state[board + TOP + d]
        if top and top != WILD:  # only cards up to the top, and wilds, may go on it
            allowed = ((np.uint64(1) << np.uint64(4 * top)) - np.uint64(1)) | _WILDS
            bits &= allowed | ~(_ONE_PILE << np.uint64(d))
    return bits


@inlined
def legal_words(state):
    """The legal actions of the seat to move as a set of bits.

    Returns:
        Four uint64: bit i of word w stands for action 64w + i. All are 0 exactly when the game is
        over.
    """
    w0 = w1 = w2 = w3 = np.uint64(0)
    if state[REASON]:
        return w0, w1, w2, w3
    player = state[PLAYER]
    own = own_board(state, player)
    hand = HEADER + HAND_CELLS * player
    team = state[TEAMS] > 0
    other = other_board(state, player) if team else own
    wanted = _wanted(state)
    w0 = _fits(wanted, state[own + STOCK_TOP])
    if team:
        bits = _fits(wanted, state[other + STOCK_TOP])
        w1 = bits << np.uint64(A_STOCK2 - 64)
        w2 = bits >> np.uint64(128 - A_STOCK2)
    if state[MUST_PLAY_STOCK] and (w0 | w1 | w2):
        return w0, w1, w2, w3
    held = _held(state, hand)
    bits = _discard_plays(state, wanted, own)
    w0 |= (held & wanted) << np.uint64(A_HAND) | bits << np.uint64(A_DISCARD)
    w1 |= bits >> np.uint64(64 - A_DISCARD)
    if team:
        w2 |= _discard_plays(state, wanted, other) << np.uint64(A_DISCARD2 - 128)
    if held:
        ends = held if state[WILD_DISCARD] else held & ~_WILDS
        more = ends if state[TEAM_DISCARD] else np.uint64(0)
        if state[ORDERED_DISCARDS]:
            kept = ends & _in_order(state, own)
            more_kept = more & _in_order(state, other)
            # Without a play, and without a discard that keeps the order, the order is waived.
            if w0 | w1 | w2 | kept | more_kept:
                ends, more = kept, more_kept
        w1 |= ends << np.uint64(A_END - 64)
        w2 |= more << np.uint64(A_END2 - 128)
        w3 = more >> np.uint64(192 - A_END2)
    elif state[DRAW_LO] == state[DRAW_HI] and state[COMPLETED_SIZE] == 0:
        w1 |= np.uint64(1) << np.uint64(A_PASS - 64)
    return w0, w1, w2, w3


@kernel
def _list_word(word, first, ids, n):
    while word:
        ids[n] = first + np.int64(lowest_bit(word))
        n += 1
        word &= word - np.uint64(1)
    return n


@kernel(brief=True)
def legal_actions(state, ids):
    """List the legal actions of the seat to move in ascending order.

    Args:
        state: the game.
        ids: filled with the action ids; shape (197,) is enough for all rules.

    Returns:
        How many there are: 0 exactly when the game is over.
    """
    w0, w1, w2, w3 = legal_words(state)
    n = _list_word(w0, 0, ids, 0)
    n = _list_word(w1, 64, ids, n)
    if w2 | w3:
        n = _list_word(w2, 128, ids, n)
        n = _list_word(w3, 192, ids, n)
    return n


@inlined
def write_mask(words, mask):
    """Spread the bits of `legal_words` over an int8 mask of 125, 145 or 197 cells."""
    w0, w1, w2, w3 = words
    # 64 cells at a time; the last write ends with the mask and overlaps the one before.
    spread_bits(w0, mask, 0)
    if len(mask) == 125:
        spread_bits(w0 >> np.uint64(61) | w1 << np.uint64(3), mask, 61)
        return
    spread_bits(w1, mask, 64)
    if len(mask) == 145:
        spread_bits(w1 >> np.uint64(17) | w2 << np.uint64(47), mask, 81)
    else:
        spread_bits(w2, mask, 128)
        spread_bits(w2 >> np.uint64(5) | w3 << np.uint64(59), mask, 133)


@kernel(brief=True)
def legal_mask(state, mask):
    """Write the mask of the seat to move, int8 (ACTIONS,); zeros when the game is over."""
    write_mask(legal_words(state), mask)


@inlined
def count_words(words):
    """How many actions the bits of `legal_words` hold."""
    w0, w1, w2, w3 = words
    return np.int64(popcount(w0) + popcount(w1) + popcount(w2) + popcount(w3))


@inlined
def nth_action(words, k):
    """The k-th (from 0) action of the bits of `legal_words`, in ascending order."""
    first = 0
    for word in words:
        n = np.int64(popcount(word))
        if k < n:
            # Halve the stretch that holds the bit, without branches: no CPU could predict them.
            left = np.uint64(k)
            place = np.uint64(0)
            for half in (32, 16, 8, 4, 2, 1):
                width = np.uint64(half)
                below_half = (word >> place) & ((np.uint64(1) << width) - np.uint64(1))
                passed = popcount(below_half)
                beyond = left >= passed
                left -= passed if beyond else np.uint64(0)
                place += width if beyond else np.uint64(0)
            return first + np.int64(place)
        k -= n
        first += 64
    return -1


@kernel(brief=True)
def is_legal(state, action):
    """Whether the action is legal now."""
    w0, w1, w2, w3 = legal_words(state)
    if action < 0 or action >= state[ACTIONS]:
        return False
    word = w0 if action < 64 else w1 if action < 128 else w2 if action < 192 else w3
    return (word >> np.uint64(action & 63)) & np.uint64(1) == np.uint64(1)


@kernel
def reshuffle(state, script):
    """Make the completed piles the draw pile: in the script's order if one is given, else shuffled.

    From here on the SEEN zone counts, for each player, the cards of this reshuffle that the player
    has surely seen (index 1 to 13): its own draws, and what others play whose hand holds nothing
    older. Index 0 is how many cards of the player's hand may be older. Positions use it to keep the
    pools of draw pile and stocks apart.

    Args:
        state: the game; the draw pile is empty.
        script: int32 cards in the order in which they will be drawn; empty for a random order.
    """
    at = state[AT_DRAW]
    n = state[COMPLETED_SIZE]
    scripted = len(script) > 0
    k = 0
    for card in range(1, WILD + 1):
        state[RESHUFFLED + card] = state[COMPLETED + card]
        for _ in range(state[COMPLETED + card]):
            state[at + k] = card
            k += 1
    if scripted:
        fault = len(script) != n
        for i in range(len(script)):
            if script[i] < 1 or script[i] > WILD:
                fault = True
            else:
                state[COMPLETED + script[i]] -= 1
        for card in range(1, WILD + 1):
            if state[COMPLETED + card] != 0:
                fault = True
        if fault:
            state[SCRIPT_FAULT] = 1
            scripted = False
        else:
            for i in range(n):
                state[at + i] = script[i]
    if not scripted:
        shuffle(state, at, np.int64(n))
    for card in range(1, WILD + 1):
        state[COMPLETED + card] = 0
    state[COMPLETED_SIZE] = 0
    state[DRAW_LO] = 0
    state[DRAW_HI] = n
    state[RESHUFFLES] += 1
    for p in range(state[PLAYERS]):
        seen = state[AT_SEEN] + HAND_CELLS * p
        state[seen] = state[HEADER + HAND_CELLS * p]
        for card in range(1, WILD + 1):
            state[seen + card] = 0


@inlined
def _draw(state, player, n, script):
    """Draw up to n cards, one by one, reshuffling when one is needed and the draw pile is empty."""
    hand = HEADER + HAND_CELLS * player
    for _ in range(n):
        if state[DRAW_LO] == state[DRAW_HI]:
            if state[COMPLETED_SIZE] == 0:
                return
            reshuffle(state, script)
        if state[TWO_ENDED] and player % 2 == 1:
            state[DRAW_HI] -= 1
            card = state[state[AT_DRAW] + state[DRAW_HI]]
        else:
            card = state[state[AT_DRAW] + state[DRAW_LO]]
            state[DRAW_LO] += 1
        state[hand] += 1
        state[hand + card] += 1
        if state[RESHUFFLES]:
            state[state[AT_SEEN] + HAND_CELLS * player + card] += 1


@inlined
def _leave_hand(state, player, card):
    """Take a card out of a hand; after a reshuffle, note what the others learn from it."""
    hand = HEADER + HAND_CELLS * player
    state[hand] -= 1
    state[hand + card] -= 1
    if state[RESHUFFLES]:
        own = state[AT_SEEN] + HAND_CELLS * player
        if state[own] == 0:
            for p in range(state[PLAYERS]):
                if p != player:
                    state[state[AT_SEEN] + HAND_CELLS * p + card] += 1
        elif state[own] > state[hand]:
            state[own] = state[hand]


@inlined
def _begin_turn(state, script):
    player = state[PLAYER]
    in_hand = state[HEADER + HAND_CELLS * player]
    if state[DRAW_PER_TURN]:
        n = min(state[DRAW_PER_TURN], MAX_HAND - in_hand)
    else:
        n = state[HAND_SIZE] - in_hand
    if n > 0:
        _draw(state, player, n, script)


@kernel(brief=True)
def begin_turn(state):
    """The draw at the start of the turn of the seat to move."""
    _begin_turn(state, state[:0])


@inlined
def _end_turn(state, script):
    state[TURNS] += 1
    if state[PASSES] == state[PLAYERS]:
        state[REASON] = STALEMATE
        if state[FEWEST_STOCK]:
            state[WINNER] = _fewest_stock(state)
    elif state[TURNS] >= state[MAX_TURNS]:
        state[REASON] = TURN_LIMIT
    else:
        player = state[PLAYER] + 1
        state[PLAYER] = player if player < state[PLAYERS] else 0
        _begin_turn(state, script)


@inlined
def side_stock(state, side):
    """Cards left in all stocks of a side."""
    left = 0
    for b in range(side, state[BOARDS], state[SIDES]):
        left += state[BOARD + BOARD_CELLS * b + STOCK_N]
    return left


@kernel
def _fewest_stock(state):
    """The side with strictly the fewest stock cards, or -1 when the lowest count is shared."""
    best = -1
    lowest = 1 << 30
    for side in range(state[SIDES]):
        left = side_stock(state, side)
        if left < lowest:
            lowest = left
            best = side
        elif left == lowest:
            best = -1
    return best


@inlined
def _take_stock(state, board):
    b = (board - BOARD) // BOARD_CELLS
    card = state[board + STOCK_TOP]
    left = state[board + STOCK_N] - 1
    state[board + STOCK_N] = left
    state[board + STOCK_TOP] = (
        state[state[AT_STOCKS] + b * state[STOCK_SIZE] + left - 1] if left else 0
    )
    return card


@inlined
def under_top(state, board, d):
    """The three cards under a discard pile's top, four bits each, the next one lowest."""
    return state[board + UNDER + (d >> 1)] >> UNDER_BITS * (d & 1) & UNDER_MASK


@inlined
def _set_under(state, board, d, cards):
    cell = board + UNDER + (d >> 1)
    shift = UNDER_BITS * (d & 1)
    state[cell] = state[cell] & ~(UNDER_MASK << shift) | cards << shift


@inlined
def _take_discard(state, board, d):
    pile = state[AT_DISCARDS] + (4 * ((board - BOARD) // BOARD_CELLS) + d) * state[DECK]
    card = state[board + TOP + d]
    depth = state[board + DEPTH + d] - 1
    state[board + DEPTH + d] = depth
    under = under_top(state, board, d)
    state[board + TOP + d] = under & 15
    deeper = state[pile + depth - 4] if depth > 3 else 0
    _set_under(state, board, d, under >> 4 | deeper << 8)
    state[DISCARDED + card] -= 1
    return card


@inlined
def _put_discard(state, board, d, card):
    pile = state[AT_DISCARDS] + (4 * ((board - BOARD) // BOARD_CELLS) + d) * state[DECK]
    depth = state[board + DEPTH + d]
    state[pile + depth] = card
    state[board + DEPTH + d] = depth + 1
    under = under_top(state, board, d)
    _set_under(state, board, d, (under << 4 | state[board + TOP + d]) & UNDER_MASK)
    state[board + TOP + d] = card
    state[DISCARDED + card] += 1


@inlined
def _build(state, b, card):
    """Lay a card on a building pile and set the pile aside when it is full."""
    height = state[HEIGHT + b]
    if card == WILD:
        state[WILD_BITS + b] |= 1 << height
    height += 1
    if height < 12:
        state[HEIGHT + b] = height
        return
    bits = state[WILD_BITS + b]
    for h in range(12):
        state[COMPLETED + (WILD if bits >> h & 1 else h + 1)] += 1
    state[COMPLETED_SIZE] += 12
    state[HEIGHT + b] = 0
    state[WILD_BITS + b] = 0


@inlined
def apply_scripted(state, action, script):
    """Do a legal action; a reshuffle in it takes the script's order (see `reshuffle`).

    The caller has checked the action: an illegal one leaves the array in no defined state.
    """
    player = state[PLAYER]
    if A_END <= action < A_PASS or action >= A_END2:
        if action < A_PASS:
            board = own_board(state, player)
            k = action - A_END
        else:
            board = other_board(state, player)
            k = action - A_END2
        card = k // 4 + 1
        _leave_hand(state, player, card)
        _put_discard(state, board, k % 4, card)
        state[PASSES] = 0
        _end_turn(state, script)
        return
    if action == A_PASS:
        state[PASSES] += 1
        _end_turn(state, script)
        return
    from_stock = action < A_HAND or A_STOCK2 <= action < A_DISCARD2
    if from_stock:
        board = own_board(state, player) if action < A_HAND else other_board(state, player)
        card = _take_stock(state, board)
    elif action < A_DISCARD:
        card = (action - A_HAND) // 4 + 1
        _leave_hand(state, player, card)
    elif action < A_END:
        card = _take_discard(state, own_board(state, player), (action - A_DISCARD) // 4)
    else:
        card = _take_discard(state, other_board(state, player), (action - A_DISCARD2) // 4)
    # Every play's id is 4k + pile, but for the team ids, which begin at 125 and 129.
    pile = (action if action < A_END else action - 1) % 4
    _build(state, pile, card)
    state[PASSES] = 0
    if from_stock:
        side = player % state[SIDES]
        if side_stock(state, side) == 0:
            state[REASON] = STOCK_EMPTY
            state[WINNER] = side
            return
    if state[HEADER + HAND_CELLS * player] == 0:
        _draw(state, player, np.int64(state[HAND_SIZE]), script)


@inlined
def apply(state, action):
    """Do a legal action. The caller has checked it (`is_legal`, or a mask)."""
    apply_scripted(state, action, state[:0])


@inlined
def winning_points(state):
    """The winner's points: 25, and 5 for each card in every opposing stock."""
    points = 25
    for side in range(state[SIDES]):
        if side != state[WINNER]:
            points += 5 * side_stock(state, side)
    return points


@kernel(brief=True)
def scores(state, out):
    """Write each side's points: `winning_points` to the winner, else zeros."""
    for side in range(state[SIDES]):
        out[side] = winning_points(state) if side == state[WINNER] else 0
