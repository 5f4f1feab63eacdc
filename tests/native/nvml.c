/* A machine's GPUs behind the public NVML ABI, for tests: our own, written from the API that nvidia-ml-py declares.
 *
 * The scenario is FAKE_NVML_SCENARIO, else the word in the file `scenario` beside the library. Each nvmlInit adds one
 * to the file `tick` beside the library (or FAKE_NVML_TICK is the tick): what climbs, climbs with it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;
enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, DENIED = 4, NOT_FOUND = 6, TOO_SMALL = 7, NOT_LOADED = 9, NO_FUNCTION = 13,
       INFOROM = 14, LOST = 15, MISMATCH = 18, UNKNOWN = 999 };

typedef struct { int index; int mig; int gi, ci; u64 memory; const char *profile; } Device;
typedef struct { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { u32 field, scope; int64_t time, latency; u32 type, ret; union { double d; u32 u; u64 l; int i; } v; } Field;

static char scenario[64];
static long tick;
static Device devices[16];
static Device instances[2] = { { 0, 0, 1, 0, 40ULL << 30, "3g.40gb" }, { 0, 1, 9, 0, 10ULL << 30, "1g.10gb" } };

static int is(const char *name) { return strcmp(scenario, name) == 0; }
static int mig(const Device *d) { return (is("mig") || is("mig_user")) && d->index == 0; }
static int blackwell(void) { return is("nvlink5"); }
static int old(void) { return is("unsupported"); }
/* GPUs without work, but for 3, whose memory is held; GPU 1 too hot; GPU 4 on half of its PCIe lanes. */
static int idle(int index) { return is("left_behind") && index >= 0; }
static int hot(int index) { return (is("throttled") || is("hot")) && index == 1; }
/* The watched over a window: GPU 2 at its power limit; GPU 1 "busy" without work on its SMs; GPU 3 shared with a stranger; GPU 0
   with a clock that falls every other tenth of a second. */
static int capped(int index) { return is("capped") && index == 2; }
static int hollow(int index) { return is("busy_nothing") && index == 1; }
static int shared(int index) { return is("neighbour") && index == 3; }
static u64 now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (u64)t.tv_sec * 1000000000ULL + t.tv_nsec;
}
static int low(int index) { return is("swinging") && index == 0 && now_ns(CLOCK_MONOTONIC) / 100000000ULL % 2; }
/* GPU 2 is full for an eighth of a second and empty for the next, as one that waits for its data. */
static int empty(int index) { return is("sawtooth") && index == 2 && now_ns(CLOCK_MONOTONIC) / 125000000ULL % 2; }
static int ampere(void) { return is("no_gpm"); }
static int count(void) { return old() ? 1 : is("no_devices") ? 0 : 8; }

static void wait_for_ever(void) { for (;;) pause(); }

static void beside(const char *name, char *path, size_t size) {
    Dl_info info;
    path[0] = 0;
    if (dladdr((void *)wait_for_ever, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        if (slash) snprintf(path, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, name);
    }
}

static void choose(void) {
    char path[4096];
    const char *said = getenv("FAKE_NVML_SCENARIO");
    snprintf(scenario, sizeof scenario, "%s", said ? said : "healthy8");
    if (!said) {
        beside("scenario", path, sizeof path);
        FILE *file = fopen(path, "r");
        if (file) {
            if (fscanf(file, "%63s", scenario) != 1) strcpy(scenario, "healthy8");
            fclose(file);
        }
    }
    tick = 1;
    if ((said = getenv("FAKE_NVML_TICK"))) {
        tick = atol(said);
    } else {
        beside("tick", path, sizeof path);
        FILE *file = fopen(path, "r");
        if (file) {
            if (fscanf(file, "%ld", &tick) == 1) tick++;
            fclose(file);
        }
        if ((file = fopen(path, "w"))) { fprintf(file, "%ld\n", tick); fclose(file); }
    }
    for (int i = 0; i < 16; i++) devices[i] = (Device){ i, -1, 0, 0, 0, 0 };
}

int nvmlInitWithFlags(u32 flags) {
    (void)flags;
    choose();
    if (is("hung_init")) wait_for_ever();
    if (is("driver_not_loaded")) return NOT_LOADED;
    if (is("library_mismatch")) return MISMATCH;
    if (is("no_permission")) return DENIED;
    if (is("init_failed")) return UNKNOWN;
    if (is("crash")) abort();
    return OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int result) { (void)result; return "an error"; }

static int text(char *out, u32 size, const char *value) {
    if (strlen(value) + 1 > size) return TOO_SMALL;
    strcpy(out, value);
    return OK;
}
int nvmlSystemGetDriverVersion(char *out, u32 size) { return text(out, size, old() ? "470.256.02" : "575.57.08"); }
int nvmlSystemGetNVMLVersion(char *out, u32 size) { return text(out, size, old() ? "11.470.256.02" : "12.575.57.08"); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = old() ? 11040 : 12090; return OK; }
int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }
int nvmlDeviceGetCount_v2(u32 *out) { *out = count(); return OK; }

