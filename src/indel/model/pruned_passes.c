/* The two passes of edit_posterior.py for one sequence, over the states that matter.

   The formulas and their names are those of the Python module, which the tests hold this file to.
   What is different: a state of next to no weight gives it to the state that has forgotten the
   oldest token (`shorter`), so that only likely contexts are followed; and what follows a state
   that is not followed is taken from the longest shorter one that is. Where nothing can be
   forgotten, such weight is dropped, and nothing follows. With nothing to be left out (`least` 0,
   `most` the number of states) the sums are exact. */

#include <stdint.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static const float LARGEST_RATIO = 1.0f - 1e-6f;
/* What a token of x_t may have been is asked of each token alone, by what all others say. So states
   that it makes unlikely are followed too: whether a state is, is decided by a second weight, for
   which no token is less likely to have become this one than by this share of the likeliest. */
static const float TOLERANCE = 0.01f;

typedef float Pair __attribute__((vector_size(8))); /* the weight, and the second one */
enum { WEIGHT, SECOND };

/* One token of x_0 is read: `token`, the last one of the target. */
typedef struct {
    int32_t target, token;
    float prob;
} Transition;

typedef struct {
    int64_t states, tokens;
    /* S by sources: those of s are start[s] to start[s + 1]. */
    const int32_t *start;
    const Transition *transition;
    const float *rest, *common, *end, *lasting;
    const float *ends; /* remembered + 1, states: (M^T)^n end */
    const int32_t *last, *shorter;
    /* The stationary distribution, as a list, and which states are always followed. */
    const uint8_t *always;
    int64_t usual_states;
    const int32_t *usual_state;
    const float *usual;
    float survival, least;
    int64_t most;
} Model;

typedef struct {
    int64_t length, remembered, deleting;
    const float *kept;   /* length, tokens + 1 */
    const float *pair;   /* length */
    const float *insert; /* length */
    const float *erased; /* length + 1: the probability of a deletion in each slot */
    float stop;
} Channel;

/* States with weights, by falling numbers; single tokens and usual states are always among them, so
   that whatever is asked for has a value. */
typedef struct {
    int64_t count;
    int32_t *state;
    Pair *pair;
} List;

/* Weights of all states, most of them 0; a bit says which are not. */
typedef struct {
    uint64_t *bits;
    Pair *pair;
} Sum;

/* Values of some states: those whose mark is `now`. */
typedef struct {
    int32_t now;
    struct {
        int32_t mark;
        float value;
    } *at;
} Values;

/* Functions with inner loops of their own: together they have more variables than registers. */
#if defined(__GNUC__)
#define APART __attribute__((noinline)) static
#else
#define APART static
#endif

typedef struct {
    Sum reached, current;
    Values message, earlier;
    Values *over;  /* remembered + 1: what follows after any number of deletions, n of them done */
    List *before;  /* length + 1: A_i */
    List *deleted; /* length + 1, remembered: beta^n M^(n+1) A_i */
    float *tails;  /* length + 1: the weight of all larger n */
} Room;

#define WORDS(m) ((m)->states / 64 + 1)
#define FOR_EACH_STATE(sum, m, s)                                                                  \
    for (int64_t word_ = 0; word_ < WORDS(m); word_++)                                             \
        for (uint64_t left_ = (sum)->bits[word_]; left_; left_ &= left_ - 1)                       \
            for (int64_t s = 64 * word_ + __builtin_ctzll(left_), once_ = 1; once_; once_ = 0)

static inline void add(Sum *sum, int64_t s, Pair pair) {
    sum->bits[s / 64] |= 1ull << (s % 64);
    sum->pair[s] += pair;
}

static void emptied(const Model *m, Sum *sum) {
    FOR_EACH_STATE(sum, m, s) sum->pair[s] = (Pair){0};
    memset(sum->bits, 0, WORDS(m) * sizeof *sum->bits);
}

