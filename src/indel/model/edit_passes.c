/* The two passes of edit_posterior.py, sixteen sequences at a time.

   A vector V holds one number for each of sixteen sequences; an array of states holds a V for each
   state of the model of x_0. The formulas, their names and their factors are those of the Python
   module, which the tests hold this file to. What is different: all that is done for a token of x_t
   stays in the cache, and M D A is computed again in the backward pass instead of being kept. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#ifndef LANES
#define LANES 16
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

/* M a: one token further in x_0. */
static void onward(const Model *m, const V *a, V *to) {
    V rest = {0};
    for (int64_t s = 0; s < m->states; s++) {
        V sum = {0};
        for (int32_t e = m->in_start[s]; e < m->in_start[s + 1]; e++)
            sum += m->in_prob[e] * a[m->in_source[e]];
        to[s] = sum;
        rest += m->rest[s] * a[s];
    }
    for (int64_t v = 0; v < m->tokens; v++) to[v + 1] += m->common[v] * rest;
}

/* D^T value, in the place of value: any number of tokens of x_0 may be deleted first. */
static void over_deletions(const Model *m, int64_t remembered, V erased, V *value, V *each, V *other) {
    V later = {0}, power = erased;
    for (int64_t s = 0; s < m->states; s++) later += m->stationary[s] * value[s];
    const V *from = value;
    V *to = each;
    /* The first product reads `value`, so sums are added to it only after that. */
    for (int64_t n = 0; n < remembered; n++) {
        V alone = {0};
        for (int64_t v = 0; v < m->tokens; v++) alone += m->common[v] * from[v + 1];
        for (int64_t s = 0; s < m->states; s++) {
            V sum = m->rest[s] * alone;
            for (int32_t e = m->out_start[s]; e < m->out_start[s + 1]; e++)
                sum += m->out_prob[e] * from[m->out_target[e]];
            to[s] = sum * erased;
        }
        for (int64_t s = 0; s < m->states; s++) value[s] += to[s];
        power *= erased;
        from = to;
        to = to == each ? other : each;
    }
    later *= power / (1.0f - ratio_of(m, erased));
    for (int64_t s = 0; s < m->states; s++) value[s] += m->lasting[s] * later;
}

static void forward(const Model *m, const Channel *c, V *before, V *tails, V *told, V *other) {
    int64_t N = m->states, K = m->tokens;
    V replaced[K + 1];
    memset(before, 0, N * sizeof(V));
    before[0] = all(1.0f);
    for (int64_t i = 0; i < c->length; i++) {
        const V *a = before + i * N;
        V *total = before + (i + 1) * N;
        V tail = {0}, sum = {0};
        for (int64_t v = 0; v <= K; v++)
            replaced[v] = *c->stop * (c->kept[i * (K + 1) + v] + c->pair[i]);
        onward(m, a, total);
        if (c->deleting) {
            const V *from = total;
            V *to = told, erased = c->erased[i], ratio = ratio_of(m, erased);
            for (int64_t n = 0; n < c->remembered; n++) {
                onward(m, from, to);
                for (int64_t s = 0; s < N; s++) to[s] *= erased;
                if (n > 0)
                    for (int64_t s = 0; s < N; s++) total[s] += from[s];
                from = to;
                to = to == told ? other : told;
            }
            for (int64_t s = 0; s < N; s++) tail += from[s];
            tail *= ratio / (1.0f - ratio);
            if (c->remembered)
                for (int64_t s = 0; s < N; s++) total[s] += from[s];
        }
        tails[i] = tail;
        for (int64_t s = 0; s < N; s++) {
            V w = (total[s] + m->stationary[s] * tail) * replaced[m->last[s]] + a[s] * c->insert[i];
            total[s] = w;
            sum += w;
        }
        V scale = SIZE * inverse(sum);
        for (int64_t s = 0; s < N; s++) {
            V w = total[s] * scale;
            total[s] = chosen(w > NEGLIGIBLE, w, (V){0});
        }
    }
}

/* For each source s and transition to s' that reads v, with weights a_s and a message m_s':
   sums[v, n] += told_n[s] p m_s', earlier[s] += used[v] p m_s'. */
