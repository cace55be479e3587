/* The two passes of edit_posterior.py, several sequences at a time.

   A vector V holds one number for each of LANES sequences; an array of states holds a V for each
   state of the model of x_0. The formulas, their names and their factors are those of the Python
   module, which the tests hold this file to. What is different: all that is done for a token of x_t
   stays in the cache, and M D A is computed again in the backward pass instead of being kept. */

#include <stdint.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* As many numbers as one register holds: compilers are slow with longer vectors. */
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float V __attribute__((vector_size(4 * LANES)));
typedef int32_t I __attribute__((vector_size(4 * LANES)));

static const float SIZE = 1073741824.0f;             /* 2^30: what weights are scaled to */
static const float NEGLIGIBLE = 8.673617379884035e-19f; /* 2^-60: less is 0 */
static const float LARGEST_RATIO = 1.0f - 1e-6f;

typedef struct {
    int64_t states, tokens;
    /* S by targets and by sources, in compressed rows. */
    const int32_t *in_start, *in_source, *out_start, *out_target;
    const float *in_prob, *out_prob;
    const float *rest, *common, *end, *stationary, *lasting;
    const int32_t *last;
    float survival;
} Model;

typedef struct {
    int64_t length, remembered, deleting;
    const V *kept;    /* length, tokens + 1 */
    const V *pair;    /* length */
    const V *insert;  /* length */
    const V *erased;  /* length + 1: the probability of a deletion in each slot */
    const V *stop;
    const int32_t *lengths;
} Channel;

static V all(float x) { return x - (V){0}; }
static V chosen(I mask, V a, V b) { return (V)(((I)a & mask) | ((I)b & ~mask)); }
static V least(V a, V b) { return chosen(a < b, a, b); }
static V largest(V a, V b) { return chosen(a > b, a, b); }
static V inverse(V a) { return chosen(a > 0.0f, 1.0f / a, (V){0}); }
static V ratio_of(const Model *m, V erased) {
    return least(erased * m->survival, all(LARGEST_RATIO));
}

/* to = f M a: one token further in x_0; returns the sum over states. */
static V onward(const Model *m, const V *a, V f, V *to) {
    V rest = {0}, total = {0};
    for (int64_t s = 0; s < m->states; s++) {
        V sum = {0};
        for (int32_t e = m->in_start[s]; e < m->in_start[s + 1]; e++)
            sum += m->in_prob[e] * a[m->in_source[e]];
        to[s] = sum * f;
        total += to[s];
        rest += m->rest[s] * a[s];
    }
    for (int64_t v = 0; v < m->tokens; v++) {
        to[v + 1] += m->common[v] * rest * f;
        total += m->common[v] * rest * f;
    }
    return total;
}

/* value += f M^T value + … + (f M^T)^n value but for the last summand, which is returned. */
static const V *earlier_by(const Model *m, int64_t n, V f, V *value, V *to, V *other) {
    const V *from = value;
    for (int64_t k = 0; k < n; k++) {
        V alone = {0};
        for (int64_t v = 0; v < m->tokens; v++) alone += m->common[v] * from[v + 1];
        for (int64_t s = 0; s < m->states; s++) {
            V sum = m->rest[s] * alone;
            for (int32_t e = m->out_start[s]; e < m->out_start[s + 1]; e++)
                sum += m->out_prob[e] * from[m->out_target[e]];
            to[s] = sum * f;
        }
        if (k > 0)
            for (int64_t s = 0; s < m->states; s++) value[s] += from[s];
        from = to;
        to = other;
        other = (V *)from;
    }
    return from;
}

/* What is added to D^T value for all numbers of deletions that are not remembered, over `lasting`;
   `at` is the value at the stationary distribution. */
static V forgotten(const Model *m, int64_t remembered, V erased, V at) {
    V power = erased;
    for (int64_t n = 0; n < remembered; n++) power *= erased;
    return at * power / (1.0f - ratio_of(m, erased));
}

static void forward(const Model *m, const Channel *c, V *before, V *tails, V *told, V *other) {
    int64_t N = m->states, K = m->tokens, R = c->deleting ? c->remembered : 0;
    V replaced[K + 1], none = {0};
    memset(before, 0, N * sizeof(V));
    before[0] = all(1.0f);
    for (int64_t i = 0; i < c->length; i++) {
        const V *a = before + i * N, *from = before + (i + 1) * N;
        V *total = before + (i + 1) * N, *to = told, *next = other;
        V erased = c->erased[i], ratio = ratio_of(m, erased), sum = none;
        for (int64_t v = 0; v <= K; v++)
            replaced[v] = *c->stop * (c->kept[i * (K + 1) + v] + c->pair[i]);
        V latest = onward(m, a, all(1.0f), total);
        for (int64_t n = 0; n < R; n++) {
            latest = onward(m, from, erased, to);
            if (n > 0)
                for (int64_t s = 0; s < N; s++) total[s] += from[s];
            from = to;
            to = next;
            next = (V *)from;
        }
        V tail = tails[i] = c->deleting ? latest * ratio / (1.0f - ratio) : none;
        for (int64_t s = 0; s < N; s++) {
            V reached = total[s] + m->stationary[s] * tail + (R ? from[s] : none);
            total[s] = reached * replaced[m->last[s]] + a[s] * c->insert[i];
            sum += total[s];
        }
        V scale = SIZE * inverse(sum);
        for (int64_t s = 0; s < N; s++) {
            V w = total[s] * scale;
            total[s] = chosen(w > NEGLIGIBLE, w, none);
        }
    }
}

