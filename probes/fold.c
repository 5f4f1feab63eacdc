/* Equal lines of a log, counted as they pass: the compiled half of `_scan_fold.py`, which tells what is equal and why.

   Both decide alike on every line (tests/probes/test_scan_fold.py). Nothing here reads past the lines that it is given; text that
   is kept is a copy. A key is a keyed hash of a masked line: who writes a log cannot make two lines look equal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
typedef uint8_t u8;
typedef uint64_t u64;
typedef int64_t i64;

enum { LEVELS = 4, WORDS = 4, LOOKED = 4096, HOST = 64, ZONE = 12 };
enum { PIDS = 4, MOMENT = 5, SILENCE = 180, DISTANCE = 400 }; /* programs that are told apart in so many seconds; seconds that part bursts; lines, of those that tell no time */
enum { PAUSES = 2, DAY = 86400, RECORD = 64 }; /* lines that may tell one thing together */
static const i64 PAUSE[PAUSES] = {2, 10}; /* seconds between equal lines: longer ones are counted */
enum { MEMBERS = 64, PLACE = 40 }; /* of a JSON object; bytes of what an XID's line names between its brackets */
enum { ABOUT = 12 }; /* names with a digit in a line that names all it is about */
enum { DIGIT = 1, HEXA = 2, ALNUM = 4, NAME = 8 }; /* what a byte is */

typedef struct { i64 any, fresh, runs, calm, calm_runs, kinds, entries, routine, telling, signs, stored, first, crowd, each, shared, late, later, anew, early, whole, calm_whole; } Limits;

typedef struct { i64 number; i64 size, room; u8 *text; } Kept;
/* apart: begins behind a silence, or with another program; began: with a pause, which `pauses` has counted as well */
typedef struct { u64 bucket[LEVELS]; i64 count, programs, pauses[PAUSES]; Kept first, last; int apart, began[PAUSES]; } Run;
typedef struct {
  i64 any, fresh, level, runs, places, texts, room;
  u64 sign;
  /* over: of the lines that are too many of their kind; pooled: different things are among them, which were counted as lost */
  int named, grave, crowded, over, pooled, apart;
  i64 late, begun, heard, programs;
  int spoke; /* the last line, at ... */
  i64 spoken;
  u64 day;
  i64 pid[PIDS]; /* of the lines within MOMENT of `begun` */
  u64 *text; /* hashes of the different lines that were kept */
  Run *run;
} Entry;
typedef struct { i64 distinct, entry; } Kind;
typedef struct { u64 *key; i64 *value; i64 size, used; } Table;

typedef struct {
  u64 seed[2];
  Limits most;
  u8 **word;
  i64 *word_size;
  i64 words;
  i64 begins[257]; /* of the words with a first letter, which are sorted */
  u8 pairs[256 * 256 / 8]; /* of the first two letters of a word, in either case */
  u8 sort[256]; /* of a byte: DIGIT, HEXA, ALNUM, NAME */
  Table kinds, entries, signs, about;
  Kind *kind;
  Entry *entry;
  i64 kind_count, entry_count, stored, lost, late;
  i64 kept[2]; /* routine lines, telling ones */
  i64 many; /* entries of telling lines */
  i64 ahead[3], beyond[3]; /* of each limit in `room`: entry of the line before; how many were kept behind it */
  i64 *order; /* (entry, run) of each run, once they are asked for */
  i64 ordered;
} Fold;

typedef struct {
  u8 line[LOOKED + 1]; /* see `ordered` */
  u8 text[LOOKED + 1], near[LOOKED + 1], far[LOOKED + 1]; /* as it stands, without long numbers, without any number but a code */
  u8 hidden[LOOKED / 8 + 1]; /* bits of the bytes that are masked as a time or a number */
  i64 texts, nears, fars, when;
  u64 seconds;
  int timed;
} Look;

#ifndef SOURCE_HASH
#define SOURCE_HASH ""
#endif
API const char *fold_source(void) { return SOURCE_HASH; }

/* --- hashing -------------------------------------------------------------------------------- */

static u64 mix(u64 a, u64 b) {
  unsigned __int128 r = (unsigned __int128)a * b;
  return (u64)r ^ (u64)(r >> 64);
}

static u64 hash(const Fold *f, const u8 *p, i64 n, u64 salt) {
  u64 h = f->seed[0] ^ mix(salt ^ 0x9e3779b97f4a7c15ull, f->seed[1] | 1);
  i64 left = n;
  while (left >= 16) {
    u64 a, b;
    memcpy(&a, p, 8);
    memcpy(&b, p + 8, 8);
    h = mix(a ^ f->seed[1], b ^ h);
    p += 16;
    left -= 16;
  }
  u64 tail[2] = {0, 0};
  memcpy(tail, p, (size_t)left);
  h = mix(tail[0] ^ f->seed[1], tail[1] ^ h);
  h = mix(h ^ (u64)n, 0xbf58476d1ce4e5b9ull ^ f->seed[0]);
  return h ? h : 1;
}

