/* Events of a profiler trace, from JSON text in portions to columns of numbers.
 *
 * The same as probes/trace/reading/decode.py on every input, well formed or not: lenient.py says what counts as an event,
 * values.py how numbers are read. C99 and nothing but its library; called through ctypes (scanner.py). All text is
 * read from `buf`, which is followed by PAD zero bytes, so that wide loads stay within it.
 *
 * A scan of the text goes from event to event. Of an event only the top level is parsed; what stands in brackets is
 * stepped over 64 bytes at a time (`close_bracket`), and so is the rest of an event that nobody asked for.
 */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#ifndef SOURCE_HASH
#define SOURCE_HASH ""
#endif
#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

enum { PAD = 64, GROUPS = 8, BASE = 6, MAX_ARGS = 64, MAX_KEYS = 64, LONGEST_KEY = 64, PORTION = 1 << 18 };
enum { INT, FLOAT, TEXT };                                /* kinds of columns */
enum { PH, CAT, NAME, PID, TID, TS, DUR, ARGS, FIELDS };  /* what is kept of an event */
#define ABSENT INT64_MIN
#define LOST (-2) /* id of a text beyond the cap */

typedef struct { const uint8_t *at; size_t size; } span; /* size 0: absent */

typedef struct { uint32_t slot; uint32_t id; } bucket; /* id + 1; slot: upper half of the hash */

typedef struct { uint8_t key[LONGEST_KEY]; size_t size; int slot; } name_t;

typedef struct { /* things that are looked for by name, those of one length together */
    name_t keys[MAX_KEYS];
    int count;
    uint8_t first[LONGEST_KEY + 2];
} names_t;

typedef struct {
    int wanted, args, slots;
    int kind[MAX_ARGS], from[MAX_ARGS], to[MAX_ARGS]; /* of a column: its kind, its key slots */
    names_t keys;
    size_t rows, room;
    void *column[BASE + MAX_ARGS];
} table_t;

typedef struct { uint8_t *at; size_t size, room; } bytes_t;

typedef struct scanner {
    uint8_t *buf;
    size_t size, room, tail;
    int lost, done, retries, failed;
    size_t rest;
    size_t longest, text_cap, text_cost, text_spent;
    uint64_t seed;
    table_t tables[GROUPS];
    int other_group, other_cat, memory_cat;
    names_t cats;
    int cat_group[MAX_KEYS], cat_kind[MAX_KEYS];
    /* counters, in the order of scanner_counts */
    int64_t events, flows, skipped, texts_lost;
    /* distinct strings: text i is arena[offsets[i] .. offsets[i + 1]) */
    bytes_t arena;
    size_t *offsets, strings, strings_room;
    bucket *buckets;
    size_t mask;
    /* metadata events since the last call, and labels of ignored events */
    bytes_t meta;
    size_t *meta_ends, metas, metas_room;
    bytes_t labels;
    size_t label_ends[256], labels_count, labels_max;
    int64_t label_hits[257];
    size_t label_last;
} scanner;

/* ---- memory ---- */

static int grow(void **at, size_t *room, size_t need, size_t each) {
    size_t more = *room ? *room : 1024;
    void *fresh;
    if (need <= *room) return 1;
    while (more < need) {
        if (more > SIZE_MAX / 2 / each) return 0;
        more *= 2;
    }
    fresh = realloc(*at, more * each);
    if (!fresh) return 0;
    *at = fresh;
    *room = more;
    return 1;
}

static int append(bytes_t *to, const uint8_t *from, size_t size) {
    if (!grow((void **)&to->at, &to->room, to->size + size, 1)) return 0;
    if (size) memcpy(to->at + to->size, from, size);
    to->size += size;
    return 1;
}

/* ---- names that are looked for ---- */

static int names_add(names_t *names, const uint8_t *key, size_t size, int slot) {
    int i = names->count;
    if (i >= MAX_KEYS || size > LONGEST_KEY || !size) return 0;
    while (i > 0 && names->keys[i - 1].size > size) {
        names->keys[i] = names->keys[i - 1];
        i--;
    }
    memcpy(names->keys[i].key, key, size);
    names->keys[i].size = size;
    names->keys[i].slot = slot;
    names->count++;
    for (size_t length = 0; length < LONGEST_KEY + 2; length++) {
        int at = 0;
        while (at < names->count && names->keys[at].size < length) at++;
        names->first[length] = (uint8_t)at;
    }
    return 1;
}