static float ratio_of(const Model *m, float erased) {
    float ratio = erased * m->survival;
    return ratio < LARGEST_RATIO ? ratio : LARGEST_RATIO;
}

/* What is added to D^T value for all numbers of deletions that are not remembered, over `lasting`;
   `at` is the value at the stationary distribution. */
static float forgotten(const Model *m, int64_t remembered, float erased, float at) {
    for (int64_t n = 0; n <= remembered; n++) at *= erased;
    return at / (1.0f - ratio_of(m, erased));
}

/* sum += f M list: one token further in x_0; returns the sum over states. */
APART Pair onward(const Model *m, const List *list, float f, Sum *sum) {
    Pair rest = {0}, total = {0};
    for (int64_t k = 0; k < list->count; k++) {
        int32_t s = list->state[k];
        Pair pair = f * list->pair[k];
        if (pair[SECOND] == 0.0f) continue;
        rest += m->rest[s] * pair;
        const Transition *e = m->transition + m->start[s], *end = m->transition + m->start[s + 1];
        for (; e < end; e++) {
            add(sum, e->target, e->prob * pair);
            total += e->prob * pair;
        }
    }
    for (int64_t v = 0; v < m->tokens; v++) add(sum, v + 1, m->common[v] * rest);
    return total + rest;
}

/* The least second weight of what is followed, so that it is about `most` states at most. */
APART float bound_for(const Model *m, const Sum *sum) {
    int64_t count[256] = {0}, found = 0, bin = 255;
    float all = 0.0f, bound;
    uint32_t bits;
    FOR_EACH_STATE(sum, m, s) {
        float second = sum->pair[s][SECOND];
        all += second;
        memcpy(&bits, &second, sizeof bits);
        count[bits >> 23 & 255]++;
    }
    while (bin >= 0 && found + count[bin] <= m->most) found += count[bin--];
    bits = (uint32_t)(bin + 1) << 23;
    memcpy(&bound, &bits, sizeof bound);
    return bin >= 0 && bound > m->least * all ? bound : m->least * all;
}

/* The states of a sum that are followed, those above the bound; the others give their weight to
   shorter ones. The sum is empty afterwards. */
APART void pruned(const Model *m, Sum *sum, float bound, List *list) {
    int64_t room = 2 * m->most < m->states ? 2 * m->most : m->states;
    for (int64_t s = 0; s <= m->tokens; s++) add(sum, s, (Pair){0});
    for (int64_t k = 0; k < m->usual_states; k++) add(sum, m->usual_state[k], (Pair){0});
    list->count = 0;
    /* A shorter context has the smaller number: each state is met after those that give to it. */
    for (int64_t word = WORDS(m) - 1; word >= 0; word--)
        for (uint64_t bits; (bits = sum->bits[word]);) {
            int64_t s = 64 * word + 63 - __builtin_clzll(bits);
            Pair pair = sum->pair[s];
            sum->bits[word] ^= 1ull << (s % 64);
            sum->pair[s] = (Pair){0};
            if (m->always[s] || (pair[SECOND] > bound && list->count < room)) {
                list->state[list->count] = (int32_t)s;
                list->pair[list->count++] = pair;
            } else if (m->shorter[s] != s) {
                add(sum, m->shorter[s], pair);
            }
        }
}

/* The slot before token i: `reached` is M D A_i. `ended` has the weights of ending there after n
   deletions, if it is asked for. */