/* For each state s and transition to s' that reads v, with a message at s':
   sums[v, n] += told_n[s] p message[s'], earlier[s] += used[v] p message[s']. */
static inline __attribute__((always_inline)) void
backward(const Model *m, const Channel *c, const int64_t R, const V *before, const V *tails,
         V *sources, V *same, V *told, V *message, V *earlier, V *each, V *other) {
    int64_t N = m->states, K = m->tokens, kinds = c->deleting ? R + 2 : 1;
    V used[K + 1], rest[R + 1], at_end, at = {0}, none = {0};
    for (int lane = 0; lane < LANES; lane++) at_end[lane] = c->erased[c->lengths[lane]][lane];
    for (int64_t s = 0; s < N; s++) {
        message[s] = all(m->end[s]);
        at += m->stationary[s] * m->end[s];
    }
    if (c->deleting) {
        V later = forgotten(m, R, at_end, at);
        const V *latest = earlier_by(m, R, at_end, message, each, other);
        for (int64_t s = 0; s < N; s++)
            message[s] += m->lasting[s] * later + (R ? latest[s] : none);
    }
    for (int64_t s = 0; s < N; s++) message[s] *= *c->stop;
    for (int64_t i = c->length - 1; i >= 0; i--) {
        const V *a = before + i * N;
        V *sums = sources + i * K * kinds, agree = none, alone = none, top = none;
        V erased = c->erased[i], later = none;
        for (int64_t v = 0; v <= K; v++) used[v] = c->kept[i * (K + 1) + v] + c->pair[i];
        for (int64_t n = 0; n < R; n++)
            onward(m, n ? told + (n - 1) * N : a, all(1.0f), told + n * N);
        memset(sums, 0, K * kinds * sizeof(V));
        memset(rest, 0, sizeof rest);
        for (int64_t v = 0; v < K; v++) alone += m->common[v] * used[v] * message[v + 1];
        at = none;
        for (int64_t s = 0; s < N; s++) {
            V here[R + 1], found = m->rest[s] * alone, tail = m->stationary[s] * message[s];
            here[0] = a[s];
            for (int64_t n = 1; n <= R; n++) here[n] = told[(n - 1) * N + s];
            for (int64_t n = 0; n <= R; n++) rest[n] += m->rest[s] * here[n];
            agree += a[s] * message[s];
            if (c->deleting && s > 0) sums[m->last[s] * kinds + kinds - 1] += tail * tails[i];
            for (int32_t e = m->out_start[s]; e < m->out_start[s + 1]; e++) {
                int32_t target = m->out_target[e], v = m->last[target];
                V part = m->out_prob[e] * message[target];
                found += used[v] * part;
                for (int64_t n = 0; n <= R; n++) sums[v * kinds + n] += here[n] * part;
            }
            earlier[s] = found;
            at += m->stationary[s] * found;
        }
        for (int64_t v = 0; v < K; v++) {
            V power = all(1.0f);
            for (int64_t n = 0; n <= R; n++) {
                V *sum = sums + v * kinds + n;
                *sum = power * (*sum + m->common[v] * rest[n] * message[v + 1]);
                power *= erased;
            }
        }
        same[i] = agree;
        const V *latest = earlier_by(m, R, erased, earlier, each, other);
        if (c->deleting) later = forgotten(m, R, erased, at);
        I inside;
        for (int lane = 0; lane < LANES; lane++) inside[lane] = i < c->lengths[lane] ? -1 : 0;
        for (int64_t s = 0; s < N; s++) {
            V over = earlier[s] + m->lasting[s] * later + (R ? latest[s] : none);
            earlier[s] = over * *c->stop + message[s] * c->insert[i];
            top = largest(top, earlier[s]);
        }
        V scale = SIZE * inverse(top);
        for (int64_t s = 0; s < N; s++) {
            V w = earlier[s] * scale;
            message[s] = chosen(inside, chosen(w > NEGLIGIBLE, w, none), message[s]);
        }
    }
}

int lanes(void) { return LANES; }

/* How many vectors of room the passes need. */
int64_t workspace(int64_t states, int64_t length, int64_t remembered) {
    return (length + 1) * (states + 1) + (remembered + 5) * states;
}

/* Both passes of LANES sequences; at_length has A at the end of each. */
void edit_passes(const Model *m, const Channel *c, V *room, V *sources, V *same, V *at_length) {
    int64_t N = m->states, L = c->length, R = c->deleting ? c->remembered : 0;
    V *before = room, *tails = before + (L + 1) * N, *told = tails + L + 1;
    V *message = told + (R + 1) * N, *earlier = message + N, *each = earlier + N, *other = each + N;
#if defined(__SSE__)
    unsigned state = _mm_getcsr(); /* numbers too small to be normal are 0: others are slow */
    _mm_setcsr(state | 0x8040);
#endif
    forward(m, c, before, tails, each, other);
    for (int lane = 0; lane < LANES; lane++) {
        const V *last = before + c->lengths[lane] * N;
        for (int64_t s = 0; s < N; s++) at_length[s][lane] = last[s][lane];
    }
    /* With a number that the compiler knows its loops are faster. */
#define BACKWARD(n)                                                                              \
    backward(m, c, n, before, tails, sources, same, told, message, earlier, each, other)
    if (R == 0)
        BACKWARD(0);
    else if (R == 1)
        BACKWARD(1);
    else
        BACKWARD(R);
#if defined(__SSE__)
    _mm_setcsr(state);
#endif
}
