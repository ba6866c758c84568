/* Skip-Bo for two players in plain C: the yardstick for SkipBoVectorEnv's speed.

   A row is a game of the standard rules. One call of skipbo_step does for every row what
   SkipBoVectorEnv.sample_actions() and step() do together: a uniformly random legal action, the
   draws and reshuffles that follow, at the end of a game the next deal, then the legal actions, the
   mask and the "cards" observation of the seat to move, the pay of both seats and the end flags.
   The random generator, the shuffle and the action ids are those of skipbo_env too, so that equal
   seeds are equal games and `python -m benchmarks` can compare every number before it times.

   Cards are 1 to 12 and 13 for a wild. One byte holds a card or a count. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SEATS = 2, STOCK = 30, HAND = 5, COPIES = 12, WILDS = 18, WILD = 13, PILES = 4 };
enum { DECK = 12 * COPIES + WILDS, MAX_TURNS = 2000, ACTIONS = 125, NUMBERS = 56 };
enum { A_HAND = 4, A_DISCARD = 56, A_END = 72, A_PASS = 124 };
enum { RUNNING, STOCK_EMPTY, STALEMATE, TURN_LIMIT };

typedef struct {
    uint64_t rng;
    int16_t turns;
    uint8_t player, passes, reason, draw_low, draw_high, completed_size;
    uint8_t height[PILES];
    uint16_t wild_bits[PILES]; /* bit h: the card at height h + 1 is a wild */
    uint8_t completed[14];     /* by kind, index 1 to 13; so are the hands */
    uint8_t hand_size[SEATS];
    uint8_t hand[SEATS][14];
    uint8_t stock_size[SEATS];
    uint8_t depth[SEATS][PILES];
    uint8_t legal_count;
    uint8_t legal[ACTIONS];
    uint8_t stock[SEATS][STOCK];
    uint8_t draw[DECK];
    uint8_t discard[SEATS][PILES][DECK];
} Game;

typedef struct {
    int rows;
    Game *games;
    uint64_t *deals, *samples; /* generators of new games and of the choice, one a row */
} Table;

/* -- random numbers: SplitMix64, and Lemire's bounded numbers ---------------------------------- */

static const uint64_t GAMMA = 0x9E3779B97F4A7C15u;

static inline uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline uint64_t next64(uint64_t *state)
{
    *state += GAMMA;
    return mix64(*state);
}

static inline int below(uint64_t *state, uint32_t n)
{
    uint64_t product = (next64(state) >> 32) * n;
    uint32_t low = (uint32_t)product;
    if (low < n) {
        uint32_t threshold = (0xFFFFFFFFu - n + 1u) % n;
        while (low < threshold) {
            product = (next64(state) >> 32) * n;
            low = (uint32_t)product;
        }
    }
    return (int)(product >> 32);
}

static void shuffle(uint64_t *rng, uint8_t *cards, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = below(rng, (uint32_t)i + 1);
        uint8_t card = cards[i];
        cards[i] = cards[j];
        cards[j] = card;
    }
}

/* -- the game ----------------------------------------------------------------------------------- */

static void reshuffle(Game *g)
{
    int n = 0;
    for (int card = 1; card <= WILD; card++)
        for (int k = 0; k < g->completed[card]; k++)
            g->draw[n++] = (uint8_t)card;
    shuffle(&g->rng, g->draw, n);
    memset(g->completed, 0, sizeof g->completed);
    g->completed_size = 0;
    g->draw_low = 0;
    g->draw_high = (uint8_t)n;
}

static inline void draw_to_hand(Game *g)
{
    int p = g->player;
    while (g->hand_size[p] < HAND) {
        if (g->draw_low == g->draw_high) {
            if (g->completed_size == 0)
                return;
            reshuffle(g);
        }
        g->hand[p][g->draw[g->draw_low++]]++;
        g->hand_size[p]++;
    }
}

