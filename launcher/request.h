/* A request: what to run, parsed from one message. Pointers refer to the message; nothing is copied.
 *
 * Wire format (all integers little-endian):
 *   message := u32 magic "ADJ1" · u16 type · u16 descriptors · record*
 *   record  := u16 tag · u16 zero · u32 length · length bytes
 * A descriptor is given as its index in the SCM_RIGHTS array of the message. A string ends with one NUL, which is
 * counted in the length. A request that is too long for one packet is sent in a memfd: type REQUEST_IN_FD, descriptor
 * 0. */
#ifndef ADJUDGE_REQUEST_H
#define ADJUDGE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_MAGIC 0x314a4441u
#define REQUEST_BYTES_MAX (8u * 1024 * 1024)
#define REQUEST_PACKET_MAX (160u * 1024)
#define REQUEST_FDS_MAX 128
#define REQUEST_STRINGS_MAX 16384
#define REQUEST_FILES_MAX 64
#define REQUEST_MOUNTS_MAX 32
#define REQUEST_COLLECT_MAX 64
#define REQUEST_EGRESS_MAX 16
#define REQUEST_NAME_MAX 1024
#define REQUEST_JOB_ID_MAX 128

enum request_type { REQUEST_RUN = 1, REQUEST_CANCEL = 2, REQUEST_IN_FD = 3 };

enum request_tag {
    TAG_JOB_ID = 1,
    TAG_ATTEMPT_ID = 2,
    TAG_LIMITS = 3,
    TAG_ARGUMENT = 4,
    TAG_VARIABLE = 5,
    TAG_STDIN = 6,
    TAG_STDOUT = 7,
    TAG_STDERR = 8,
    TAG_FILE_COPY = 9,
    TAG_FILE_INLINE = 10,
    TAG_FILE_BIND = 11,
    TAG_MOUNT = 12,
    TAG_COLLECT = 13,
    TAG_COLLECT_TO = 14,
    TAG_EGRESS = 15,
};

struct limits {
    uint64_t cpu_ms, wall_ms, memory_bytes, processes, open_files, file_bytes, output_bytes, input_bytes, work_bytes,
        work_inodes, stack_bytes;
};
#define LIMITS_COUNT 11

enum stdin_kind { STDIN_EMPTY = 0, STDIN_FD = 1, STDIN_PATH = 2 };
enum output_kind { OUTPUT_CAPTURE = 0, OUTPUT_FD = 1, OUTPUT_MERGE = 2 };
enum file_kind { FILE_COPY, FILE_INLINE, FILE_BIND };

struct input_file {
    enum file_kind kind;
    bool executable;
    unsigned fd_index;
    const char *source;
    const char *name;
    const uint8_t *data;
    size_t size;
};

struct mount_entry {
    const char *source;
    const char *target;
    bool writable;
};

struct egress_entry {
    const char *address; /* IPv4 address on the loopback interface of the box */
    const char *name;    /* host name in the /etc/hosts of the box */
    uint16_t port;
};

struct request {
    enum request_type type;
    unsigned fd_count;
    const char *job_id;
    uint64_t attempt_id;
    struct limits limits;
    size_t argument_count, variable_count, file_count, mount_count, collect_count, egress_count;
    const char *arguments[REQUEST_STRINGS_MAX + 1];
    const char *variables[REQUEST_STRINGS_MAX + 1];
    struct input_file files[REQUEST_FILES_MAX];
    struct mount_entry mounts[REQUEST_MOUNTS_MAX];
    const char *collect[REQUEST_COLLECT_MAX];
    struct egress_entry egress[REQUEST_EGRESS_MAX];
    enum stdin_kind stdin_kind;
    unsigned stdin_fd;
    const char *stdin_path;
    enum output_kind stdout_kind, stderr_kind;
    unsigned stdout_fd, stderr_fd;
    bool has_collect_to, has_limits;
    unsigned collect_to_fd;
    int bad_record; /* index of the record that failed to parse; -1: the header or the whole message */
};

/* Parses a message. False if any part of it does not match the format (request->bad_record tells where). Writes only
 * *request and reads only `size` bytes. */
bool parse_request(const uint8_t *data, size_t size, struct request *request);

#endif