APART void slot(const Model *m, const Channel *c, Room *r, int64_t i, float *ended) {
    int64_t R = c->deleting ? c->remembered : 0;
    float erased = c->erased[i], ratio = ratio_of(m, erased);
    Pair latest = onward(m, &r->before[i], 1.0f, &r->current);
    float whole = latest[SECOND];
    for (int64_t n = 0;; n++) {
        FOR_EACH_STATE(&r->current, m, s) {
            add(&r->reached, s, r->current.pair[s]);
            if (ended && c->deleting)
                ended[n + 1] += erased * m->end[s] * r->current.pair[s][WEIGHT];
        }
        if (n == R) break;
        float bound = bound_for(m, &r->current);
        float other = erased > 0.0f ? m->least * whole / erased : 0.0f;
        List *list = &r->deleted[i * R + n];
        pruned(m, &r->current, bound > other ? bound : other, list);
        latest = onward(m, list, erased, &r->current);
    }
    emptied(m, &r->current);
    Pair tail = c->deleting ? latest * (ratio / (1.0f - ratio)) : (Pair){0};
    for (int64_t k = 0; k < m->usual_states && tail[SECOND] > 0.0f; k++) {
        int32_t s = m->usual_state[k];
        add(&r->reached, s, m->usual[k] * tail);
        if (ended) ended[R + 1] += erased * m->end[s] * m->usual[k] * tail[WEIGHT];
    }
    r->tails[i] = tail[WEIGHT];
}

static void forward(const Model *m, const Channel *c, Room *r, float *ended) {
    int64_t K = m->tokens;
    float replaced[K + 1], tolerated[K + 1];
    add(&r->reached, 0, (Pair){1.0f, 1.0f});
    pruned(m, &r->reached, 0.0f, &r->before[0]);
    for (int64_t i = 0; i < c->length; i++) {
        const List *a = &r->before[i];
        List *next = &r->before[i + 1];
        float likeliest = 0.0f;
        Pair total = {0};
        for (int64_t v = 0; v <= K; v++) {
            replaced[v] = c->stop * (c->kept[i * (K + 1) + v] + c->pair[i]);
            if (replaced[v] > likeliest) likeliest = replaced[v];
        }
        for (int64_t v = 0; v <= K; v++) {
            float least = TOLERANCE * likeliest;
            tolerated[v] = replaced[v] > least ? replaced[v] : least;
        }
        slot(m, c, r, i, NULL);
        FOR_EACH_STATE(&r->reached, m, s) {
            int32_t v = m->last[s];
            r->reached.pair[s] *= (Pair){replaced[v], tolerated[v]};
        }
        for (int64_t k = 0; k < a->count; k++)
            add(&r->reached, a->state[k], c->insert[i] * a->pair[k]);
        FOR_EACH_STATE(&r->reached, m, s) total += r->reached.pair[s];
        Pair scale = {total[WEIGHT] > 0.0f ? 1.0f / total[WEIGHT] : 0.0f,
                      total[SECOND] > 0.0f ? 1.0f / total[SECOND] : 0.0f};
        FOR_EACH_STATE(&r->reached, m, s) r->reached.pair[s] *= scale;
        pruned(m, &r->reached, bound_for(m, &r->reached), next);
    }
    slot(m, c, r, c->length, ended);
    emptied(m, &r->reached);
    const List *a = &r->before[c->length];
    for (int64_t k = 0; k < a->count; k++) ended[0] += m->end[a->state[k]] * a->pair[k][WEIGHT];
}

/* The value of a state, or of the longest shorter one that has a value, from then on its own. */
static inline float value_of(const Model *m, const Values *values, int32_t s) {
    int32_t now = values->now, to = s;
    while (values->at[to].mark != now) {
        if (m->shorter[to] == to) return 0.0f;
        to = m->shorter[to];
    }
    float value = values->at[to].value;
    values->at[s].mark = now;
    values->at[s].value = value;
    return value;
}

static inline void set(Values *values, int32_t s, float value) {
    values->at[s].mark = values->now;
    values->at[s].value = value;
}

