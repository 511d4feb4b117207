// SPDX-License-Identifier: Apache-2.0

// Random NVMe commands through the passthrough of the Linux driver: every opcode, every field,
// every reserved bit.
//
//   guest_passthru /dev/nvme0 /dev/nvme0nX SEED COMMANDS PROTECTED_NSID NAMESPACE...
//
// The first block device is the protected namespace, whose data the caller compares afterwards. The
// other block devices receive the I/O commands, and all but the third of them Format NVM.
//
// Each command must end with a status that the specification defines for it, and never with a
// time-out. The status must be Invalid Command Opcode if and only if the device's Commands
// Supported and Effects log does not list the opcode.
//
// Commands that would end the run instead of testing the device are left out or undone at once:
// - Asynchronous Event Requests stay in the controller by definition. The driver rejects flags.
// - The controller is reset after a deletion of the driver's queues, after shadow doorbells, and in
//   one of 16 other cases.
// - A device writes as many bytes as a command says, wherever its pointers lead. So the driver maps
//   at least as much. Data for the device can be shorter or missing.
// - Features that delay interrupts, or stop the controller without Keep Alive, are set back to 0
//   after each Set Features.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MDTS (1u << 20)
#define MAX_DATA (256u << 10)  // the driver takes 128 segments
#define TIMEOUT_MS 60000  // of wall-clock: a simulator answers

struct passthru {
  uint8_t opcode, flags;
  uint16_t reserved1;
  uint32_t nsid, cdw2, cdw3;
  uint64_t metadata, addr;
  uint32_t metadata_len, data_len, cdw[6], timeout_ms, result;
};

#define ADMIN_CMD _IOWR('N', 0x41, struct passthru)
#define IO_CMD _IOWR('N', 0x43, struct passthru)
#define RESET _IO('N', 0x44)
#define NAMESPACE_ID _IO('N', 0x40)

enum {
  DELETE_SQ, CREATE_SQ, GET_LOG, DELETE_CQ = 4, CREATE_CQ, IDENTIFY, ABORT = 8, SET_FEATURES, GET_FEATURES, AER = 0x0C,
  NAMESPACES = 0x0D, ATTACH = 0x15, DOORBELL_BUFFER = 0x7C, FORMAT = 0x80, SANITIZE = 0x84
};
enum { FLUSH, WRITE, READ, WRITE_UNCORRECTABLE = 4, COMPARE, WRITE_ZEROES = 8, DSM, VERIFY = 0x0C, SCAN = 0xC0, FILTER = 0xC8 };

static uint64_t state;
static uint8_t *data;  // stays where it is: queues and doorbell buffers that a command makes of it are still ours afterwards
static uint32_t supported[2][256];
static uint32_t protected_nsid;

static uint64_t draw(void) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static uint32_t below(uint32_t n) { return (uint32_t)(draw() % n); }

// Nothing, a little, one bit, all bits: fields are rarely wrong in all places at once.
static uint32_t word(void) {
  switch (below(4)) {
    case 0: return 0;
    case 1: return below(17);
    case 2: return 1u << below(32);
    default: return (uint32_t)draw();
  }
}

static uint32_t one_of(const uint8_t *list, uint32_t count) { return list[below(count)]; }

static const char *show(const struct passthru *c, int admin) {
  static char text[200];
  snprintf(text, sizeof text, "%s %02x nsid %x cdw2 %x %x, cdw10 %x %x %x %x %x %x, %u bytes", admin ? "admin" : "io", c->opcode,
           c->nsid, c->cdw2, c->cdw3, c->cdw[0], c->cdw[1], c->cdw[2], c->cdw[3], c->cdw[4], c->cdw[5], c->data_len);
  return text;
}

static int submit(int fd, int admin, struct passthru *c) { return ioctl(fd, admin ? ADMIN_CMD : IO_CMD, c); }

static void fail(const char *what, const struct passthru *c, int admin, int status) {
  printf("%s: status %x, errno %d: %s\n", what, status, status < 0 ? errno : 0, c ? show(c, admin) : "");
  exit(1);
}