/* Every call about a device goes through here: which of them fail or hang is the scenario's business. */
static int gate(const Device *d, const char *call, int live) {
    if (!d) return INVALID;
    if (is("hung_call") && d->index == 3 && strcmp(call, "nvmlDeviceGetMemoryInfo_v2") == 0) wait_for_ever();
    if (is("hung_all") && live) wait_for_ever();
    if (is("slow") && live) usleep(2000);
    if (is("lost") && d->index == 5 && live) return LOST;
    if (is("no_firmware") && d->index == 2 && live) return UNKNOWN;
    return OK;
}
#define LIVE(d) do { int bad = gate(d, __func__, 1); if (bad) return bad; } while (0)
#define STATIC(d) do { int bad = gate(d, __func__, 0); if (bad) return bad; } while (0)
#define MODERN(d) do { LIVE(d); if (old()) return UNSUPPORTED; } while (0)
#define NEW(d) do { LIVE(d); if (old()) return NO_FUNCTION; } while (0)
#define WHOLE(d) do { if ((d)->mig >= 0) return UNSUPPORTED; } while (0)

int nvmlDeviceGetHandleByIndex_v2(u32 index, Device **out) {
    if ((int)index >= count()) return INVALID;
    if ((is("lost_handle") || is("lost_handles")) && (index == 5 || (is("lost_handles") && index == 6))) return LOST;
    *out = &devices[index];
    return OK;
}

/* --- identity --- */
static const int buses[8] = { 0x1a, 0x3b, 0x4c, 0x5d, 0x9a, 0xba, 0xca, 0xda };
int nvmlDeviceGetPciInfo_v3(Device *d, Pci *out) {
    STATIC(d);
    memset(out, 0, sizeof *out);
    out->bus = buses[d->index];
    out->id = old() ? 0x13f210de : blackwell() ? 0x290110de : 0x233010de;
    snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return OK;
}
int nvmlDeviceGetUUID(Device *d, char *out, u32 size) {
    char value[96];
    STATIC(d);
    snprintf(value, sizeof value, "%s-5e1f0000-1111-2222-3333-%06d%06d", d->mig >= 0 ? "MIG" : "GPU", d->mig + 1, d->index);
    return text(out, size, value);
}
int nvmlDeviceGetName(Device *d, char *out, u32 size) {
    char value[96];
    STATIC(d);
    snprintf(value, sizeof value, "%s%s%s", old() ? "Tesla M60" : ampere() ? "NVIDIA A100-SXM4-80GB" : blackwell() ? "NVIDIA B200" : "NVIDIA H100 80GB HBM3",
             d->mig >= 0 ? " MIG " : "", d->mig >= 0 ? d->profile : "");
    return text(out, size, value);
}
int nvmlDeviceGetMinorNumber(Device *d, u32 *out) { STATIC(d); *out = d->index; return OK; }
int nvmlDeviceGetArchitecture(Device *d, u32 *out) { STATIC(d); *out = old() ? 3 : ampere() ? 7 : blackwell() ? 10 : 9; return OK; }
int nvmlDeviceGetSerial(Device *d, char *out, u32 size) {
    char value[30];
    STATIC(d);
    snprintf(value, sizeof value, "16502200%05d", d->index);
    return old() ? UNSUPPORTED : text(out, size, value);
}
int nvmlDeviceGetBrand(Device *d, u32 *out) { STATIC(d); *out = old() ? 2 : 14; return OK; }
int nvmlDeviceGetCudaComputeCapability(Device *d, int *a, int *b) {
    STATIC(d);
    *a = old() ? 5 : blackwell() ? 10 : 9;
    *b = old() ? 2 : 0;
    return OK;
}
int nvmlDeviceGetBoardPartNumber(Device *d, char *out, u32 size) { MODERN(d); return text(out, size, "692-2G520-0200-000"); }
int nvmlDeviceGetBoardId(Device *d, u32 *out) { STATIC(d); *out = buses[d->index] << 8; return OK; }
int nvmlDeviceGetVbiosVersion(Device *d, char *out, u32 size) { STATIC(d); return text(out, size, "96.00.89.00.01"); }
int nvmlDeviceGetInforomImageVersion(Device *d, char *out, u32 size) { MODERN(d); return text(out, size, "G520.0200.00.05"); }
int nvmlDeviceGetInforomVersion(Device *d, u32 object, char *out, u32 size) {
    MODERN(d);
    return object == 1 ? text(out, size, "7.16") : object == 0 ? text(out, size, "2.1") : UNSUPPORTED;
}
int nvmlDeviceValidateInforom(Device *d) { MODERN(d); return is("inforom") && d->index == 1 ? INFOROM : OK; }
int nvmlDeviceGetGspFirmwareVersion(Device *d, char *out) { MODERN(d); strcpy(out, "575.57.08"); return OK; }
int nvmlDeviceGetGspFirmwareMode(Device *d, u32 *on, u32 *preset) { MODERN(d); *on = *preset = 1; return OK; }
int nvmlDeviceGetNumaNodeId(Device *d, int *out) { (void)out; NEW(d); return UNSUPPORTED; }
int nvmlDeviceGetModuleId(Device *d, u32 *out) { MODERN(d); *out = d->index + 1; return OK; }
int nvmlDeviceQueryDrainState(Pci *pci, u32 *out) { (void)pci; if (old()) return UNSUPPORTED; *out = 0; return OK; }