/* The message at the end of x_t, at the states that are asked for. */
static void message_at_end(const Model *m, const Channel *c, Room *r) {
    int64_t R = c->deleting ? c->remembered : 0;
    float erased = c->erased[c->length], at = 0.0f, later = 0.0f;
    for (int64_t k = 0; k < m->usual_states; k++) at += m->usual[k] * m->end[m->usual_state[k]];
    if (c->deleting) later = forgotten(m, R, erased, at);
    r->message.now++;
    for (int64_t n = 0; n <= R; n++) {
        const List *list = n ? &r->deleted[c->length * R + n - 1] : &r->before[c->length];
        for (int64_t k = 0; k < list->count; k++)
            for (int32_t s = list->state[k], e = m->start[s] - 1; e < m->start[s + 1]; e++) {
                int32_t to = e < m->start[s] ? s : m->transition[e].target;
                float found = c->deleting ? m->lasting[to] * later : 0.0f, power = 1.0f;
                for (int64_t j = 0; j <= R; j++, power *= erased)
                    found += power * m->ends[j * m->states + to];
                set(&r->message, to, c->stop * found);
            }
    }
}

/* For each state and transition that reads v, with a message at its target:
   sums[v, n] += told_n p message, earlier += used[v] p message. */
APART void read_backward(const Model *m, const List *list, float f, const float *used,
                         const Values *message, int64_t kinds, float *sums, Values *earlier) {
    float rest = 0.0f, alone = 0.0f;
    for (int64_t v = 0; v < m->tokens; v++)
        alone += m->common[v] * used[v] * message->at[v + 1].value;
    for (int64_t k = 0; k < list->count; k++) {
        int32_t s = list->state[k];
        float found = m->rest[s] * alone, weight = f * list->pair[k][WEIGHT];
        const Transition *e = m->transition + m->start[s], *end = m->transition + m->start[s + 1];
        rest += m->rest[s] * weight;
        for (; e < end; e++) {
            float part = e->prob * value_of(m, message, e->target);
            found += used[e->token] * part;
            sums[e->token * kinds] += weight * part;
        }
        set(earlier, s, found);
    }
    for (int64_t v = 0; v < m->tokens; v++)
        sums[v * kinds] += rest * m->common[v] * message->at[v + 1].value;
}

/* values += f M^T next, at the states of a list. */
APART void add_next(const Model *m, const List *list, float f, const Values *next, Values *values) {
    float alone = 0.0f;
    for (int64_t v = 0; v < m->tokens; v++) alone += m->common[v] * next->at[v + 1].value;
    for (int64_t k = 0; k < list->count; k++) {
        int32_t s = list->state[k];
        float found = m->rest[s] * alone;
        const Transition *e = m->transition + m->start[s], *end = m->transition + m->start[s + 1];
        for (; e < end; e++) found += e->prob * value_of(m, next, e->target);
        values->at[s].value += f * found;
    }
}

/* From the message at token i + 1 to the one before it, `earlier`; A_i and what is over its slot
   are at hand. */
static void exchanged(const Model *m, const Channel *c, Room *r, int64_t i, float later) {
    const List *a = &r->before[i];
    Values *earlier = &r->earlier;
    float top = 0.0f;
    earlier->now++;
    for (int64_t k = 0; k < a->count; k++) {
        int32_t s = a->state[k];
        float value = c->stop * (r->over[0].at[s].value + m->lasting[s] * later) +
                      c->insert[i] * value_of(m, &r->message, s);
        set(earlier, s, value);
        if (value > top) top = value;
    }
    float scale = top > 0.0f ? 1.0f / top : 0.0f;
    for (int64_t k = 0; k < a->count; k++) earlier->at[a->state[k]].value *= scale;
    Values other = r->message;
    r->message = r->earlier;
    r->earlier = other;
}