static int log_page(int fd, uint8_t page, void *to, uint32_t bytes) {
  struct passthru c = {.opcode = GET_LOG, .nsid = ~0u, .addr = (uintptr_t)to, .data_len = bytes, .timeout_ms = TIMEOUT_MS};
  c.cdw[0] = page | (bytes / 4 - 1) << 16;
  return submit(fd, 1, &c);
}

static void set_feature(int fd, uint32_t feature, uint32_t value) {
  struct passthru c = {.opcode = SET_FEATURES, .timeout_ms = TIMEOUT_MS};
  c.cdw[0] = feature;
  c.cdw[1] = value;
  submit(fd, 1, &c);  // one that the controller doesn't have needs no undoing
}

// Bytes that a command moves to the host; 4096 if its data have one page at most.
static uint64_t to_host(const struct passthru *c, int admin) {
  if (!admin) return c->opcode == READ ? 512ull * ((c->cdw[2] & 0xFFFF) + 1) : 4096;
  if (c->opcode == GET_LOG) return 4ull * (((uint64_t)(c->cdw[1] & 0xFFFF) << 16 | c->cdw[0] >> 16) + 1);
  return 4096;
}

// Whether the device would move more than there is memory for, and not refuse it.
static int too_long(const struct passthru *c, int admin) {
  return !(c->opcode & 1) && to_host(c, admin) > MAX_DATA && to_host(c, admin) <= MDTS;
}

// Draws the length of the data, and the data.
static void attach_data(struct passthru *c, int admin) {
  uint32_t length;
  if (c->opcode & 1) {  // from the host
    static const uint32_t some[] = {0, 4, 512, 4096, 8192, 65536};
    length = below(4) ? some[below(6)] : 4 * below(MAX_DATA / 4 / 16);
  } else {
    uint64_t need = to_host(c, admin);
    length = need > MAX_DATA ? MAX_DATA : (uint32_t)need;
    if (need <= 4096 && below(8) == 0) length = 0;  // page 0 belongs to nobody
    else if (length < MAX_DATA && below(4) == 0) length += 4 * below((MAX_DATA - length) / 64 + 1);
  }
  if (!length) return;
  c->data_len = length;
  c->addr = (uintptr_t)data;
  for (uint32_t i = 0; i < (length < 4096 ? length : 4096); i += 8) {
    uint64_t value = draw();
    memcpy(data + i, &value, 8);
  }
  if (!admin && c->opcode == DSM && below(4)) {
    for (int i = 0; i < 256; i++) {  // ranges that exist
      uint32_t range[4] = {(uint32_t)draw(), below(16), below(1000), 0};
      memcpy(data + 16 * i, range, 16);
    }
  }
}

static void draw_admin(struct passthru *c, uint32_t others, const uint32_t *nsids) {
  static const uint8_t known[] = {DELETE_SQ, CREATE_SQ,    GET_LOG,      DELETE_CQ,       CREATE_CQ, IDENTIFY,
                                  ABORT,     SET_FEATURES, GET_FEATURES, DOORBELL_BUFFER, FORMAT,    IDENTIFY, GET_LOG};
  do c->opcode = below(4) ? one_of(known, sizeof known) : (uint8_t)draw();
  while (c->opcode == AER);
  switch (below(4)) {
    case 0: c->nsid = word(); break;
    case 1: c->nsid = ~0u; break;
    default: c->nsid = below(8); break;
  }
  switch (c->opcode) {
    case GET_LOG:
      c->cdw[0] = (c->cdw[0] & ~0xFFu) | below(below(4) ? 24 : 256);
      if (below(2)) c->cdw[1] &= ~0xFFFFu;
      break;
    case IDENTIFY: c->cdw[0] = (c->cdw[0] & ~0xFFu) | below(below(4) ? 32 : 256); break;
    case SET_FEATURES:
    case GET_FEATURES: c->cdw[0] = (c->cdw[0] & ~0xFFu) | below(below(4) ? 32 : 256); break;
    case FORMAT:
      // The first of the others is small, which keeps it short.
      if (c->nsid == protected_nsid || c->nsid == ~0u || below(4)) c->nsid = nsids[0];
      if (others > 2 && c->nsid == nsids[2]) c->nsid = nsids[1];
      break;
    // Were they supported, they would take the protected namespace away.
    case NAMESPACES:
    case ATTACH:
    case SANITIZE:
      if (supported[0][c->opcode] & 1) c->opcode = IDENTIFY;
      break;
  }
}