static int names_find(const names_t *names, const uint8_t *key, size_t size) {
    if (size > LONGEST_KEY) return -1;
    for (int i = names->first[size]; i < names->first[size + 1]; i++)
        if (!memcmp(names->keys[i].key, key, size)) return names->keys[i].slot;
    return -1;
}

/* ---- distinct strings ---- */

static uint64_t hash_of(uint64_t seed, const uint8_t *at, size_t size) {
    uint64_t h = seed ^ (size * 0x9E3779B97F4A7C15u), w;
    while (size >= 8) {
        memcpy(&w, at, 8);
        h = (h ^ w) * 0x9FB21C651E98DF25u;
        h ^= h >> 32;
        at += 8;
        size -= 8;
    }
    w = 0;
    if (size) memcpy(&w, at, size);
    h = (h ^ w) * 0x9FB21C651E98DF25u;
    h ^= h >> 29;
    h *= seed | 1;
    return h ^ (h >> 32);
}

static int rehash(scanner *s) {
    size_t count = s->mask ? (s->mask + 1) * 2 : 4096;
    bucket *fresh = calloc(count, sizeof *fresh);
    if (!fresh) return 0;
    for (size_t i = 0; i < s->strings; i++) {
        uint64_t h = hash_of(s->seed, s->arena.at + s->offsets[i], s->offsets[i + 1] - s->offsets[i]);
        size_t at = h & (count - 1);
        while (fresh[at].id) at = (at + 1) & (count - 1);
        fresh[at].id = (uint32_t)i + 1;
        fresh[at].slot = (uint32_t)(h >> 32);
    }
    free(s->buckets);
    s->buckets = fresh;
    s->mask = count - 1;
    return 1;
}

static int32_t intern(scanner *s, span text) {
    uint64_t h;
    size_t at;
    if (s->strings * 2 >= s->mask && !rehash(s)) { s->failed = 1; return LOST; }
    h = hash_of(s->seed, text.at, text.size);
    at = h & s->mask;
    while (s->buckets[at].id) {
        if (s->buckets[at].slot == (uint32_t)(h >> 32)) {
            size_t id = s->buckets[at].id - 1, from = s->offsets[id];
            if (s->offsets[id + 1] - from == text.size && (!text.size || !memcmp(s->arena.at + from, text.at, text.size)))
                return (int32_t)id;
        }
        at = (at + 1) & s->mask;
    }
    if (s->text_spent + text.size + s->text_cost > s->text_cap || s->strings >= INT32_MAX - 4) {
        s->texts_lost++;
        return LOST;
    }
    if (!append(&s->arena, text.at, text.size) ||
        !grow((void **)&s->offsets, &s->strings_room, s->strings + 2, sizeof *s->offsets)) {
        s->failed = 1;
        return LOST;
    }
    s->text_spent += text.size + s->text_cost;
    s->offsets[s->strings + 1] = s->arena.size;
    s->buckets[at].id = (uint32_t)++s->strings;
    s->buckets[at].slot = (uint32_t)(h >> 32);
    return (int32_t)s->strings - 1;
}

/* ---- numbers (values.py) ---- */

static span strip(span raw) {
    while (raw.size && (raw.at[0] <= 32 || raw.at[0] == '"')) { raw.at++; raw.size--; }
    while (raw.size && (raw.at[raw.size - 1] <= 32 || raw.at[raw.size - 1] == '"')) raw.size--;
    return raw;
}

static int is_digit(uint8_t c) { return (unsigned)(c - '0') <= 9; }

typedef struct { int negative; const uint8_t *whole, *part; size_t wholes, parts; int64_t exponent; } number;

/* Takes a decimal number apart; 0 for what is none. */
static int parse_number(span text, number *n) {
    const uint8_t *p = text.at, *end = text.at + text.size;
    n->negative = 0;
    n->exponent = 0;
    if (p < end && (*p == '+' || *p == '-')) n->negative = *p++ == '-';
    n->whole = p;
    while (p < end && is_digit(*p)) p++;
    n->wholes = (size_t)(p - n->whole);
    n->part = p;
    n->parts = 0;
    if (p < end && *p == '.') {
        n->part = ++p;
        while (p < end && is_digit(*p)) p++;
        n->parts = (size_t)(p - n->part);
    }
    if (n->wholes + n->parts == 0) return 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        int down = 0;
        int64_t value = 0;
        p++;
        if (p < end && (*p == '+' || *p == '-')) down = *p++ == '-';
        if (p >= end) return 0;
        for (; p < end && is_digit(*p); p++)
            if (value < 1000000) value = value * 10 + (*p - '0');
        if (value > 1000000) value = 1000000;
        n->exponent = down ? -value : value;
    }
    return p == end;
}