static void deal(Game *g, uint64_t seed)
{
    uint8_t deck[DECK];
    int n = 0;
    g->rng = mix64(seed + GAMMA);
    for (int card = 1; card < WILD; card++)
        for (int k = 0; k < COPIES; k++)
            deck[n++] = (uint8_t)card;
    while (n < DECK)
        deck[n++] = WILD;
    shuffle(&g->rng, deck, DECK);
    g->player = (uint8_t)below(&g->rng, SEATS);
    g->turns = 0;
    g->passes = g->reason = g->completed_size = 0;
    memset(g->height, 0, sizeof g->height);
    memset(g->wild_bits, 0, sizeof g->wild_bits);
    memset(g->completed, 0, sizeof g->completed);
    memset(g->hand_size, 0, sizeof g->hand_size);
    memset(g->hand, 0, sizeof g->hand);
    memset(g->depth, 0, sizeof g->depth);
    for (int p = 0; p < SEATS; p++) {
        memcpy(g->stock[p], deck + STOCK * p, STOCK);
        g->stock_size[p] = STOCK;
    }
    g->draw_low = 0;
    g->draw_high = DECK - SEATS * STOCK;
    memcpy(g->draw, deck + SEATS * STOCK, DECK - SEATS * STOCK);
    draw_to_hand(g);
}

static inline void end_turn(Game *g)
{
    g->turns++;
    if (g->passes == SEATS) {
        g->reason = STALEMATE;
    } else if (g->turns >= MAX_TURNS) {
        g->reason = TURN_LIMIT;
    } else {
        g->player ^= 1;
        draw_to_hand(g);
    }
}

static inline void build(Game *g, int pile, int card)
{
    int height = g->height[pile];
    if (card == WILD)
        g->wild_bits[pile] |= (uint16_t)(1u << height);
    if (++height < 12) {
        g->height[pile] = (uint8_t)height;
        return;
    }
    for (int h = 0; h < 12; h++)
        g->completed[g->wild_bits[pile] >> h & 1 ? WILD : h + 1]++;
    g->completed_size += 12;
    g->height[pile] = 0;
    g->wild_bits[pile] = 0;
}

static inline void apply(Game *g, int action)
{
    int p = g->player;
    if (action == A_PASS) {
        g->passes++;
        end_turn(g);
        return;
    }
    g->passes = 0;
    if (action >= A_END) {
        int card = (action - A_END) / 4 + 1, d = action % 4;
        g->hand[p][card]--;
        g->hand_size[p]--;
        g->discard[p][d][g->depth[p][d]++] = (uint8_t)card;
        end_turn(g);
        return;
    }
    int pile = action % 4;
    if (action < A_HAND) {
        build(g, pile, g->stock[p][--g->stock_size[p]]);
        if (g->stock_size[p] == 0) {
            g->reason = STOCK_EMPTY;
            return;
        }
    } else if (action < A_DISCARD) {
        int card = (action - A_HAND) / 4 + 1;
        g->hand[p][card]--;
        g->hand_size[p]--;
        build(g, pile, card);
    } else {
        int d = (action - A_DISCARD) / 4;
        build(g, pile, g->discard[p][d][--g->depth[p][d]]);
    }
    if (g->hand_size[p] == 0)
        draw_to_hand(g);
}

static inline int discard_top(const Game *g, int p, int d)
{
    return g->depth[p][d] ? g->discard[p][d][g->depth[p][d] - 1] : 0;
}

/* Lists the legal actions in ascending order and spreads them over the mask. */
static inline void list_legal(Game *g, int8_t *mask)
{
    int p = g->player, n = 0;
    uint8_t *legal = g->legal;
    const uint8_t *hand = g->hand[p];
    uint32_t takes[14]; /* by card, bit b: building pile b takes it */
    memset(takes, 0, sizeof takes);
    for (int b = 0; b < PILES; b++)
        takes[g->height[b] + 1] |= 1u << b;
    takes[WILD] = 15;

    for (uint32_t bits = takes[g->stock[p][g->stock_size[p] - 1]]; bits; bits &= bits - 1)
        legal[n++] = (uint8_t)__builtin_ctz(bits);
    for (int card = 1; card <= WILD; card++)
        if (hand[card])
            for (uint32_t bits = takes[card]; bits; bits &= bits - 1)
                legal[n++] = (uint8_t)(A_HAND + 4 * (card - 1) + __builtin_ctz(bits));
    for (int d = 0; d < PILES; d++)
        for (uint32_t bits = takes[discard_top(g, p, d)]; bits; bits &= bits - 1)
            legal[n++] = (uint8_t)(A_DISCARD + 4 * d + __builtin_ctz(bits));
    if (g->hand_size[p]) {
        for (int card = 1; card <= WILD; card++)
            if (hand[card])
                for (int d = 0; d < PILES; d++)
                    legal[n++] = (uint8_t)(A_END + 4 * (card - 1) + d);
    } else if (g->draw_low == g->draw_high && g->completed_size == 0) {
        legal[n++] = A_PASS;
    }
    g->legal_count = (uint8_t)n;
    memset(mask, 0, ACTIONS);
    for (int k = 0; k < n; k++)
        mask[legal[k]] = 1;
}