static void draw_io(struct passthru *c, uint32_t nsid, uint64_t blocks) {
  static const uint8_t known[] = {FLUSH, WRITE, READ, WRITE, READ, WRITE_UNCORRECTABLE, COMPARE, WRITE_ZEROES, DSM, VERIFY, SCAN, FILTER};
  c->opcode = below(5) ? one_of(known, sizeof known) : (uint8_t)draw();
  c->nsid = nsid;  // the driver refuses another one
  if (c->opcode == DSM) return;
  uint64_t lba = (uint64_t)c->cdw[1] << 32 | c->cdw[0];
  uint32_t count = below(8) ? below(64) : below(65536);
  if (below(8)) lba = draw() % blocks;
  if (below(16) == 0) lba = blocks - below(4);
  c->cdw[0] = (uint32_t)lba;
  c->cdw[1] = (uint32_t)(lba >> 32);
  c->cdw[2] = (c->cdw[2] & ~0xFFFFu) | count;
  if (c->opcode == SCAN || c->opcode == FILTER) {
    c->cdw[2] &= ~0xFC00u;  // short, or, where a high bit is set, beyond the namespace
    if (below(4)) c->cdw[2] &= 0xFFFFFF, c->cdw[3] &= c->opcode == SCAN ? 3 : 0x3FF;  // where the bitmap goes, too
  }
}

// Whether a status, without DNR and More, is one that the command may end with.
static int allowed(const struct passthru *c, int admin, int status) {
  switch (status) {
    case 0x00: case 0x02: case 0x04: case 0x0B: case 0x0C: case 0x13: return 1;
    // SGL descriptors, which the driver makes of long data.
    case 0x0D: case 0x0E: case 0x0F: case 0x10: case 0x11: case 0x16: return 1;
  }
  if (!admin) {
    int lba = c->opcode == WRITE || c->opcode == READ || c->opcode == WRITE_UNCORRECTABLE || c->opcode == COMPARE ||
              c->opcode == WRITE_ZEROES || c->opcode == DSM || c->opcode == VERIFY || c->opcode == SCAN || c->opcode == FILTER;
    switch (status) {
      case 0x80: return lba;                                              // LBA Out of Range
      case 0x180: return lba;                                             // Conflicting Attributes
      case 0x181: return lba;                                             // Invalid Protection Information
      case 0x183: return c->opcode == DSM || c->opcode == WRITE_ZEROES || c->opcode == VERIFY;  // Command Size Limit Exceeded
      case 0x285: return c->opcode == COMPARE;                            // Compare Failure
    }
    return 0;
  }
  switch (status) {
    case 0x100: return c->opcode == CREATE_SQ;                            // Completion Queue Invalid
    case 0x101: return c->opcode == CREATE_SQ || c->opcode == CREATE_CQ || c->opcode == DELETE_SQ || c->opcode == DELETE_CQ;
    case 0x102: return c->opcode == CREATE_SQ || c->opcode == CREATE_CQ;  // Invalid Queue Size
    case 0x103: return c->opcode == ABORT;                                // Abort Command Limit Exceeded
    case 0x108: return c->opcode == CREATE_CQ;                            // Invalid Interrupt Vector
    case 0x109: return c->opcode == GET_LOG;                              // Invalid Log Page
    case 0x10A: return c->opcode == FORMAT;                               // Invalid Format
    case 0x10C: return c->opcode == DELETE_CQ;                            // Invalid Queue Deletion
    case 0x10D: case 0x10E: case 0x10F: case 0x114: return c->opcode == SET_FEATURES;
  }
  return 0;
}

// Features that are the driver's own: kernels of late 2026 let nobody else set them.
static int kept_by_driver(const struct passthru *c) {
  static const uint8_t features[] = {0x07, 0x0C, 0x0D, 0x0F, 0x16};
  return c->opcode == SET_FEATURES && memchr(features, c->cdw[0] & 0xFF, sizeof features) != NULL;
}