/* A number times 10**shift: its whole part and whether the rest is a half or more. 0: none, or beyond 64 bits. */
static int scaled(span raw, int shift, int *negative, uint64_t *whole, int *half) {
    number n;
    size_t total, zeros = 0;
    int64_t point;
    if (!parse_number(strip(raw), &n)) return 0;
    *negative = n.negative;
    *whole = 0;
    *half = 0;
    total = n.wholes + n.parts;
#define DIGIT(i) ((i) < n.wholes ? n.whole[i] - '0' : n.part[(i) - n.wholes] - '0')
    while (zeros < total && DIGIT(zeros) == 0) zeros++;
    if (zeros == total) return 1;
    point = (int64_t)n.wholes + shift + n.exponent - (int64_t)zeros;
    if (point > 20) return 0;
    if (point < 0) return 1;
    for (int64_t i = 0; i < point; i++) {
        uint64_t d = zeros + (size_t)i < total ? (uint64_t)DIGIT(zeros + (size_t)i) : 0;
        if (*whole > (UINT64_MAX - d) / 10) return 0;
        *whole = *whole * 10 + d;
    }
    if (zeros + (size_t)point < total) *half = DIGIT(zeros + (size_t)point) >= 5;
#undef DIGIT
    return 1;
}

static int nanoseconds(span raw, int64_t *ns) {
    int negative, half;
    uint64_t whole;
    if (raw.size > 4 && raw.size <= 19 && raw.at[raw.size - 4] == '.') { /* as Kineto writes it: 1234.567 */
        uint64_t value = 0;
        unsigned bad = 0;
        for (size_t i = 0; i < raw.size; i++) {
            unsigned d = (unsigned)raw.at[i] - '0';
            if (i == raw.size - 4) continue;
            bad |= d > 9;
            value = value * 10 + d;
        }
        if (!bad) { *ns = (int64_t)value; return 1; }
    }
    if (!scaled(raw, 3, &negative, &whole, &half)) return 0;
    whole += (uint64_t)half;
    if (whole >= (uint64_t)1 << 62) return 0;
    *ns = negative ? -(int64_t)whole : (int64_t)whole;
    return 1;
}

static int64_t integer(span raw) {
    int negative, half;
    uint64_t whole;
    if (raw.size <= 18) {
        uint64_t value = 0;
        unsigned bad = 0;
        for (size_t i = 0; i < raw.size; i++) {
            unsigned d = (unsigned)raw.at[i] - '0';
            bad |= d > 9;
            value = value * 10 + d;
        }
        if (!bad) return (int64_t)value;
    }
    if (!scaled(raw, 0, &negative, &whole, &half)) return ABSENT;
    if (whole < (uint64_t)1 << 63) return negative ? -(int64_t)whole : (int64_t)whole;
    if (negative || whole == (uint64_t)1 << 63) return ABSENT;
    return -(int64_t)(UINT64_MAX - whole) - 1;
}

static double floating(span raw) {
    char text[128];
    number n;
    double value;
    span plain = strip(raw);
    char point = localeconv()->decimal_point[0];
    if (plain.size > 127 || !parse_number(plain, &n)) return NAN;
    memcpy(text, plain.at, plain.size);
    text[plain.size] = 0;
    for (size_t i = 0; i < plain.size; i++)
        if (text[i] == '.') text[i] = point;
    value = strtod(text, NULL);
    return value > DBL_MAX || value < -DBL_MAX ? NAN : value;
}

/* ---- text (lenient.py). Each returns NULL where the text ends within the value: `stop` was reached. ---- */

/* At the quote that closes the string whose opening quote stands before p. */
static const uint8_t *string_end(const uint8_t *p, const uint8_t *stop) {
    while (p < stop) {
#if defined(__SSE2__)
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        unsigned hits = (unsigned)_mm_movemask_epi8(_mm_or_si128(
            _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
        if (!hits) { p += 16; continue; }
        while (!(hits & 1)) { hits >>= 1; p++; }
#else
        while (p < stop && *p != '"' && *p != '\\') p++;
#endif
        if (p >= stop) return NULL;
        if (*p == '"') return p;
        p += 2;
    }
    return NULL;
}

/* Behind the bracket that closes the last of `depth`, or at `upto` and perhaps one byte further (an escape). */
static const uint8_t *close_bytes(const uint8_t *p, const uint8_t *upto, int64_t *depth, int *inside) {
    while (p < upto) {
        uint8_t c = *p++;
        if (*inside) {
            if (c == '\\') p++;
            else if (c == '"') *inside = 0;
        } else if (c == '"') *inside = 1;
        else if ((c | 32) == '{') ++*depth;
        else if ((c | 32) == '}' && --*depth == 0) return p;
    }
    return p;
}

#if defined(__SSE2__)
static uint64_t equal64(const uint8_t *p, uint8_t c, int fold) {
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        if (fold) bytes = _mm_or_si128(bytes, _mm_set1_epi8(32));
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)c))) << (16 * i);
    }
    return mask;
}