static i64 *slot(Table *t, u64 key, int *fresh) { /* NULL without memory */
  if (2 * (t->used + 1) > t->size) {
    i64 size = t->size ? 2 * t->size : 1024;
    u64 *keys = calloc((size_t)size, sizeof *keys);
    i64 *values = calloc((size_t)size, sizeof *values);
    if (!keys || !values) {
      free(keys);
      free(values);
      return NULL;
    }
    for (i64 i = 0; i < t->size; i++)
      if (t->key[i]) {
        i64 at = (i64)(t->key[i] & (u64)(size - 1));
        while (keys[at]) at = (at + 1) & (size - 1);
        keys[at] = t->key[i];
        values[at] = t->value[i];
      }
    free(t->key);
    free(t->value);
    t->key = keys;
    t->value = values;
    t->size = size;
  }
  i64 at = (i64)(key & (u64)(t->size - 1));
  while (t->key[at] && t->key[at] != key) at = (at + 1) & (t->size - 1);
  *fresh = !t->key[at];
  if (*fresh) {
    t->key[at] = key;
    t->used++;
  }
  return &t->value[at];
}

static i64 find(const Table *t, u64 key) { /* -1: not there */
  if (!t->size) return -1;
  i64 at = (i64)(key & (u64)(t->size - 1));
  while (t->key[at] && t->key[at] != key) at = (at + 1) & (t->size - 1);
  return t->key[at] == key ? t->value[at] : -1;
}

/* --- what a line looks like ------------------------------------------------------------------- */