static void reset(int ctrl) {
  // A reset that is under way already, of the driver's own, is one as well.
  if (ioctl(ctrl, RESET) < 0 && errno != EBUSY) fail("reset", NULL, 1, -1);
  struct passthru c = {.opcode = IDENTIFY, .addr = (uintptr_t)data, .data_len = 4096, .timeout_ms = TIMEOUT_MS, .cdw = {1}};
  int status = submit(ctrl, 1, &c);
  if (status) fail("after a reset", &c, 1, status);
}

int main(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: %s CONTROLLER PROTECTED SEED COMMANDS NAMESPACE...\n", argv[0]);
    return 2;
  }
  uint32_t others = (uint32_t)argc - 5, nsids[16] = {0}, counts[2][3] = {{0}}, resets = 0, kept = 0;
  int ctrl = open(argv[1], O_RDWR), fds[16], shield = open(argv[2], O_RDONLY);
  uint64_t seed = strtoull(argv[3], NULL, 0), blocks[16], commands = strtoull(argv[4], NULL, 0);
  data = mmap(NULL, 2 * MAX_DATA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (ctrl < 0 || shield < 0 || data == MAP_FAILED || others > 16) return perror(argv[1]), 2;
  protected_nsid = (uint32_t)ioctl(shield, NAMESPACE_ID);
  for (uint32_t i = 0; i < others; i++) {
    fds[i] = open(argv[5 + i], O_RDWR);
    if (fds[i] < 0) return perror(argv[5 + i]), 2;
    nsids[i] = (uint32_t)ioctl(fds[i], NAMESPACE_ID);
    blocks[i] = (uint64_t)lseek(fds[i], 0, SEEK_END) / 512;
  }
  if (log_page(ctrl, 5, data, 4096)) fail("effects log", NULL, 1, -1);
  memcpy(supported, data, sizeof supported);
  printf("seed %llu, %llu commands\n", (unsigned long long)seed, (unsigned long long)commands);
  state = seed;
  for (uint64_t n = 0; n < commands; n++) {
    uint32_t target = below(others);
    int admin = below(2) == 0;
    struct passthru c;
    do {
      c = (struct passthru){.cdw2 = word(), .cdw3 = word(), .timeout_ms = TIMEOUT_MS};
      for (int i = 0; i < 6; i++) c.cdw[i] = word();
      if (admin) draw_admin(&c, others, nsids);
      else draw_io(&c, nsids[target], blocks[target]);
    } while (too_long(&c, admin));
    attach_data(&c, admin);
    int keeps_alive = admin && c.opcode == SET_FEATURES && (c.cdw[0] & 0xFF) == 0x0F;
    if (keeps_alive) c.cdw[1] |= 1u << 24;  // hours
    int status = submit(admin ? ctrl : fds[target], admin, &c);
    if (status < 0 && errno == EACCES && admin && kept_by_driver(&c)) {
      kept++;
      continue;
    }
    if (status < 0) fail("refused by the driver", &c, admin, status);
    int code = status & 0x7FF, known = supported[!admin][c.opcode] & 1;
    if (known ? !allowed(&c, admin, code) : code != 0x01) fail("unexpected", &c, admin, code);
    counts[admin][code == 0 ? 0 : known ? 1 : 2]++;
    uint32_t qid = c.cdw[0] & 0xFFFF;
    int queue = c.opcode == DELETE_SQ || c.opcode == DELETE_CQ;
    if (admin && code == 0 && ((queue && qid) || c.opcode == DOORBELL_BUFFER || below(16) == 0)) {
      reset(ctrl);
      resets++;
    } else if (admin && c.opcode == SET_FEATURES) {
      set_feature(ctrl, 0x08, 0);
      set_feature(ctrl, 0x0F, 0);
    }
  }
  reset(ctrl);
  printf("I/O: %u done, %u refused, %u unknown; admin: %u done, %u refused, %u unknown; %u resets", counts[0][0], counts[0][1],
         counts[0][2], counts[1][0], counts[1][1], counts[1][2], resets + 1);
  printf(kept ? "; %u settings that the driver keeps to itself\n" : "\n", kept);
  // A device that refuses everything has not been tested.
  return counts[0][0] < commands / 20 || counts[1][0] < commands / 20;
}