static inline void observe(const Game *g, int seat, int8_t *out)
{
    memcpy(out, g->height, PILES);
    memcpy(out + 4, g->hand[seat] + 1, WILD);
    for (int k = 0; k < SEATS; k++) {
        int p = seat ^ k;
        int8_t *board = out + 17 + 10 * k;
        int left = g->stock_size[p];
        board[0] = (int8_t)(left ? g->stock[p][left - 1] : 0);
        board[1] = (int8_t)left;
        for (int d = 0; d < PILES; d++) {
            int depth = g->depth[p][d];
            board[2 + d] = (int8_t)discard_top(g, p, d);
            board[6 + d] = (int8_t)(depth < 127 ? depth : 127);
        }
        out[37 + k] = (int8_t)g->hand_size[p];
    }
    int draw = g->draw_high - g->draw_low;
    out[39] = (int8_t)(draw < 127 ? draw : 127);
    out[40] = (int8_t)(draw < 127 ? 0 : draw - 127);
    memcpy(out + 41, g->completed + 1, WILD);
    out[54] = (int8_t)(g->player ^ seat);
    out[55] = (int8_t)g->passes;
}

/* -- the rows ----------------------------------------------------------------------------------- */

Table *skipbo_new(int rows)
{
    Table *t = malloc(sizeof *t);
    t->rows = rows;
    t->games = calloc((size_t)rows, sizeof *t->games);
    t->deals = calloc((size_t)rows, sizeof *t->deals);
    t->samples = calloc((size_t)rows, sizeof *t->samples);
    return t;
}

void skipbo_free(Table *t)
{
    free(t->games);
    free(t->deals);
    free(t->samples);
    free(t);
}

/* Row i's first game is that of seed + i. */
void skipbo_reset(Table *t, uint64_t seed, int8_t *cards, int8_t *masks, int64_t *players)
{
    for (int i = 0; i < t->rows; i++) {
        Game *g = &t->games[i];
        uint64_t own = seed + (uint64_t)i;
        t->deals[i] = mix64(own ^ 0xD1B54A32D192ED03u);
        t->samples[i] = mix64(own ^ 0x8CB92BA72F3D8DD7u);
        deal(g, own);
        list_legal(g, masks + ACTIONS * i);
        observe(g, g->player, cards + NUMBERS * i);
        players[i] = g->player;
    }
}

/* Arrays have a row a game: cards (56), masks (125), pay of every seat (2), and `final` (56), the
   last observation of games that ended. `actions` tells what was chosen; where `given` is not null
   its legal actions are done instead. */
void skipbo_step(Table *t, const int64_t *given, int64_t *actions, int8_t *cards, int8_t *masks, int64_t *players,
                 double *rewards, double *all_rewards, uint8_t *terminated, uint8_t *truncated,
                 int64_t *winners, int64_t *reasons, int8_t *final)
{
    for (int i = 0; i < t->rows; i++) {
        Game *g = &t->games[i];
        int seat = g->player;
        uint64_t drawn = next64(&t->samples[i]) >> 32;
        int action = g->legal[drawn * g->legal_count >> 32];
        if (given)
            action = (int)given[i];
        actions[i] = action;
        apply(g, action);
        rewards[i] = all_rewards[2 * i] = all_rewards[2 * i + 1] = 0.0;
        terminated[i] = truncated[i] = 0;
        winners[i] = -1;
        reasons[i] = g->reason;
        if (g->reason) {
            if (g->reason == STOCK_EMPTY) {
                winners[i] = seat;
                rewards[i] = all_rewards[2 * i + seat] = 1.0;
                all_rewards[2 * i + (seat ^ 1)] = -1.0;
            }
            terminated[i] = g->reason != TURN_LIMIT;
            truncated[i] = g->reason == TURN_LIMIT;
            observe(g, g->player, final + NUMBERS * i);
            deal(g, next64(&t->deals[i]));
        }
        list_legal(g, masks + ACTIONS * i);
        observe(g, g->player, cards + NUMBERS * i);
        players[i] = g->player;
    }
}