static uint64_t prefix_xor(uint64_t x) {
    x ^= x << 1; x ^= x << 2; x ^= x << 4; x ^= x << 8; x ^= x << 16;
    return x ^ (x << 32);
}
#endif

static const uint8_t *close_bracket(const uint8_t *p, const uint8_t *stop) {
    int64_t depth = 1;
    int inside = 0;
#if defined(__SSE2__)
    while (p < stop) {
        uint64_t quotes, strings, opens, closes, few = ~(uint64_t)0;
        size_t left = (size_t)(stop - p);
        if (left < 64) few = ((uint64_t)1 << left) - 1;
        if (equal64(p, '\\', 0) & few) {
            p = close_bytes(p, left < 64 ? stop : p + 64, &depth, &inside);
            if (!depth) return p;
            continue;
        }
        quotes = equal64(p, '"', 0) & few;
        strings = prefix_xor(quotes) ^ (uint64_t)-(int64_t)inside;
        opens = equal64(p, '{', 1) & ~strings & few;
        closes = equal64(p, '}', 1) & ~strings & few;
        while (closes) {
            uint64_t low = closes & (~closes + 1), before = opens & (low - 1);
            for (; before; before &= before - 1) depth++;
            opens &= ~(low - 1);
            if (--depth == 0) {
                size_t n = 0;
                while (low >>= 1) n++;
                return p + n + 1;
            }
            closes &= closes - 1;
        }
        for (; opens; opens &= opens - 1) depth++;
        inside = (int)(strings >> 63);
        p += 64;
    }
#else
    p = close_bytes(p, stop, &depth, &inside);
    if (!depth && p <= stop) return p;
#endif
    return NULL;
}

static const uint8_t *over_space(const uint8_t *p, const uint8_t *stop) {
    while (p < stop && *p <= 32) p++;
    return p < stop ? p : NULL;
}

static const uint8_t STOPS[256] = {
    [0] = 1, [1] = 1, [2] = 1, [3] = 1, [4] = 1, [5] = 1, [6] = 1, [7] = 1, [8] = 1, [9] = 1, [10] = 1, [11] = 1,
    [12] = 1, [13] = 1, [14] = 1, [15] = 1, [16] = 1, [17] = 1, [18] = 1, [19] = 1, [20] = 1, [21] = 1, [22] = 1,
    [23] = 1, [24] = 1, [25] = 1, [26] = 1, [27] = 1, [28] = 1, [29] = 1, [30] = 1, [31] = 1, [32] = 1,
    ['"'] = 1, [','] = 1, [':'] = 1, ['['] = 1, [']'] = 1, ['{'] = 1, ['}'] = 1};

typedef struct { /* walks the members of an object */
    const uint8_t *p, *stop;
    span key, value;
    uint8_t plain[LONGEST_KEY];
} walk_t;

enum { MEMBER, END, DAMAGED, UNFINISHED };