/* --- clocks, temperature, power --- */
int nvmlDeviceGetPerformanceState(Device *d, u32 *out) { LIVE(d); WHOLE(d); *out = old() ? 8 : 0; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(Device *d, u64 *out) {
    MODERN(d);
    *out = 0;
    if (hot(d->index)) *out = 0x48;
    if (idle(d->index)) *out = 0x1;
    if (is("throttled") && d->index == 6) *out = 0x88;
    if (capped(d->index)) *out = 0x4;
    return OK;
}
int nvmlDeviceGetSupportedClocksEventReasons(Device *d, u64 *out) { MODERN(d); *out = 0x1ff; return OK; }
static int slowed(const Device *d) { return hot(d->index) || (is("throttled") && d->index == 6); }
int nvmlDeviceGetClockInfo(Device *d, u32 type, u32 *out) {
    LIVE(d);
    *out = type == 2 ? 2619 : type == 3 ? 1545 : slowed(d) || idle(d->index) ? 345 : low(d->index) ? 900 : capped(d->index) ? 1410 : 1755;
    return type > 3 ? INVALID : OK;
}
int nvmlDeviceGetMaxClockInfo(Device *d, u32 type, u32 *out) {
    LIVE(d);
    *out = type == 2 ? 2619 : type == 3 ? 1545 : 1980;
    return type > 3 ? INVALID : OK;
}
int nvmlDeviceGetApplicationsClock(Device *d, u32 type, u32 *out) { MODERN(d); *out = type == 2 ? 2619 : 1980; return OK; }
int nvmlDeviceGetDefaultApplicationsClock(Device *d, u32 type, u32 *out) { return nvmlDeviceGetApplicationsClock(d, type, out); }
int nvmlDeviceGetTemperature(Device *d, u32 sensor, u32 *out) {
    (void)sensor;
    LIVE(d);
    *out = hot(d->index) ? 91 : idle(d->index) ? 31 : 58;
    return OK;
}
int nvmlDeviceGetTemperatureThreshold(Device *d, u32 which, u32 *out) {
    static const u32 values[] = { 92, 89, 95, 87 };
    MODERN(d);
    if (which > 3) return UNSUPPORTED;
    *out = values[which];
    return OK;
}
int nvmlDeviceGetMarginTemperature(Device *d, int *out) { /* version, margin */
    NEW(d);
    out[1] = hot(d->index) ? -4 : idle(d->index) ? 56 : 29;
    return OK;
}
int nvmlDeviceGetPowerUsage(Device *d, u32 *out) {
    MODERN(d);
    *out = capped(d->index) ? 699500 : hollow(d->index) ? 131000 : hot(d->index) ? 212000 : idle(d->index) ? 71500 : is("all_ones") && d->index == 2 ? 0xffffffffu : 521250;
    return OK;
}
int nvmlDeviceGetEnforcedPowerLimit(Device *d, u32 *out) { MODERN(d); *out = blackwell() ? 1000000 : 700000; return OK; }
int nvmlDeviceGetPowerManagementLimit(Device *d, u32 *out) { return nvmlDeviceGetEnforcedPowerLimit(d, out); }
int nvmlDeviceGetPowerManagementDefaultLimit(Device *d, u32 *out) { return nvmlDeviceGetEnforcedPowerLimit(d, out); }
int nvmlDeviceGetPowerManagementLimitConstraints(Device *d, u32 *low, u32 *high) {
    *low = 200000;
    return nvmlDeviceGetEnforcedPowerLimit(d, high);
}
int nvmlDeviceGetTotalEnergyConsumption(Device *d, u64 *out) { MODERN(d); *out = 123456789012ULL + 1000000ULL * tick; return OK; }
int nvmlDeviceGetFanSpeed(Device *d, u32 *out) { LIVE(d); *out = 30; return old() ? OK : UNSUPPORTED; }
int nvmlDeviceGetUtilizationRates(Device *d, u32 *out) {
    LIVE(d);
    WHOLE(d);
    if (mig(d)) return UNSUPPORTED;
    out[0] = idle(d->index) || empty(d->index) ? 0 : hollow(d->index) ? 100 : 87;
    out[1] = idle(d->index) ? 0 : 41;
    return OK;
}
static int engine(Device *d, u32 *use, u32 *period) { LIVE(d); *use = 0; *period = 167000; return OK; }
int nvmlDeviceGetEncoderUtilization(Device *d, u32 *a, u32 *b) { return engine(d, a, b); }
int nvmlDeviceGetDecoderUtilization(Device *d, u32 *a, u32 *b) { return engine(d, a, b); }
int nvmlDeviceGetJpgUtilization(Device *d, u32 *a, u32 *b) { MODERN(d); return engine(d, a, b); }
int nvmlDeviceGetOfaUtilization(Device *d, u32 *a, u32 *b) { MODERN(d); return engine(d, a, b); }
int nvmlDeviceGetViolationStatus(Device *d, u32 policy, u64 *out) {
    MODERN(d);
    if (policy > 5) return INVALID;
    out[0] = 1795244748056860ULL;
    out[1] = policy == 1 && hot(d->index) ? 7500000000ULL * tick : 0;
    return OK;
}

/* --- memory and its health --- */
static u64 total(const Device *d) { return d->mig >= 0 ? d->memory : old() ? 8ULL << 30 : blackwell() ? 180ULL << 30 : 80ULL << 30; }
int nvmlDeviceGetMemoryInfo_v2(Device *d, void *out) {
    struct { u32 version; u64 total, reserved, free, used; } *m = out;
    NEW(d);
    m->total = total(d);
    m->reserved = 640ULL << 20;
    m->used = idle(d->index) && d->index != 3 ? 0 : m->total / 2;
    m->free = m->total - m->used - m->reserved;
    return m->version == 0x02000028 ? OK : INVALID;
}
int nvmlDeviceGetMemoryInfo(Device *d, u64 *out) {
    LIVE(d);
    out[0] = total(d);
    out[2] = 3ULL << 20;
    out[1] = out[0] - out[2];
    return OK;
}
int nvmlDeviceGetBAR1MemoryInfo(Device *d, u64 *out) {
    LIVE(d);
    out[0] = old() ? 256ULL << 20 : 128ULL << 30;
    out[2] = 1ULL << 20;
    out[1] = out[0] - out[2];
    return OK;
}
int nvmlDeviceGetEccMode(Device *d, u32 *now, u32 *then) { MODERN(d); *now = *then = 1; return OK; }
static u64 errors(const Device *d, u32 type, u32 window, int dram) {
    if (is("ecc_climbing") && d->index == 2) return type ? (dram && !window ? 2 * tick : dram ? 2 * tick + 1 : 0) : 1000 * tick;
    return 0;
}
int nvmlDeviceGetTotalEccErrors(Device *d, u32 type, u32 window, u64 *out) {
    MODERN(d);
    WHOLE(d);
    *out = errors(d, type, window, 1);
    return OK;
}
int nvmlDeviceGetMemoryErrorCounter(Device *d, u32 type, u32 window, u32 place, u64 *out) {
    MODERN(d);
    if (place != 2 && place != 7) return UNSUPPORTED;
    *out = errors(d, type, window, place == 2);
    return OK;
}
int nvmlDeviceGetSramEccErrorStatus(Device *d, void *out) {
    struct { u32 version; u64 counts[11]; u32 exceeded; } *s = out;
    NEW(d);
    if (s->version != 0x1000068) return INVALID;
    memset(s->counts, 0, sizeof s->counts);
    s->exceeded = is("sram") && d->index == 4;
    if (s->exceeded) { s->counts[1] = 5; s->counts[6] = 5; }
    return OK;
}
int nvmlDeviceGetRemappedRows(Device *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    MODERN(d);
    *corrected = 0;
    *uncorrected = is("ecc_climbing") && d->index == 2 ? 1 : 0;
    *pending = *uncorrected;
    *failed = 0;
    return OK;
}
int nvmlDeviceGetRowRemapperHistogram(Device *d, u32 *out) {
    static const u32 values[] = { 2560, 0, 0, 0, 0 };
    MODERN(d);
    memcpy(out, values, sizeof values);
    return OK;
}
int nvmlDeviceGetRepairStatus(Device *d, u32 *out) { NEW(d); out[1] = out[2] = 0; return OK; }
int nvmlDeviceGetUnrepairableMemoryFlag_v1(Device *d, u32 *out) { NEW(d); out[1] = 0; return OK; }
int nvmlDeviceGetRetiredPages(Device *d, u32 cause, u32 *many, u64 *out) {
    (void)out;
    LIVE(d);
    if (!old()) return UNSUPPORTED;
    if (cause == 1) {
        if (*many < 1) { *many = 1; return TOO_SMALL; }
        out[0] = 0x1f3a000;
    }
    *many = cause == 1;
    return OK;
}
int nvmlDeviceGetRetiredPagesPendingStatus(Device *d, u32 *out) { LIVE(d); *out = 0; return old() ? OK : UNSUPPORTED; }

/* --- PCIe --- */
int nvmlDeviceGetCurrPcieLinkGeneration(Device *d, u32 *out) { LIVE(d); *out = old() ? 3 : 5; return OK; }
int nvmlDeviceGetMaxPcieLinkGeneration(Device *d, u32 *out) { LIVE(d); *out = old() ? 3 : 5; return OK; }
int nvmlDeviceGetGpuMaxPcieLinkGeneration(Device *d, u32 *out) { MODERN(d); *out = 5; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(Device *d, u32 *out) { LIVE(d); *out = is("narrow") && d->index == 4 ? 8 : 16; return OK; }
int nvmlDeviceGetMaxPcieLinkWidth(Device *d, u32 *out) { LIVE(d); *out = 16; return OK; }
int nvmlDeviceGetPcieReplayCounter(Device *d, u32 *out) { LIVE(d); *out = is("narrow") && d->index == 4 ? 412 : 0; return OK; }
int nvmlDeviceGetPcieThroughput(Device *d, u32 which, u32 *out) {
    MODERN(d);
    usleep(20000); /* NVML measures for 20 ms */
    *out = which ? 2500000 : 1200000;
    return OK;
}

/* --- the driver's ring buffers: 10 values, 20 ms apart --- */
int nvmlDeviceGetSamples(Device *d, u32 type, u64 since, u32 *kind, u32 *many, void *out) {
    struct { u64 time; union { double d; u32 u; u64 l; } v; } *s = out;
    u32 value = 0;
    MODERN(d);
    if (is("restricted")) return DENIED;
    if (type == 0) nvmlDeviceGetPowerUsage(d, &value);
    else if (type == 1) value = idle(d->index) ? 0 : hollow(d->index) ? 100 : 87;
    else if (type == 5 || type == 6) nvmlDeviceGetClockInfo(d, type == 5 ? 1 : 2, &value);
    else return UNSUPPORTED;
    *kind = 1;
    u64 last = now_ns(CLOCK_REALTIME) / 1000;
    if (last <= since) return NOT_FOUND;
    if (!s) { *many = 10; return OK; }
    *many = 10;
    for (int i = 0; i < 10; i++) { s[i].time = last - (9 - i) * 20000; s[i].v.l = 0; s[i].v.u = value; }
    return OK;
}

/* --- modes --- */
int nvmlDeviceGetPersistenceMode(Device *d, u32 *out) { LIVE(d); *out = 1; return OK; }
int nvmlDeviceGetComputeMode(Device *d, u32 *out) { LIVE(d); *out = 0; return OK; }
int nvmlDeviceGetAccountingMode(Device *d, u32 *out) { LIVE(d); *out = is("accounting"); return OK; }
int nvmlDeviceGetAccountingBufferSize(Device *d, u32 *out) { LIVE(d); *out = 4000; return OK; }
int nvmlDeviceGetAccountingPids(Device *d, u32 *many, u32 *out) { LIVE(d); *many = 1; out[0] = 4200 + d->index; return OK; }
int nvmlDeviceGetAccountingStats(Device *d, u32 pid, void *out) {
    struct { u32 gpu, memory; u64 most, time, start; u32 running; u32 reserved[5]; } *s = out;
    (void)pid;
    LIVE(d);
    s->gpu = 80;
    s->memory = 40;
    s->most = 60ULL << 30;
    s->time = 0;
    s->start = 1795244000000000ULL;
    s->running = 1;
    return OK;
}
int nvmlDeviceGetAddressingMode(Device *d, u32 *out) { NEW(d); out[1] = 1; return OK; }
int nvmlDeviceGetVirtualizationMode(Device *d, u64 *out) { LIVE(d); *out = 0; return OK; }
int nvmlDeviceGetC2cModeInfoV(Device *d, u32 *out) { (void)out; NEW(d); return UNSUPPORTED; }
int nvmlDeviceGetDisplayActive(Device *d, u32 *out) { LIVE(d); *out = 0; return OK; }
int nvmlDeviceGetDisplayMode(Device *d, u32 *out) { LIVE(d); *out = 0; return OK; }

/* --- processes --- */
typedef struct { u32 pid; u64 memory; u32 gi, ci; } Process;
static int processes(Device *d, u32 *many, Process *out, int are) {
    LIVE(d);
    if (is("mig_user") && d->index == 0 && d->mig < 0) return DENIED; /* of the whole GPU only the administrator is told */
    if (d->mig >= 0 && d->gi != 1) are = 0;
    if (!are || (idle(d->index) && d->index != 3)) { *many = 0; return OK; }
    u32 there = shared(d->index) ? 2 : 1;
    if (*many < there || !out) { *many = there; return TOO_SMALL; }
    *many = there;
    if (there == 2) out[1] = (Process){ 7777, 8ULL << 30, ~0u, ~0u };
    *out = (Process){ 4200 + d->index, is("hidden_memory") ? ~0ULL : total(d) / 2 - (1ULL << 30), ~0u, ~0u };
    if (mig(d)) { out->gi = 1; out->ci = 0; out->memory = 20ULL << 30; }
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, u32 *many, Process *out) { return processes(d, many, out, !old()); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *d, u32 *many, Process *out) { return processes(d, many, out, 0); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device *d, u32 *many, Process *out) { return processes(d, many, out, 0); }
int nvmlDeviceGetProcessUtilization(Device *d, void *out, u32 *many, u64 since) {
    struct { u32 pid; u64 time; u32 sm, memory, encoder, decoder; } *s = out;
    (void)since;
    MODERN(d);
    if (is("restricted")) return DENIED;
    if (mig(d)) return UNSUPPORTED;
    if (idle(d->index) && d->index != 3) return NOT_FOUND;
    if (shared(d->index)) { /* two processes, half a second ago; nothing newer than what was seen */
        u64 then = now_ns(CLOCK_REALTIME) / 1000 - 20000;
        if (since >= then) return NOT_FOUND;
        if (!s) { *many = 2; return TOO_SMALL; }
        *many = 2;
        for (int i = 0; i < 2; i++) { s[i].pid = i ? 7777 : 4200 + d->index; s[i].time = then; s[i].sm = i ? 40 : 55; s[i].memory = 20; s[i].encoder = s[i].decoder = 0; }
        return OK;
    }
    if (!s) { *many = 2; return TOO_SMALL; }
    *many = 2;
    for (int i = 0; i < 2; i++) { s[i].pid = 4200 + d->index; s[i].time = 1000 + i; s[i].sm = idle(d->index) ? 0 : 80 + 5 * i; s[i].memory = idle(d->index) ? 0 : 40; s[i].encoder = s[i].decoder = 0; }
    return OK;
}

/* --- NVLink and the fabric --- */
static int links(const Device *d) { return old() || (mig(d)) ? 0 : 18; }
#define LINK(d, n) do { LIVE(d); if (!links(d)) return UNSUPPORTED; if ((int)(n) >= links(d)) return INVALID; } while (0)
int nvmlDeviceGetNvLinkState(Device *d, u32 link, u32 *out) {
    LINK(d, link);
    *out = !((is("link_down") && d->index == 1 && link == 9) || is("no_bridge"));
    return OK;
}
int nvmlDeviceGetNvLinkVersion(Device *d, u32 link, u32 *out) { LINK(d, link); *out = blackwell() ? 7 : 6; return OK; }
int nvmlDeviceGetNvLinkCapability(Device *d, u32 link, u32 which, u32 *out) { LINK(d, link); *out = which == 0 || which == 5; return OK; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *d, u32 link, Pci *out) {
    LINK(d, link);
    memset(out, 0, sizeof *out);
    out->bus = 5 + link % 4;
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return OK;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device *d, u32 link, u32 *out) { LINK(d, link); *out = 2; return OK; }
int nvmlDeviceGetNvLinkErrorCounter(Device *d, u32 link, u32 counter, u64 *out) {
    LINK(d, link);
    if (blackwell()) return UNSUPPORTED;
    *out = is("link_errors") && d->index == 0 && link == 2 && counter == 0 ? 3 * tick : 0;
    return OK;
}
int nvmlDeviceGetGpuFabricInfoV(Device *d, void *out) {
    struct { u32 version; unsigned char cluster[16]; u32 status, clique, state, mask; unsigned char summary; } *f = out;
    NEW(d);
    if (f->version != 0x3000028) return 25;
    memset(f->cluster, 0, sizeof f->cluster);
    f->status = 0;
    f->clique = 0;
    f->state = is("no_fabric") ? 1 : 3;
    f->mask = is("no_fabric") ? 0 : 0x2 | 0x8 | 0x20 | 0x80 | 0x100; /* nothing wrong: each flag "false" */
    f->summary = is("no_fabric") ? 0 : 1;
    return OK;
}
int nvmlDeviceGetGpuFabricInfo(Device *d, void *out) { (void)out; LIVE(d); return UNSUPPORTED; }

/* --- field values --- */
static int field(const Device *d, Field *f) {
    u32 id = f->field, scope = f->scope;
    f->type = 3;
    f->v.l = 0;
    if (old()) return UNSUPPORTED;
    switch (id) {
    case 82: f->type = 1; f->v.u = 66; return OK;                                    /* MEMORY_TEMP */
    case 91: f->type = 1; f->v.u = links(d); return OK;                              /* NVLINK_LINK_COUNT */
    case 142: case 144: case 145: return OK;
    case 143: f->v.l = is("ecc_climbing") && d->index == 2; return OK;
    case 74: case 76: case 269: case 271: return OK;                                 /* event reasons, ns */
    case 270: f->v.l = hot(d->index) ? 7500000000ULL * tick : 0; return OK;
    case 94: case 95: case 169: return OK;
    case 173: case 174: case 175: case 176: case 177: case 178: case 179: case 180: case 181: case 182: return OK;
    case 138: case 139: /* NVLINK_THROUGHPUT_DATA_TX, RX, KiB: 2 GiB/s out, 1 GiB/s in, of all links */
        if (scope != ~0u || !links(d)) return UNSUPPORTED;
        f->v.l = now_ns(CLOCK_MONOTONIC) / 1000 * (id == 138 ? 2 : 1) * (1 << 20) / 1000000;
        return OK;
    case 185: case 186:
        if (scope > 1) return UNSUPPORTED;
        f->type = 1;
        f->v.u = scope ? 700000 : capped(d->index) ? 699800 : hollow(d->index) ? 130500 : 522000;
        return scope && !blackwell() ? UNSUPPORTED : OK;
    case 193: f->type = 5; f->v.i = -8; return OK;
    case 194: f->type = 5; f->v.i = -2; return OK;
    case 196: f->type = 5; f->v.i = 0; return OK;
    case 226: case 227: f->type = 1; return blackwell() ? UNSUPPORTED : OK;
    case 230: f->type = 1; f->v.u = is("reset_wanted") && d->index == 7 ? 1 : 0; return OK;
    }
    if ((int)scope >= links(d)) return INVALID;
    if (id == 164) { f->type = 1; f->v.u = blackwell() ? 53125 : 26562; return OK; } /* NVLINK_GET_SPEED, MB/s */
    if (id >= 161 && id <= 163) {
        f->v.l = is("link_errors") && d->index == 0 && scope == 2 && id == 161 ? 3 * tick : 0;
        return blackwell() ? UNSUPPORTED : OK;
    }
    if (!blackwell()) return UNSUPPORTED;
    int sick = d->index == 4 && scope == 7;
    switch (id) {
    case 206: case 207: case 208: case 209: case 210: case 211: case 212: case 213: case 214: return OK;
    case 219: f->v.l = sick ? 41 : 0; return OK;
    case 220: f->v.l = sick ? 5 << 8 | 11 : 15 << 8 | 255; return OK;                /* mantissa and exponent of a BER */
    case 221: return OK;
    case 222: f->v.l = 15 << 8 | 255; return OK;
    }
    return UNSUPPORTED;
}
int nvmlDeviceGetFieldValues(Device *d, int many, Field *fields) {
    LIVE(d);
    for (int i = 0; i < many; i++) {
        fields[i].time = 1795244748056860LL;
        fields[i].ret = field(d, &fields[i]);
    }
    return OK;
}

/* --- MIG --- */
int nvmlDeviceGetMigMode(Device *d, u32 *now, u32 *then) {
    STATIC(d);
    if (old()) return UNSUPPORTED;
    *now = *then = mig(d);
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *d, u32 *out) { LIVE(d); *out = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, u32 index, Device **out) {
    LIVE(d);
    if (index != 0 && index != 2) return NOT_FOUND; /* there are gaps */
    *out = &instances[index / 2];
    return OK;
}
int nvmlDeviceGetGpuInstanceId(Device *d, u32 *out) { LIVE(d); *out = d->gi; return OK; }
int nvmlDeviceGetComputeInstanceId(Device *d, u32 *out) { LIVE(d); *out = d->ci; return OK; }
int nvmlDeviceGetAttributes_v2(Device *d, void *out) {
    struct { u32 sm, copy, decoders, encoders, jpeg, ofa, slices, compute; u64 memory; } *a = out;
    LIVE(d);
    memset(a, 0, sizeof *a);
    a->sm = d->gi == 1 ? 60 : 16;
    a->slices = a->compute = d->gi == 1 ? 3 : 1;
    a->memory = d->memory >> 20;
    return OK;
}

/* --- GPM --- */
typedef struct { u32 id, ret; double value; const char *names[3]; } Metric;
int nvmlGpmQueryDeviceSupport(Device *d, u32 *out) { LIVE(d); out[1] = !is("gpm_off"); return OK; }
int nvmlGpmSampleAlloc(void **out) { *out = calloc(1, 64); return OK; }
int nvmlGpmSampleFree(void *sample) { free(sample); return OK; }
int nvmlGpmSampleGet(Device *d, int *sample) {
    LIVE(d);
    if (is("restricted")) return DENIED;
    if (mig(d)) return UNSUPPORTED;
    if (is("hung_gpm") && d->index == 3) wait_for_ever();
    *sample = d->index + 1;
    return OK;
}
int nvmlGpmMigSampleGet(Device *d, u32 instance, int *sample) { LIVE(d); *sample = 100 + instance; return OK; }
int nvmlGpmMetricsGet(void *out) {
    struct { u32 version, many; int *first, *last; Metric metrics[477]; } *m = out;
    static const double values[] = { 0, 91.5, 88.25, 41, 0, 62.125, 0, 0, 0, 0, 35.5, 0, 7.75, 1.5 };
    if (m->version != 1 || !m->first || !m->last || *m->first != *m->last) return INVALID;
    for (u32 i = 0; i < m->many; i++) {
        u32 id = m->metrics[i].id;
        m->metrics[i].ret = id <= 13 || id == 20 || id == 21 || id == 60 || id == 61 ? OK : UNSUPPORTED;
        m->metrics[i].value = hollow(*m->first - 1) ? (id == 1 ? 99.5 : id <= 13 ? 3.5 : 8) : idle(*m->first - 1) && id <= 13 ? 0 : id <= 13 ? values[id] : id < 30 ? 1024 : 20480;
    }
    return OK;
}