static void backward(const Model *m, const Channel *c, Room *r, float *sources, float *same) {
    int64_t K = m->tokens, R = c->deleting ? c->remembered : 0, kinds = c->deleting ? R + 2 : 1;
    float used[K + 1];
    message_at_end(m, c, r);
    for (int64_t i = c->length; i >= 0; i--) {
        /* Behind the last token stands what would follow. */
        int inside = i < c->length;
        const List *a = &r->before[i];
        float erased = c->erased[i], at = 0.0f, *sums = sources + i * K * kinds;
        for (int64_t v = 0; v <= K; v++)
            used[v] = inside ? c->kept[i * (K + 1) + v] + c->pair[i] : 0.0f;
        for (int64_t k = 0; k < a->count; k++)
            same[i] += a->pair[k][WEIGHT] * value_of(m, &r->message, a->state[k]);
        for (int64_t n = 0; n <= R; n++) {
            const List *list = n ? &r->deleted[i * R + n - 1] : a;
            r->over[n].now++;
            read_backward(m, list, n ? erased : 1.0f, used, &r->message, kinds, sums + n,
                          &r->over[n]);
        }
        for (int64_t k = 0; c->deleting && k < m->usual_states; k++) {
            int32_t s = m->usual_state[k];
            if (s > 0)
                sums[m->last[s] * kinds + R + 1] +=
                    m->usual[k] * r->tails[i] * value_of(m, &r->message, s);
            at += m->usual[k] * r->over[0].at[s].value;
        }
        if (!inside) continue;
        for (int64_t n = R - 1; n >= 0 && erased > 0.0f; n--)
            add_next(m, n ? &r->deleted[i * R + n - 1] : a, erased, &r->over[n + 1], &r->over[n]);
        exchanged(m, c, r, i, c->deleting ? forgotten(m, R, erased, at) : 0.0f);
    }
}

/* Lays the room out in memory, and makes 0 what must be; returns how much memory is needed. */
static int64_t laid_out(const Model *m, const Channel *c, char *memory, Room *r) {
    int64_t R = c->deleting ? c->remembered : 0, N = m->states, used = 0;
    int64_t most = (2 * m->most < N ? 2 * m->most : N) + m->tokens + 1 + m->usual_states;
#define TAKE(pointer, count)                                                                       \
    do {                                                                                           \
        if (memory) pointer = (void *)(memory + used);                                             \
        used += ((count) * (int64_t)sizeof *(pointer) + 63) / 64 * 64;                             \
    } while (0)
    TAKE(r->reached.bits, WORDS(m));
    TAKE(r->current.bits, WORDS(m));
    TAKE(r->reached.pair, N);
    TAKE(r->current.pair, N);
    TAKE(r->message.at, N);
    TAKE(r->earlier.at, N);
    if (memory) memset(memory, 0, used);
    TAKE(r->over, R + 1);
    for (int64_t n = 0; n <= R; n++) {
        Values values = {0};
        TAKE(values.at, N);
        if (memory) memset(values.at, 0, N * sizeof *values.at);
        if (memory) r->over[n] = values;
    }
    TAKE(r->tails, c->length + 1);
    TAKE(r->before, c->length + 1);
    TAKE(r->deleted, (c->length + 1) * R);
    for (int64_t k = 0; k < (c->length + 1) * (R + 1); k++) {
        List list = {0};
        TAKE(list.state, most);
        TAKE(list.pair, most);
        if (memory) *(k <= c->length ? &r->before[k] : &r->deleted[k - c->length - 1]) = list;
    }
#undef TAKE
    return used;
}

int64_t workspace(const Model *m, const Channel *c) {
    Room room = {0};
    return laid_out(m, c, NULL, &room);
}

/* Both passes of one sequence; `sources`, `same` and `ended` are 0 at first. */
void pruned_passes(const Model *m, const Channel *c, char *memory, float *sources, float *same,
                   float *ended) {
    Room room = {0};
    laid_out(m, c, memory, &room);
#if defined(__SSE__)
    unsigned state = _mm_getcsr(); /* numbers too small to be normal are 0: others are slow */
    _mm_setcsr(state | 0x8040);
#endif
    forward(m, c, &room, ended);
    backward(m, c, &room, sources, same);
#if defined(__SSE__)
    _mm_setcsr(state);
#endif
}