static int digit(int c) { return c >= '0' && c <= '9'; }
static int hexa(int c) { return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
static int alnum(int c) { return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int at(const u8 *p, i64 n, i64 i) { return i >= 0 && i < n ? p[i] : 0; }

static int clock_at(const u8 *p, i64 n, i64 a) { /* 03:00:01 */
  if (a + 8 > n) return 0;
  for (int i = 0; i < 8; i++)
    if (i == 2 || i == 5 ? p[a + i] != ':' : !digit(p[a + i])) return 0;
  int before = at(p, n, a - 1), behind = at(p, n, a + 8);
  return before != ':' && !digit(before) && behind != ':' && !digit(behind);
}

static int date_at(const u8 *p, i64 n, i64 a) { /* 2026-11-21 */
  if (a + 10 > n) return 0;
  int mark = p[a + 4];
  if ((mark != '-' && mark != '/') || p[a + 7] != mark || digit(at(p, n, a + 10))) return 0;
  for (int i = 0; i < 10; i++)
    if (i != 4 && i != 7 && !digit(p[a + i])) return 0;
  return 1;
}

static i64 digits(const u8 *p, i64 n, i64 a) {
  i64 b = a;
  while (b < n && digit(p[b])) b++;
  return b - a;
}

static u64 value_of(const u8 *p, i64 n) {
  u64 v = 0;
  for (i64 i = 0; i < n; i++) v = 10 * v + (u64)(p[i] - '0');
  return v;
}

static int grave(const Fold *f, const u8 *p, i64 n) {
  for (i64 i = 0; i + 1 < n; i++) {
    int pair = p[i] << 8 | p[i + 1];
    if (!(f->pairs[pair >> 3] >> (pair & 7) & 1)) continue;
    int c = p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 32 : p[i];
    for (i64 w = f->begins[c]; w < f->begins[c + 1]; w++) {
      i64 size = f->word_size[w], k = 1;
      if (size > n - i) continue;
      while (k < size) {
        int d = p[i + k];
        if ((d >= 'A' && d <= 'Z' ? d + 32 : d) != f->word[w][k]) break;
        k++;
      }
      if (k == size) return 1;
    }
  }
  return 0;
}

/* Whether the number at `a` is part of the name of a host: at the start of a line, behind its time, or as a journal names it. */
static int of_host(const u8 *p, i64 a, const u8 *hidden) {
  i64 s = a, t;
  while (s > 0 && a - s < HOST && (alnum(p[s - 1]) || p[s - 1] == '-' || p[s - 1] == '_' || p[s - 1] == '.')) s--;
  if (s == a || digit(p[s]) || !alnum(p[s])) return 0;
  if (s == 0) return 1;
  if (p[s - 1] == '"') {
    for (t = s - 8; t >= 0 && t >= s - 16; t--)
      if (!memcmp(p + t, "HOSTNAME", 8)) return 1;
    return 0;
  }
  if (p[s - 1] != ' ') return 0;
  for (t = s - 2; t >= 0 && t > s - ZONE && p[t] != ' ' && !(hidden[t >> 3] >> (t & 7) & 1); t--) continue;
  return t >= 0 && p[t] != ' ' && hidden[t >> 3] >> (t & 7) & 1;
}

static int blank(int c) { return c == ' ' || c == '\t'; }

static int ahead(const u8 *p, const i64 *one, const i64 *other) { /* whether a member comes ahead of another */
  i64 m = one[1] - one[0], n = other[1] - other[0];
  int c = memcmp(p + one[0], p + other[0], (size_t)(m < n ? m : n));
  return c ? c < 0 : m < n;
}

/* Start and end of each member of the JSON object that a line ends in, in the order of their names; how many, 0 where there is no such
   object or it has too many. `begin` is its brace, `end` lies behind the other one. */
static i64 members(const u8 *p, i64 begin, i64 end, i64 (*member)[2]) {
  i64 count = 0, depth = 0, at = begin + 1;
  int quoted = 0;
  for (i64 i = begin; i < end; i++) {
    if (quoted) {
      if (p[i] == '\\') i++;
      else quoted = p[i] != '"';
      continue;
    }
    quoted = p[i] == '"';
    depth += (p[i] == '{' || p[i] == '[') - (p[i] == '}' || p[i] == ']');
    if (depth && (depth > 1 || p[i] != ',')) continue;
    if (count == MEMBERS || (!depth && i + 1 < end)) return 0;
    i64 one[2] = {at, i}, k = count++;
    while (one[0] < one[1] && blank(p[one[0]])) one[0]++;
    while (one[0] < one[1] && blank(p[one[1] - 1])) one[1]--;
    for (; k && ahead(p, one, member[k - 1]); k--) memcpy(member[k], member[k - 1], sizeof one);
    memcpy(member[k], one, sizeof one);
    at = i + 1;
    if (!depth) return count;
  }
  return 0;
}

/* The line with the members of the JSON object that it ends in by their names: journalctl writes those of each record in another order.
   Its size; 0 where it stays as it stands. */
static i64 ordered(const u8 *p, i64 n, u8 *out) {
  i64 member[MEMBERS][2], end = n, size;
  while (end && blank(p[end - 1])) end--;
  const u8 *brace = end && p[end - 1] == '}' ? memchr(p, '{', (size_t)end) : NULL;
  i64 count = brace ? members(p, brace - p, end, member) : 0;
  if (!count) return 0;
  size = brace - p + 1;
  memcpy(out, p, (size_t)size);
  for (i64 i = 0; i < count; i++) {
    i64 own = member[i][1] - member[i][0];
    if (i) out[size++] = ',';
    memcpy(out + size, p + member[i][0], (size_t)own);
    size += own;
  }
  out[size++] = '}';
  return size;
}

static int of_xid(const u8 *p, i64 a) { /* whether the number behind "): " at `a` is a code: Xid (PCI:0000:3b:00): 79 */
  i64 s = a - 3;
  while (s > 0 && a - s < PLACE && p[s] != '(') s--;
  return s >= 4 && !memcmp(p + s - 4, "Xid (", 5);
}

static void look(const u8 *sort, const u8 *p, i64 n, Look *out) {
  u8 *text = out->text, *near = out->near, *far = out->far, *hidden = out->hidden;
  memset(hidden, 0, (size_t)(n / 8 + 1));
  i64 nt = 0, nn = 0, nf = 0, when = -1, a = 0;
  u64 seconds = 0;
  int told = 0;
  text[0] = near[0] = far[0] = 0;
#define HIDE(from, to) for (i64 q = (from); q < (to); q++) hidden[q >> 3] |= (u8)(1 << (q & 7))
#define MASK(mark, to) { text[nt++] = near[nn++] = far[nf++] = (mark); HIDE(a, to); a = (to); continue; }
  while (a < n) {
    if (!(sort[p[a]] & ALNUM)) {
      text[nt++] = near[nn++] = far[nf++] = p[a++];
      continue;
    }
    if (a == 0 && digit(p[0])) { /* 6,3973,227996636,-;text */
      i64 one = digits(p, n, 0), two = at(p, n, one) == ',' ? digits(p, n, one + 1) : 0;
      i64 third = one + two + 2, three = two && at(p, n, third - 1) == ',' ? digits(p, n, third) : 0;
      if (three && one <= 3 && two <= 18 && three <= 18 && at(p, n, third + three) == ',') {
        told = 1;
        seconds = value_of(p + third, three) / 1000000;
        MASK(1, third + three);
      }
    }
    if (digit(p[a])) {
      if (clock_at(p, n, a)) {
        i64 end = a + 8;
        if (when < 0) when = a;
        if ((at(p, n, end) == '.' || at(p, n, end) == ',') && digit(at(p, n, end + 1))) end += 1 + digits(p, n, end + 1);
        MASK(2, end);
      }
      if (date_at(p, n, a)) {
        i64 end = a + 10;
        if (at(p, n, end) == 'T' && clock_at(p, n, end + 1)) end++;
        MASK(3, end);
      }
    }
    i64 b = a;
    int every = DIGIT | HEXA, some = 0;
    for (; b < n && sort[p[b]] & ALNUM; b++) { /* stays only as far as `nt`, `nn` and `nf` go on */
      text[nt + b - a] = near[nn + b - a] = far[nf + b - a] = p[b];
      every &= sort[p[b]];
      some |= sort[p[b]];
    }
    i64 size = b - a;
    int decimal = every & DIGIT, hexes = every & HEXA, before = at(p, n, a - 1), behind = at(p, n, b);
    int cursor = before == '=' && hexes && a >= 3 && p[a - 2] == 'i' && p[a - 3] == ';'; /* of the journal: s=...;i=3e8;b=... */
    if (!(some & DIGIT || cursor)) {
      nt += size;
      nn += size;
      nf += size;
      a = b;
      continue;
    }
    if (decimal) {
      if (size <= 2 && before == ' ' && behind == ' ' && clock_at(p, n, b + 1)) MASK(4, b);
      i64 fraction = behind == '.' ? digits(p, n, b + 1) : 0;
      if (fraction >= 6 && fraction <= 9 && size <= 10) {
        if (!told) seconds = value_of(p + a, size);
        told = 1;
        MASK(5, b + 1 + fraction);
      }
      if (size == 16 && p[a] == '1') {
        if (!told) seconds = value_of(p + a, size) / 1000000;
        told = 1;
        MASK(6, b);
      }
      int named = alnum(at(p, n, a - 2)) || at(p, n, a - 2) == '_' || at(p, n, a - 2) == '-';
      if (before == '[' && behind == ']' && at(p, n, b + 1) == ':' && named) MASK(7, b);
    }
    nt += size;
    int device = (size == 4 || size == 8) && hexes && behind == ':' && hexa(at(p, n, b + 1)) && hexa(at(p, n, b + 2)) && at(p, n, b + 3) == ':';
    int unit = before == '-' && a >= 4 && (!memcmp(p + a - 4, "GPU-", 4) || !memcmp(p + a - 4, "MIG-", 4));
    int code = before == ' ' && a >= 3 && p[a - 2] == ':' && p[a - 3] == ')';
    if (some & DIGIT && !(decimal && code && of_xid(p, a))) far[nf++] = '#';
    else nf += size;
    int pointer = size >= 7 && p[a] == '0' && (p[a + 1] == 'x' || p[a + 1] == 'X');
    int number = cursor || (decimal ? size >= 4 && !code : hexes && size >= 5);
    int joined = before == '-' || before == '_' || before == '.';
    if (pointer || (number && !device && !unit && !(joined && of_host(p, a, hidden)))) {
      near[nn++] = '#';
      HIDE(a, b);
    } else nn += size;
    a = b;
  }
#undef MASK
#undef HIDE
  out->texts = nt;
  out->nears = nn;
  out->fars = nf;
  out->when = when;
  out->seconds = seconds;
  out->timed = told || when >= 0;
}

static u64 sign_of(const Fold *f, const u8 *p, i64 n, const Look *l, int *named) { /* the first names with a digit: what it is about */
  u64 sign = 5;
  int words = 0;
  for (i64 a = 0; a < n && words < WORDS;) {
    if (!(f->sort[p[a]] & NAME)) {
      a++;
      continue;
    }
    i64 b = a;
    int plain = 1, number = 0;
    while (b < n && f->sort[p[b]] & NAME) {
      number |= f->sort[p[b]] & DIGIT;
      plain &= !(l->hidden[b >> 3] >> (b & 7) & 1);
      b++;
    }
    i64 end = b;
    while (end > a && !alnum(p[end - 1]) && p[end - 1] != '_') end--;
    if (plain && number && end > a) {
      sign = hash(f, p + a, end - a, sign);
      words++;
    }
    a = b;
  }
  *named = words > 0;
  return sign;
}

/* Of a line with its kind all names with a digit, apart from long numbers: lines with the same ones are about the same things. 0 when
   they are too many. */
static u64 about_of(const Fold *f, const Look *l, u64 far) {
  const u8 *p = l->near;
  u64 names = hash(f, (const u8 *)&far, sizeof far, 4);
  int count = 0;
  for (i64 a = 0, b; a < l->nears; a = b + 1) {
    int number = 0;
    for (b = a; b < l->nears && (f->sort[p[b]] & NAME || p[b] == '#'); b++) number |= f->sort[p[b]] & DIGIT;
    if (!number || (b - a > 1 && p[a] == '0' && (p[a + 1] == 'x' || p[a + 1] == 'X'))) continue;
    if (++count > ABOUT) return 0;
    names = hash(f, p + a, b - a, names);
  }
  return names;
}

static u64 bucket(const Fold *f, const u8 *p, const Look *l, i64 level) { /* the minute, the hour, the day, all */
  static const i64 behind[] = {5, 2, 0}, seconds[] = {60, 3600, 86400};
  if (level == LEVELS - 1) return 0;
  if (l->when < 0) return l->seconds / (u64)seconds[level];
  i64 low = l->when > 11 ? l->when - 11 : 0;
  return hash(f, p + low, l->when + behind[level] - low, 7 + (u64)level);
}

/* --- folding --------------------------------------------------------------------------------- */

static int keep(Fold *f, Kept *k, const u8 *p, i64 n, i64 number) {
  if (n > k->room) {
    u8 *text = realloc(k->text, (size_t)n);
    if (!text) return 0;
    f->stored += n - k->room;
    k->text = text;
    k->room = n;
  }
  if (n) memcpy(k->text, p, (size_t)n);
  k->size = n;
  k->number = number;
  return 1;
}

static void drop(Fold *f, Kept *k) {
  f->stored -= k->room;
  free(k->text);
  k->text = NULL;
  k->room = 0;
}

static void coarsen(Fold *f, Entry *e, int all) { /* runs that lie in one longer span become one; of those that begin apart only `all` */
  i64 to = 0;
  if (e->level + 1 < LEVELS) e->level++;
  for (i64 i = 1; i < e->runs; i++) {
    Run *into = &e->run[to], *run = &e->run[i];
    if (into->bucket[e->level] == run->bucket[e->level] && (all || !run->apart)) {
      into->count += run->count;
      if (into->programs < run->programs) into->programs = run->programs;
      for (int k = 0; k < PAUSES; k++) into->pauses[k] += run->pauses[k];
      drop(f, &into->last);
      drop(f, &run->first);
      into->last = run->last;
    } else if (++to != i) e->run[to] = *run;
  }
  e->runs = to + 1;
}

static i64 share_of(const Fold *f) { /* of `shared` what falls to one entry of telling lines */
  i64 share = f->most.shared / (f->many ? f->many : 1);
  return share > 1 ? share : 1;
}

static i64 of(const Fold *f, const Entry *e, i64 most) {
  i64 few = e->over ? 1 : f->most.each, share = share_of(f);
  if (e->crowded && most > few) most = few;
  return most < share ? most : share;
}

/* `p` is what `l` looked at, `line` what is kept */
static int fold(Fold *f, Entry *e, const Look *l, int telling, const int *paused, const u8 *p, const u8 *line, i64 n, i64 number) {
  int full = f->stored > f->most.stored;
  i64 most = full ? 1 : of(f, e, telling ? f->most.runs : f->most.calm_runs) + e->late;
  while (e->runs && e->runs >= most && (e->level + 1 < LEVELS || (full && e->runs > 1)) &&
         (e->runs > most || e->apart || e->run[e->runs - 1].bucket[e->level] != bucket(f, p, l, e->level)))
    coarsen(f, e, full);
  Run *last = e->runs ? &e->run[e->runs - 1] : NULL;
  int apart = e->apart && e->runs < most;
  e->apart = 0;
  if (last && !apart && last->bucket[e->level] == bucket(f, p, l, e->level)) {
    last->count++;
    if (last->programs < e->programs) last->programs = e->programs;
    for (int k = 0; k < PAUSES; k++) last->pauses[k] += paused[k];
    return keep(f, &last->last, line, n, number);
  }
  if (e->runs == e->places) {
    Run *grown = realloc(e->run, (size_t)(e->places ? 2 * e->places : 1) * sizeof *grown);
    if (!grown) return 0;
    e->run = grown;
    e->places = e->places ? 2 * e->places : 1;
  }
  Run *run = &e->run[e->runs++];
  memset(run, 0, sizeof *run);
  for (i64 level = 0; level < LEVELS; level++) run->bucket[level] = bucket(f, p, l, level);
  run->count = 1;
  run->programs = e->programs;
  run->apart = apart;
  for (int k = 0; k < PAUSES; k++) run->pauses[k] = run->began[k] = paused[k];
  return keep(f, &run->first, line, n, number) && keep(f, &run->last, line, n, number);
}

static i64 second(const u8 *p, const Look *l) { /* of the day, or on the clock of the machine */
  if (l->when < 0) return (i64)l->seconds;
  i64 s = 0;
  for (int i = 0; i < 8; i += 3) s = 60 * s + 10 * (p[l->when + i] - '0') + (p[l->when + i + 1] - '0');
  return s;
}

/* Whether another program than one just before it is at fault (pid=4242): several at once share what only they together show; or
   whether a silence is over. */
static int anew(Entry *e, const u8 *p, i64 n, const Look *l, i64 number) {
  i64 a = 0, pid, now = second(p, l), heard = l->timed ? now : number;
  int silent = heard < e->heard || heard > e->heard + (l->timed ? SILENCE : DISTANCE);
  e->heard = heard;
  while (a + 4 < n && (memcmp(p + a, "pid=", 4) || !digit(p[a + 4]))) a++;
  i64 size = a + 4 < n ? digits(p, n, a + 4) : 0;
  if (!size || size > 10) return silent;
  pid = (i64)value_of(p + a + 4, size);
  if (!e->programs || now < e->begun || now > e->begun + MOMENT) {
    e->begun = now;
    e->programs = 0;
  }
  for (i64 i = 0; i < e->programs; i++)
    if (e->pid[i] == pid) return silent;
  if (e->programs < PIDS) e->pid[e->programs++] = pid;
  return silent || e->programs > 1;
}

/* Which pauses lie between the equal line before and this one. A clock of the day begins anew at midnight; the text ahead of it is the date. */
static void pause(const Fold *f, Entry *e, const u8 *p, const Look *l, int *paused) {
  i64 now = second(p, l), apart = now > e->spoken ? now - e->spoken : e->spoken - now;
  u64 day = l->when < 0 ? 0 : bucket(f, p, l, 2);
  if (day != e->day) apart = apart > DAY / 2 ? DAY - apart : DAY;
  for (int k = 0; k < PAUSES; k++) paused[k] = e->spoke && apart > PAUSE[k];
  e->spoke = 1;
  e->spoken = now;
  e->day = day;
}

/* Whether one more line is kept of at most so many, and on to the end of what the last of them is a part of. Lines that tell one thing
   together were first seen in their order: where one follows that was seen ahead of the line before, the next thing begins. */
static int room(Fold *f, int limit, i64 used, i64 most, i64 entry) {
  if (used >= most && f->beyond[limit] < RECORD)
    f->beyond[limit] = most > 0 && entry >= f->ahead[limit] ? f->beyond[limit] + 1 : RECORD;
  f->ahead[limit] = entry;
  return used < most || f->beyond[limit] < RECORD;
}

static Entry *new_entry(Fold *f, int telling) {
  if ((f->entry_count & (f->entry_count - 1)) == 0) {
    i64 room = f->entry_count ? 2 * f->entry_count : 1;
    Entry *grown = realloc(f->entry, (size_t)room * sizeof *grown);
    if (!grown) return NULL;
    f->entry = grown;
  }
  Entry *e = &f->entry[f->entry_count++];
  memset(e, 0, sizeof *e);
  f->many += telling;
  return e;
}

/* The entry of lines of a kind that name the same things; -1 where a line names too many, or there are too many entries; -3: no memory */
static i64 of_these(Fold *f, const Look *l, u64 far, int telling, const Entry *like) {
  u64 about = about_of(f, l, far);
  i64 found = about ? find(&f->about, about) : -1;
  int fresh;
  if (!about || found >= 0 || f->about.used >= f->most.telling) return found;
  i64 *place = slot(&f->about, about, &fresh);
  Entry *e = place ? new_entry(f, telling) : NULL;
  if (!e) return -3;
  e->sign = like->sign;
  e->named = like->named;
  e->grave = like->grave;
  e->crowded = e->over = 1;
  return *place = f->entry_count - 1;
}

/* -1: kept; -2: kept, and one of the first of its kind; -3: no memory; else the number of the entry that it is folded into */
static i64 take(Fold *f, const u8 *line, i64 length, i64 number) {
  Look l;
  int fresh, named, is_grave, first = 0, alone = 0;
  u64 sign;
  i64 n = ordered(line, length, l.line);
  const u8 *p = n ? l.line : line;
  n = n ? n : length;
  look(f->sort, p, n, &l);
  u64 near = hash(f, l.near, l.nears, 2);
  i64 found = find(&f->entries, near);
  if (found >= 0) {
    sign = f->entry[found].sign;
    named = f->entry[found].named;
    is_grave = f->entry[found].grave;
  } else {
    sign = sign_of(f, p, n, &l, &named);
    is_grave = grave(f, p, n);
  }
  int full = f->signs.used >= f->most.signs, telling = is_grave || (named && (full || find(&f->signs, sign) >= 0));
  if (found < 0) {
    if (is_grave && named && !full && !slot(&f->signs, sign, &fresh)) return -3;
    u64 own = hash(f, l.far, l.fars, 3), far = own;
    if (f->kind_count >= f->most.kinds && find(&f->kinds, far) < 0) far = 1; /* all that are too many */
    i64 *place = slot(&f->kinds, far, &fresh);
    if (!place) return -3;
    if (fresh) {
      if ((f->kind_count & (f->kind_count - 1)) == 0) {
        Kind *grown = realloc(f->kind, (size_t)(f->kind_count ? 2 * f->kind_count : 1) * sizeof *grown);
        if (!grown) return -3;
        f->kind = grown;
      }
      *place = f->kind_count++;
      f->kind[*place] = (Kind){0, -1};
    }
    Kind *k = &f->kind[*place];
    if (k->distinct < (telling ? f->most.telling : f->most.routine) && f->entry_count < f->most.entries) {
      i64 *e = slot(&f->entries, near, &fresh);
      if (!e) return -3;
      *e = found = f->entry_count;
      if (!new_entry(f, telling)) return -3;
      f->entry[found].sign = sign;
      f->entry[found].named = named;
      f->entry[found].grave = is_grave;
      f->entry[found].crowded = k->distinct >= f->most.crowd;
      first = k->distinct++ < f->most.first;
    } else {
      found = of_these(f, &l, own, telling, &(Entry){.sign = sign, .named = named, .grave = is_grave});
      if (found == -3) return -3;
      alone = found < 0;
      if (alone && k->entry < 0) {
        k->entry = f->entry_count;
        if (!new_entry(f, telling)) return -3;
      }
      if (alone) found = k->entry;
    }
  }
  Entry *e = &f->entry[found];
  int begins = telling && anew(e, p, n, &l, number), paused[PAUSES];
  pause(f, e, p, &l, paused);
  int early = room(f, telling, f->kept[telling], telling ? f->most.whole : f->most.calm_whole, found) && e->any < f->most.early;
  int any = early || e->any < of(f, e, telling ? f->most.any : f->most.calm), told = 0;
  if (any || (telling && e->fresh < of(f, e, f->most.fresh))) {
    u64 text = hash(f, l.text, l.texts, 1);
    for (i64 i = 0; i < e->texts && !told; i++) told = e->text[i] == text;
    if (any || !told) {
      *(any ? &e->any : &e->fresh) += 1;
      if (!told) {
        if (e->texts == e->room) {
          i64 room = e->room ? 2 * e->room : 2;
          u64 *grown = realloc(e->text, (size_t)room * sizeof *grown);
          if (!grown) return -3;
          e->text = grown;
          e->room = room;
        }
        e->text[e->texts++] = text;
      }
      f->kept[telling]++;
      return first ? -2 : -1;
    }
  }
  i64 share = share_of(f) / 2, late = f->most.late;
  if (begins && !e->over && (e->late < (share < late ? share : late) ||
                             (share >= late && e->late >= late && e->late < f->most.later && room(f, 2, f->late, f->most.anew, found)))) {
    e->late++;
    f->late++;
    e->apart = 1; /* the line ahead of it stays the last of its run */
    return -1;
  }
  if (alone && telling) {
    f->lost++;
    e->pooled = 1;
  }
  if (!fold(f, e, &l, telling, paused, p, line, length, number)) return -3;
  return found;
}

/* --- what Python calls ------------------------------------------------------------------------ */

API void fold_free(Fold *f) {
  if (!f) return;
  for (i64 i = 0; i < f->entry_count; i++) {
    for (i64 r = 0; r < f->entry[i].runs; r++) {
      free(f->entry[i].run[r].first.text);
      free(f->entry[i].run[r].last.text);
    }
    free(f->entry[i].run);
    free(f->entry[i].text);
  }
  for (i64 i = 0; f->word && i < f->words; i++) free(f->word[i]);
  Table *tables[] = {&f->kinds, &f->entries, &f->signs, &f->about};
  for (int i = 0; i < 4; i++) {
    free(tables[i]->key);
    free(tables[i]->value);
  }
  free(f->word);
  free(f->word_size);
  free(f->kind);
  free(f->entry);
  free(f->order);
  free(f);
}

/* `words`: two letters and more in lower case, sorted, each with a zero byte behind it */
API Fold *fold_new(u64 seed, u64 other, const Limits *most, const u8 *words, i64 count) {
  Fold *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  f->seed[0] = seed;
  f->seed[1] = other;
  f->most = *most;
  for (int c = 0; c < 256; c++)
    f->sort[c] = (u8)((digit(c) ? DIGIT : 0) | (hexa(c) ? HEXA : 0) | (alnum(c) ? ALNUM | NAME : 0) | (c && strchr("_.:/-", c) ? NAME : 0));
  f->word = calloc((size_t)count + 1, sizeof *f->word);
  f->word_size = calloc((size_t)count + 1, sizeof *f->word_size);
  if (!f->word || !f->word_size) {
    fold_free(f);
    return NULL;
  }
  for (; f->words < count; f->words++) {
    i64 size = (i64)strlen((const char *)words);
    f->word[f->words] = malloc((size_t)size + 1);
    if (!f->word[f->words]) {
      fold_free(f);
      return NULL;
    }
    memcpy(f->word[f->words], words, (size_t)size + 1);
    f->word_size[f->words] = size;
    for (int both = 0; both < 4; both++) {
      int pair = (words[0] - (both & 1 ? 32 : 0)) << 8 | (words[1] - (both & 2 ? 32 : 0));
      f->pairs[pair >> 3] |= (u8)(1 << (pair & 7));
    }
    words += size + 1;
  }
  i64 w = 0;
  for (int c = 0; c <= 256; c++) {
    while (w < count && f->word[w][0] < c) w++;
    f->begins[c] = w;
  }
  return f;
}

static i64 begin_of(const u8 *data, i64 start, i64 inside) { /* of the line that `inside` lies in, by eight bytes that hold no newline */
  const u64 ones = 0x0101010101010101ull;
  i64 head = inside;
  for (u64 v; head - start >= 8; head -= 8) {
    memcpy(&v, data + head - 8, 8);
    v ^= ones * '\n';
    if ((v - ones) & ~v & ones << 7) break;
  }
  while (head > start && data[head - 1] != '\n') head--;
  return head;
}

/* Lines that hold an end of a match: their places as pairs; how many. `ends` ascend; an end lies behind a match's last byte. */
API i64 fold_spans(const u8 *data, i64 start, i64 end, const i64 *ends, i64 count, i64 *spans) {
  i64 found = 0, done = start;
  for (i64 i = 0; i < count; i++) {
    i64 last = ends[i];
    if (last < done) continue;
    i64 inside = last > start ? last - 1 : start, head = begin_of(data, start, inside);
    const u8 *tail = inside < end ? memchr(data + inside, '\n', (size_t)(end - inside)) : NULL;
    i64 stop = tail ? tail - data : end;
    spans[2 * found] = head;
    spans[2 * found + 1] = stop;
    found++;
    done = stop + 1;
  }
  return found;
}

static i64 newlines(const u8 *p, i64 n) { /* in lanes of bytes, which compilers make vectors of */
  enum { LANES = 64, ROUNDS = 255 };
  i64 total = 0;
  while (n >= LANES) {
    u8 lane[LANES] = {0};
    i64 rounds = n / LANES < ROUNDS ? n / LANES : ROUNDS;
    for (i64 r = 0; r < rounds; r++, p += LANES)
      for (int k = 0; k < LANES; k++) lane[k] += p[k] == '\n';
    for (int k = 0; k < LANES; k++) total += lane[k];
    n -= rounds * LANES;
  }
  for (i64 i = 0; i < n; i++) total += p[i] == '\n';
  return total;
}

/* Of each line of `spans` what becomes of it (see `take`), and its number; `number` is that of the line at `start`. The number of the line at
   `end`, or -1 without memory. */
API i64 fold_lines(Fold *f, const u8 *data, i64 start, i64 end, const i64 *spans, i64 count, i64 number, i64 *codes,
                   i64 *numbers) {
  i64 at = start;
  for (i64 i = 0; i < count; i++) {
    i64 head = spans[2 * i], size = spans[2 * i + 1] - head;
    number += newlines(data + at, head - at);
    at = head;
    numbers[i] = number;
    codes[i] = size > LOOKED ? -1 : take(f, data + head, size, number);
    if (codes[i] == -3) return -1;
  }
  return number + newlines(data + at, end - at);
}

/* Of each line of `spans` its number; `number` is that of the line at `start`. */
API void fold_numbers(const u8 *data, i64 start, const i64 *spans, i64 count, i64 number, i64 *numbers) {
  i64 at = start;
  for (i64 i = 0; i < count; i++) {
    number += newlines(data + at, spans[2 * i] - at);
    at = spans[2 * i];
    numbers[i] = number;
  }
}

API i64 fold_lost(const Fold *f) { return f->lost; }

API i64 fold_runs(Fold *f) {
  i64 count = 0;
  for (i64 i = 0; i < f->entry_count; i++) count += f->entry[i].runs;
  free(f->order);
  f->order = calloc((size_t)count + 1, 2 * sizeof *f->order);
  f->ordered = 0;
  for (i64 i = 0; f->order && i < f->entry_count; i++)
    for (i64 r = 0; r < f->entry[i].runs; r++) {
      f->order[2 * f->ordered] = i;
      f->order[2 * f->ordered + 1] = r;
      f->ordered++;
    }
  return f->ordered;
}

/* entry, count, number and size of the first, number and size of the last, whether of different things, how many pauses of each length
   within; their texts */
API void fold_run(const Fold *f, i64 i, i64 *numbers, const u8 **texts) {
  const Run *r = &f->entry[f->order[2 * i]].run[f->order[2 * i + 1]];
  numbers[0] = f->order[2 * i];
  numbers[1] = r->count;
  numbers[2] = r->first.number;
  numbers[3] = r->first.size;
  numbers[4] = r->last.number;
  numbers[5] = r->last.size;
  numbers[6] = f->entry[f->order[2 * i]].pooled;
  numbers[7] = r->programs;
  for (int k = 0; k < PAUSES; k++) numbers[8 + k] = r->pauses[k] - r->began[k];
  texts[0] = r->first.text;
  texts[1] = r->last.text;
}