static inline __attribute__((always_inline)) void
backward(const Model *m, const Channel *c, const int64_t R, const V *before, const V *tails,
         V *sources, V *same, V *told, V *message, V *earlier, V *each, V *other) {
    int64_t N = m->states, K = m->tokens;
    int64_t kinds = c->deleting ? c->remembered + 2 : 1;
    V used[K + 1], rest[R + 1], at_end = {0};
    for (int lane = 0; lane < LANES; lane++) at_end[lane] = c->erased[c->lengths[lane]][lane];
    for (int64_t s = 0; s < N; s++) message[s] = all(m->end[s]);
    if (c->deleting) over_deletions(m, c->remembered, at_end, message, each, other);
    for (int64_t s = 0; s < N; s++) message[s] *= *c->stop;
    for (int64_t i = c->length - 1; i >= 0; i--) {
        const V *a = before + i * N;
        V *sums = sources + i * K * kinds, agree = {0}, alone = {0}, top = {0};
        V erased = c->erased[i];
        for (int64_t v = 0; v <= K; v++) used[v] = c->kept[i * (K + 1) + v] + c->pair[i];
        for (int64_t n = 0; n < R; n++) onward(m, n ? told + (n - 1) * N : a, told + n * N);
        memset(sums, 0, K * kinds * sizeof(V));
        memset(rest, 0, sizeof rest);
        for (int64_t v = 0; v < K; v++) alone += m->common[v] * used[v] * message[v + 1];
        for (int64_t s = 0; s < N; s++) {
            V here[R + 1], found = m->rest[s] * alone;
            here[0] = a[s];
            for (int64_t n = 1; n <= R; n++) here[n] = told[(n - 1) * N + s];
            for (int64_t n = 0; n <= R; n++) rest[n] += m->rest[s] * here[n];
            agree += a[s] * message[s];
            for (int32_t e = m->out_start[s]; e < m->out_start[s + 1]; e++) {
                int32_t target = m->out_target[e], v = m->last[target];
                V part = m->out_prob[e] * message[target];
                found += used[v] * part;
                for (int64_t n = 0; n <= R; n++) sums[v * kinds + n] += here[n] * part;
            }
            earlier[s] = found;
        }
        if (c->deleting)
            for (int64_t s = 1; s < N; s++)
                sums[m->last[s] * kinds + kinds - 1] += m->stationary[s] * message[s] * tails[i];
        for (int64_t v = 0; v < K; v++) {
            V power = all(1.0f);
            for (int64_t n = 0; n <= R; n++) {
                V *sum = sums + v * kinds + n;
                *sum = power * (*sum + m->common[v] * rest[n] * message[v + 1]);
                power *= erased;
            }
        }
        same[i] = agree;
        if (c->deleting) over_deletions(m, c->remembered, erased, earlier, each, other);
        I inside;
        for (int lane = 0; lane < LANES; lane++) inside[lane] = i < c->lengths[lane] ? -1 : 0;
        for (int64_t s = 0; s < N; s++) {
            earlier[s] = earlier[s] * *c->stop + message[s] * c->insert[i];
            top = largest(top, earlier[s]);
        }
        V scale = SIZE * inverse(top);
        for (int64_t s = 0; s < N; s++) {
            V w = earlier[s] * scale;
            message[s] = chosen(inside, chosen(w > NEGLIGIBLE, w, (V){0}), message[s]);
        }
    }
}

static void *room(size_t bytes) {
    void *found = aligned_alloc(1 << 21, (bytes + (1 << 21) - 1) >> 21 << 21);
#if defined(__linux__)
    if (found) madvise(found, bytes, MADV_HUGEPAGE);
#endif
    return found;
}

/* Both passes of sixteen sequences; at_length has A at the end of each. Nonzero: no memory. */
int edit_passes(const Model *m, const Channel *c, V *sources, V *same, V *at_length) {
    int64_t N = m->states, L = c->length, R = c->deleting && c->remembered > 1 ? c->remembered : 1;
    V *before = room((L + 1) * N * sizeof(V)), *some = room((R + 4) * N * sizeof(V));
    V *tails = room((L + 1) * sizeof(V));
    int failed = !before || !some || !tails;
    if (!failed) {
#if defined(__SSE__)
        unsigned state = _mm_getcsr(); /* numbers too small to be normal are 0: others are slow */
        _mm_setcsr(state | 0x8040);
#endif
        forward(m, c, before, tails, some, some + N);
        for (int lane = 0; lane < LANES; lane++) {
            const V *last = before + c->lengths[lane] * N;
            for (int64_t s = 0; s < N; s++) at_length[s][lane] = last[s][lane];
        }
        int64_t kept = c->deleting ? c->remembered : 0;
        V *left = some + R * N;
        if (kept == 0) /* numbers that the compiler knows make faster loops */
            backward(m, c, 0, before, tails, sources, same, some, left, left + N, left + 2 * N, left + 3 * N);
        else if (kept == 1)
            backward(m, c, 1, before, tails, sources, same, some, left, left + N, left + 2 * N, left + 3 * N);
        else
            backward(m, c, kept, before, tails, sources, same, some, left, left + N, left + 2 * N, left + 3 * N);
#if defined(__SSE__)
        _mm_setcsr(state);
#endif
    }
    free(before);
    free(some);
    free(tails);
    return failed;
}