static int hex(uint8_t c) {
    if (is_digit(c)) return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The key without its escapes; none when it is long or has an escape beyond ASCII. */
static span plain_key(walk_t *w, span raw) {
    static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
    span none = {NULL, 0}, plain;
    size_t n = 0;
    if (raw.size > LONGEST_KEY * 6 || !memchr(raw.at, '\\', raw.size)) return raw;
    for (size_t i = 0; i < raw.size; i++) {
        uint8_t c = raw.at[i];
        if (n >= LONGEST_KEY) return none;
        if (c == '\\') {
            const char *known;
            if (++i >= raw.size) return none;
            c = raw.at[i];
            if (c == 'u') {
                if (i + 4 >= raw.size || raw.at[i + 1] != '0' || raw.at[i + 2] != '0' || raw.at[i + 3] < '0' ||
                    raw.at[i + 3] > '7' || hex(raw.at[i + 4]) < 0)
                    return none;
                c = (uint8_t)((raw.at[i + 3] - '0') * 16 + hex(raw.at[i + 4]));
                i += 4;
            } else {
                known = c ? strchr(FROM, c) : NULL;
                if (!known) return none;
                c = (uint8_t)TO[known - FROM];
            }
        }
        w->plain[n++] = c;
    }
    plain.at = w->plain;
    plain.size = n;
    return plain;
}

/* The next member; p then stands behind its value. */
static int next_member(walk_t *w, int first) {
    const uint8_t *p, *q, *stop = w->stop;
    if (!(p = over_space(w->p, stop))) return UNFINISHED;
    if (!first && *p == ',') {
        if (!(p = over_space(p + 1, stop))) return UNFINISHED;
    } else if (!first && *p != '}') {
        w->p = p;
        return DAMAGED;
    }
    w->p = p;
    if (*p == '}') { w->p = p + 1; return END; }
    if (*p != '"') return DAMAGED;
    if (!(q = string_end(p + 1, stop))) return UNFINISHED;
    w->key.at = p + 1;
    w->key.size = (size_t)(q - p - 1);
    p = q + 1;
    if (p < stop && *p == ':') p++;
    else {
        if (!(p = over_space(p, stop))) return UNFINISHED;
        w->p = p;
        if (*p++ != ':') return DAMAGED;
    }
    if (!(p = over_space(p, stop))) return UNFINISHED;
    w->value.at = p;
    if (*p == '"') {
        if (!(q = string_end(p + 1, stop)) || ++q >= stop) return UNFINISHED;
    } else if (*p == '{' || *p == '[') {
        if (!(q = close_bracket(p + 1, stop))) return UNFINISHED;
    } else {
        q = p;
        while (q < stop && !STOPS[*q]) q++;
        if (q >= stop) return UNFINISHED;
        if (q == p) { w->p = p; return DAMAGED; }
    }
    w->value.size = (size_t)(q - p);
    w->p = q;
    return MEMBER;
}

static int is_null(span v) { return v.size == 4 && !memcmp(v.at, "null", 4); }

static int is_text(span v, const char *text, size_t size) { return v.size == size && !memcmp(v.at, text, size); }

/* ---- rows ---- */

static int room_for_row(table_t *t) {
    static const size_t SIZE[BASE] = {8, 8, 4, 1, 4, 4};
    size_t room = t->room ? t->room * 2 : 1024;
    if (t->rows < t->room) return 1;
    for (int c = 0; c < BASE + t->args; c++) {
        size_t each = c < BASE ? SIZE[c] : t->kind[c - BASE] == TEXT ? 4 : 8;
        void *fresh;
        if (c >= BASE && !t->column[c]) continue; /* see argument_column */
        if (room > SIZE_MAX / 8 || !(fresh = realloc(t->column[c], room * each))) return 0;
        t->column[c] = fresh;
    }
    t->room = room;
    return 1;
}

/* An argument's column begins with the first event that has it: what no event has takes no memory. */
static void *argument_column(table_t *t, int c, size_t row) {
    void *at = malloc(t->room * (t->kind[c] == TEXT ? 4 : 8));
    if (!at) return NULL;
    for (size_t i = 0; i < row; i++) {
        if (t->kind[c] == TEXT) ((int32_t *)at)[i] = -1;
        else if (t->kind[c] == INT) ((int64_t *)at)[i] = ABSENT;
        else ((double *)at)[i] = NAN;
    }
    return t->column[BASE + c] = at;
}

static void fill_arguments(scanner *s, table_t *t, span args, size_t row) {
    span found[MAX_KEYS];
    memset(found, 0, sizeof found[0] * (size_t)t->slots);
    if (args.size && args.at[0] == '{') {
        walk_t w;
        int first = 1;
        w.p = args.at + 1;
        w.stop = args.at + args.size;
        /* the closing bracket is the last byte: a value that ends there was damaged, and so is what it would close */
        while (next_member(&w, first) == MEMBER) {
            span key = plain_key(&w, w.key);
            int slot = key.size ? names_find(&t->keys, key.at, key.size) : -1;
            first = 0;
            if (slot >= 0) found[slot] = w.value;
        }
    }
    for (int c = 0; c < t->args; c++) {
        span value = {NULL, 0};
        for (int k = t->from[c]; k < t->to[c] && !value.size; k++)
            if (found[k].size && !is_null(found[k])) value = found[k];
        if (!t->column[BASE + c]) {
            if (!value.size) continue;
            if (!argument_column(t, c, row)) { s->failed = 1; return; }
        }
        if (t->kind[c] == TEXT) ((int32_t *)t->column[BASE + c])[row] = value.size ? intern(s, value) : -1;
        else if (t->kind[c] == INT) ((int64_t *)t->column[BASE + c])[row] = value.size ? integer(value) : ABSENT;
        else ((double *)t->column[BASE + c])[row] = value.size ? floating(value) : NAN;
    }
}

static void ignore(scanner *s, span label) {
    size_t i = s->label_last, from;
    if (is_null(label)) label.size = 0;
    for (size_t tries = 0; tries <= s->labels_count; tries++, i = tries - 1) { /* the last one first, then all */
        if (i >= s->labels_count) continue;
        from = i ? s->label_ends[i - 1] : 0;
        if (s->label_ends[i] - from == label.size && (!label.size || !memcmp(s->labels.at + from, label.at, label.size))) {
            s->label_hits[i]++;
            s->label_last = i;
            return;
        }
    }
    if (s->labels_count >= s->labels_max || label.size > 4096) { s->label_hits[256]++; return; }
    if (!append(&s->labels, label.at, label.size)) { s->failed = 1; return; }
    s->label_ends[s->labels_count] = s->labels.size;
    s->label_hits[s->labels_count] = 1;
    s->label_last = s->labels_count++;
}

static int group_of(const scanner *s, const span *field, int *cat) {
    int slot = field[CAT].size ? names_find(&s->cats, field[CAT].at, field[CAT].size) : -1;
    *cat = slot >= 0 ? s->cat_kind[slot] : s->other_cat;
    if (*cat != s->memory_cat && !is_text(field[PH], "\"X\"", 3)) { slot = -1; *cat = s->other_cat; }
    return slot >= 0 ? s->cat_group[slot] : s->other_group;
}

static int is_flow(span ph) {
    return ph.size == 3 && ph.at[0] == '"' && ph.at[2] == '"' && (ph.at[1] == 's' || ph.at[1] == 't' || ph.at[1] == 'f');
}

static span given(span v) {
    if (is_null(v)) v.size = 0;
    return v;
}

static void take(scanner *s, const span *field, const uint8_t *begin, const uint8_t *end) {
    int cat, group;
    int64_t start, dur = 0;
    size_t row;
    table_t *t;
    s->events++;
    if (is_flow(field[PH])) { s->flows++; return; }
    if (is_text(field[PH], "\"M\"", 3)) {
        if (!append(&s->meta, begin, (size_t)(end - begin)) ||
            !grow((void **)&s->meta_ends, &s->metas_room, s->metas + 1, sizeof *s->meta_ends)) {
            s->failed = 1;
            return;
        }
        s->meta_ends[s->metas++] = s->meta.size;
        return;
    }
    group = group_of(s, field, &cat);
    t = &s->tables[group];
    if (!t->wanted) { ignore(s, field[CAT]); return; }
    if (!field[TS].size || !nanoseconds(field[TS], &start) || !given(field[NAME]).size ||
        (given(field[DUR]).size && !nanoseconds(field[DUR], &dur))) {
        s->skipped += field[NAME].size || field[TS].size; /* JAX ends its list with an empty event */
        return;
    }
    if (!room_for_row(t)) { s->failed = 1; return; }
    row = t->rows;
    ((int64_t *)t->column[0])[row] = start;
    ((int64_t *)t->column[1])[row] = dur;
    ((int32_t *)t->column[2])[row] = intern(s, field[NAME]);
    ((uint8_t *)t->column[3])[row] = (uint8_t)cat;
    ((int32_t *)t->column[4])[row] = intern(s, given(field[PID]));
    ((int32_t *)t->column[5])[row] = intern(s, given(field[TID]));
    if (t->args) fill_arguments(s, t, field[ARGS], row);
    t->rows++;
}

/* ---- events ---- */

static int field_of(span key) {
    switch (key.size) {
    case 2:
        if (!memcmp(key.at, "ph", 2)) return PH;
        return memcmp(key.at, "ts", 2) ? -1 : TS;
    case 3:
        if (!memcmp(key.at, "cat", 3)) return CAT;
        if (!memcmp(key.at, "pid", 3)) return PID;
        if (!memcmp(key.at, "tid", 3)) return TID;
        return memcmp(key.at, "dur", 3) ? -1 : DUR;
    case 4:
        if (!memcmp(key.at, "name", 4)) return NAME;
        return memcmp(key.at, "args", 4) ? -1 : ARGS;
    default:
        return -1;
    }
}

/* Whether nothing of the event is kept, whatever follows. */
static int settled(const scanner *s, const span *field) {
    int cat;
    if (!field[PH].size) return 0;
    if (is_flow(field[PH]) || is_text(field[PH], "\"M\"", 3)) return 1;
    return field[CAT].size && !s->tables[group_of(s, field, &cat)].wanted;
}

/* The event whose bracket stands at `begin`; *end behind it, or at its damage. */
static int one_event(scanner *s, const uint8_t *begin, const uint8_t *stop, const uint8_t **end) {
    span field[FIELDS];
    walk_t w;
    int first = 1, what;
    memset(field, 0, sizeof field);
    w.p = begin + 1;
    w.stop = stop;
    while ((what = next_member(&w, first)) == MEMBER) {
        span key = plain_key(&w, w.key);
        int which = field_of(key);
        first = 0;
        if (which < 0) continue;
        field[which] = w.value;
        if (which <= CAT && settled(s, field)) {
            if (!(w.p = close_bracket(w.p, stop))) return UNFINISHED;
            what = END;
            break;
        }
    }
    *end = w.p;
    if (what == END) take(s, field, begin, w.p);
    return what;
}

/* Behind damage: the bracket of the next event that follows another, or what to keep of the text: "}" or "},". */
static size_t resume(scanner *s, size_t at) {
    int state = 0;
    for (; at < s->size; at++) {
        uint8_t c = s->buf[at];
        if (c <= 32) continue;
        if (c == '}') state = 1;
        else if (c == ',' && state == 1) state = 2;
        else if (c == '{' && state == 2) { s->lost = 0; return at; }
        else state = 0;
    }
    s->lost = 1;
    s->tail = (size_t)state;
    return at;
}

static void keep(scanner *s, size_t from) {
    if (s->lost) memcpy(s->buf, "},", s->tail);
    else {
        s->tail = s->size - from;
        if (s->tail) memmove(s->buf, s->buf + from, s->tail);
    }
    s->size = s->tail;
}

static size_t unfinished(scanner *s, size_t at, int last, int *wait) {
    int whole = s->size - at >= s->longest;
    if (!whole && !last) { *wait = 1; return at; }
    s->skipped += whole;
    if (s->retries > 0) { s->retries--; return resume(s, at + 1); }
    return resume(s, whole ? at + s->longest : s->size);
}

/* All that is whole in the buffer. What is not stays at its front. */
static void scan(scanner *s, int last) {
    size_t at = 0;
    int wait = 0;
    if (s->lost) at = resume(s, 0);
    while (at < s->size && !wait && !s->failed) {
        const uint8_t *p = s->buf + at, *stop, *end = p;
        int what = UNFINISHED;
        if (*p != '{' && *p != '[' && *p != ']') { at++; continue; }
        if (*p == ']') { s->done = 1; s->rest = at; return; }
        stop = s->size - at > s->longest ? p + s->longest : s->buf + s->size;
        if (*p == '{') what = one_event(s, p, stop, &end);
        else if ((end = close_bracket(p + 1, stop))) { what = END; s->skipped++; }
        if (what == END) at = (size_t)(end - s->buf);
        else if (what == DAMAGED) { s->skipped++; at = resume(s, (size_t)(end - s->buf)); }
        else at = unfinished(s, at, last, &wait);
    }
    keep(s, at);
}

/* ---- what scanner.py calls ---- */

API const char *scanner_source(void) { return SOURCE_HASH; }

API void scanner_free(scanner *s) {
    if (!s) return;
    for (int g = 0; g < GROUPS; g++)
        for (int c = 0; c < BASE + MAX_ARGS; c++) free(s->tables[g].column[c]);
    free(s->buf);
    free(s->arena.at);
    free(s->offsets);
    free(s->buckets);
    free(s->meta.at);
    free(s->meta_ends);
    free(s->labels.at);
    free(s);
}

API scanner *scanner_new(uint64_t seed, size_t longest, int retries, size_t text_cap, size_t text_cost, size_t labels) {
    scanner *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->seed = seed;
    s->longest = longest;
    s->retries = retries;
    s->text_cap = text_cap;
    s->text_cost = text_cost;
    s->labels_max = labels < 256 ? labels : 256;
    s->label_last = 256;
    if (!grow((void **)&s->offsets, &s->strings_room, 1, sizeof *s->offsets) ||
        !grow((void **)&s->arena.at, &s->arena.room, 1, 1) || !grow((void **)&s->labels.at, &s->labels.room, 1, 1) ||
        !rehash(s)) {
        scanner_free(s);
        return NULL;
    }
    s->offsets[0] = 0;
    return s;
}

API void scanner_kinds(scanner *s, int other_group, int other_cat, int memory_cat) {
    s->other_group = other_group;
    s->other_cat = other_cat;
    s->memory_cat = memory_cat;
}

API int scanner_category(scanner *s, const uint8_t *raw, size_t size, int group, int cat) {
    int slot = s->cats.count;
    if (slot >= MAX_KEYS || !names_add(&s->cats, raw, size, slot)) return 0;
    s->cat_group[slot] = group;
    s->cat_kind[slot] = cat;
    return 1;
}

API void scanner_want(scanner *s, int group) { s->tables[group].wanted = 1; }

API int scanner_column(scanner *s, int group, int kind) {
    table_t *t = &s->tables[group];
    if (t->args >= MAX_ARGS) return 0;
    t->kind[t->args] = kind;
    t->from[t->args] = t->to[t->args] = t->slots;
    t->args++;
    return 1;
}

API int scanner_key(scanner *s, int group, const uint8_t *key, size_t size) { /* of the column added last */
    table_t *t = &s->tables[group];
    if (!t->args || t->slots >= MAX_KEYS || !names_add(&t->keys, key, size, t->slots)) return 0;
    t->to[t->args - 1] = ++t->slots;
    return 1;
}

/* Scans `size` bytes more; how many of them were looked at (all but behind the list's end), or -1 without memory. */
API int64_t scanner_feed(scanner *s, const uint8_t *data, size_t size, int last) {
    size_t at = 0;
    if (s->done) return 0;
    do {
        size_t more = size - at, need;
        if (more > PORTION && s->tail < PORTION) more = PORTION;
        need = s->tail + more + PAD;
        if (!grow((void **)&s->buf, &s->room, need, 1)) return -1;
        if (more) memcpy(s->buf + s->tail, data + at, more);
        s->size = s->tail + more;
        memset(s->buf + s->size, 0, PAD);
        at += more;
        scan(s, last && at == size);
        if (s->failed) return -1;
    } while (at < size && !s->done);
    return (int64_t)at;
}

API int scanner_done(const scanner *s) { return s->done; }

API const uint8_t *scanner_rest(const scanner *s, size_t *size) {
    *size = s->size - s->rest;
    return s->buf + s->rest;
}

API void scanner_counts(const scanner *s, int64_t *out) {
    out[0] = s->events;
    out[1] = s->flows;
    out[2] = s->skipped;
    out[3] = s->texts_lost;
    out[4] = s->label_hits[256];
}

API size_t scanner_labels(const scanner *s) { return s->labels_count; }

API const uint8_t *scanner_label(const scanner *s, size_t i, size_t *size, int64_t *hits) {
    size_t from = i ? s->label_ends[i - 1] : 0;
    *size = s->label_ends[i] - from;
    *hits = s->label_hits[i];
    return s->labels.at + from;
}

API size_t scanner_strings(const scanner *s, const uint8_t **arena, const size_t **offsets) {
    *arena = s->arena.at;
    *offsets = s->offsets;
    return s->strings;
}

API size_t scanner_metas(const scanner *s, const uint8_t **text, const size_t **ends) {
    *text = s->meta.at;
    *ends = s->meta_ends;
    return s->metas;
}

API size_t scanner_rows(const scanner *s, int group) { return s->tables[group].rows; }

API size_t scanner_bytes(const scanner *s) { /* that rows take, about */
    size_t total = 0;
    for (int g = 0; g < GROUPS; g++) {
        size_t each = 29;
        for (int c = 0; c < s->tables[g].args; c++) each += s->tables[g].column[BASE + c] ? 8 : 0;
        total += s->tables[g].rows * each;
    }
    return total;
}

/* Hands out a column of the group's rows: its memory is the caller's, who frees it with scanner_drop.
   NULL: an argument that none of the events has. */
API void *scanner_release(scanner *s, int group, int column) {
    void *at = s->tables[group].column[column];
    s->tables[group].column[column] = NULL;
    return at;
}

API void scanner_drop(void *at) { free(at); }

/* Forgets rows, whose columns were released, and metadata events, which were copied. */
API void scanner_clear(scanner *s) {
    for (int g = 0; g < GROUPS; g++)
        if (!s->tables[g].column[0]) s->tables[g].rows = s->tables[g].room = 0;
    s->meta.size = s->metas = 0;
}
