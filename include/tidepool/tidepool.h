/* libtidepool: plans one training iteration inside a byte budget, and proves the plan. C99.
 *
 *   tp_program* program = NULL;
 *   tp_machine* machine = NULL;
 *   tp_plan* plan = NULL;
 *   tp_budget budget = TP_INIT(tp_budget);
 *   budget.device = 200 << 20;
 *   if (tp_program_read(json, strlen(json), "program.json", &program) == TP_OK &&
 *       tp_machine_preset("gtx1080ti", &machine) == TP_OK &&
 *       tp_plan_make(program, machine, &budget, NULL, &plan) == TP_OK) {
 *     tp_plan_info info = TP_INIT(tp_plan_info);
 *     tp_plan_describe(plan, &info);
 *   }
 *
 * Rules. Functions that can fail return a tp_status; what they make comes back through their last
 * arguments, which a failure leaves as they were. After a failure tp_error() describes it, per
 * thread, until that thread's next call. No exception, no assertion and no signal handler of the
 * library reaches the caller. Handles never change after they are made: any number of threads may
 * use one, and calls may run at the same time. A handle is freed once, by its own _free, which
 * takes NULL; a plan needs neither its program nor its machine any more. A struct begins with its
 * size as the caller knows it (TP_INIT): fields that it lacks are 0, and 0 is the default; one that
 * is larger than this library's may have nothing but 0 there. Text is UTF-8; sizes are bytes, times
 * are nanoseconds. Pointers that come back live as long as their handle. The library opens no file
 * that is not named to it (but parts of its own, such as the one behind `prove_gap`), and prints
 * nothing. */
#ifndef TIDEPOOL_H
#define TIDEPOOL_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define TP_API __attribute__((visibility("default")))
#else
#define TP_API
#endif
/* The first value of a struct: its size, and 0 in all other fields. */
#ifdef __cplusplus
#define TP_INIT(type)                           \
  ([] {                                         \
    type tp_init_value = type();                \
    tp_init_value.size = sizeof(tp_init_value); \
    return tp_init_value;                       \
  }())
#else
#define TP_INIT(type) \
  { .size = sizeof(type) }
#endif

#define TP_ABI 1 /* raised when something here changes its meaning; additions leave it */
/* TP_ABI of the library that is loaded. */
TP_API int32_t tp_abi(void);
/* Its version, "0.1.0". */
TP_API const char* tp_version(void);

/* ---- errors */
typedef enum {
  TP_OK = 0,
  TP_RUNTIME,      /* memory, a file, the system */
  TP_USAGE,        /* what was asked for makes no sense; NULL; a size that is not known */
  TP_BAD_INPUT,    /* text that is malformed: "program.json:12: field 'tensors[3].bytes': ..." */
  TP_INFEASIBLE,   /* the budget cannot be met: see smallest */
  TP_CHECK_FAILED, /* a plan is wrong (of a file), or this library is */
  TP_STOPPED       /* asked to stop before there was a plan */
} tp_status;
typedef struct {
  size_t size;
  tp_status status;
  const char* message; /* a sentence; lives until this thread's next call */
  int64_t smallest;    /* TP_INFEASIBLE: the smallest budget known to be enough; 0: none is */
  int32_t of_host;     /* 1: that is one of host memory */
  int32_t op;          /* the op that sets it, or -1 */
} tp_error_info;
/* Of this thread's last call, where that failed; else status TP_OK and an empty message. */
TP_API tp_status tp_error(tp_error_info* out);

/* ---- inputs */
typedef struct tp_program tp_program;
typedef struct tp_machine tp_machine;
typedef struct tp_plan tp_plan;
/* A program or a machine in the JSON of the program's files (docs/USAGE.md). `length` in bytes;
 * `name` stands in messages for the file, NULL: "program", "machine". TP_BAD_INPUT. */
TP_API tp_status tp_program_read(const char* json, size_t length, const char* name,
                                 tp_program** out);
TP_API tp_status tp_machine_read(const char* json, size_t length, const char* name,
                                 tp_machine** out);
/* One of tp_list("machines"). TP_USAGE: there is none of that name. */
TP_API tp_status tp_machine_preset(const char* name, tp_machine** out);
TP_API void tp_program_free(tp_program*);
TP_API void tp_machine_free(tp_machine*);

typedef struct {
  size_t size;
  int64_t ops, tensors;
  int64_t gaps;     /* idle intervals of tensors in which something can be decided */
  int64_t peak;     /* bytes without a budget, least workspaces, addresses not counted */
  int64_t floor;    /* the smallest budget that any plan meets, addresses counted */
  int32_t floor_op; /* and the op that sets it */
  int64_t compute;  /* time without a budget; -1 where ops are on several devices */
} tp_program_info;
/* TP_BAD_INPUT: the program has no times and the machine no compute model. */
TP_API tp_status tp_program_describe(const tp_program*, const tp_machine*, tp_program_info* out);

/* ---- planning */
typedef struct {
  size_t size;
  int64_t device; /* bytes of each device, gaps between addresses included; 0: no limit */
  int64_t host;   /* bytes of host memory for what leaves the device; 0: no limit */
  /* 1: the device's own allocator places tensors: the load is what has to fit. Plans are looked for
   * with addresses all the same, in up to a quarter more. */
  int32_t addresses_do_not_count;
} tp_budget;
enum { TP_SWAP = 1, TP_RECOMPUTE = 2, TP_ALGORITHMS = 4 };
typedef struct {
  size_t size;
  const char* planner;      /* one of tp_list("planners"); NULL: "auto" */
  uint64_t seed;            /* 0: 1 */
  int64_t time_limit;       /* of the search; 0: the planner's own */
  int64_t evaluation_limit; /* 0: none. Else no clock is asked: the plan depends on program,
                               machine, budget, options and seed alone */
  uint32_t may;             /* what may be decided; 0: TP_SWAP | TP_RECOMPUTE */
  int32_t prove_gap;        /* 1: also look for a lower bound, within half the time limit again */
  /* May be NULL. Polled, by several threads: as soon as it is not 0 the best plan so far is the
   * plan; where there is none yet most planners make one, but not of programs of more than 2,000
   * ops: else TP_STOPPED. Write it with an atomic store, or from a signal handler. */
  const int32_t* stop;
  /* May be NULL. From the calling thread only, at most 20 times a second; `fraction` of the time is
   * over. It must return normally: no longjmp, no exception. */
  void (*progress)(void* user, double fraction, const char* what);
  void* user;
  const char* settings; /* of the planner: lines "name=value"; NULL: none */
} tp_options;
/* A plan that is proved. `options` may be NULL. TP_USAGE: a name, a setting or a number that makes
 * no sense; TP_BAD_INPUT: a program that cannot be planned on that machine; TP_INFEASIBLE;
 * TP_STOPPED: stopped before there was any plan. */
TP_API tp_status tp_plan_make(const tp_program*, const tp_machine*, const tp_budget*,
                              const tp_options*, tp_plan** out);
/* A plan file as `tidepool plan -o` writes it; proved against the budget it names. TP_BAD_INPUT,
 * TP_CHECK_FAILED. */
TP_API tp_status tp_plan_read(const char* json, size_t length, const char* name, tp_plan** out);
/* The plan file. `*json` has a 0 behind its `*length` bytes. */
TP_API tp_status tp_plan_text(const tp_plan*, const char** json, size_t* length);
TP_API void tp_plan_free(tp_plan*);

typedef struct {
  size_t size;
  int64_t device_bytes, host_bytes,
      file_bytes;    /* arenas: of the first device, the host, all files */
  int64_t load;      /* most living bytes and workspace, addresses not counted */
  int64_t time;      /* predicted, of a steady iteration */
  int64_t compute;   /* sum of the ops' times, without reruns */
  int64_t unlimited; /* an iteration without a budget; -1 where ops are on several devices */
  int64_t bound; /* no plan of the same algorithms is faster; -1: not looked for, or not known */
  int64_t swapped_tensors, swapped_out, copied_out, copied_in, recomputed_ops, written_to_file;
  int64_t plan_time, check_time; /* that the search and the proof took; 0 for plans of files */
  int32_t streaming; /* nothing but the running op's tensors is kept: the last resort; 0 of a plan
                        that was read, whose text does not say */
  int32_t stopped;   /* `stop` ended the search */
  const char* planner;
  const char* notes; /* lines, for people */
} tp_plan_info;
TP_API tp_status tp_plan_describe(const tp_plan*, tp_plan_info* out);

/* Tables of int64, row by row; rows in the order of the plan, -1 for what a row does not have.
 * Tensors and ops are numbered as in the program, spaces as in TP_ARENAS. */
typedef enum {
  /* Steady: kind (0 op, 1 copy, 2 load, 3 store), stream, op, from, to (placements), bytes,
     workspace offset, workspace bytes, first operand (row of TP_OPERANDS), operands, first wait
     (row of TP_WAITS), waits, runs (0: the op's first of the iteration), algorithm, guard */
  TP_INSTRUCTIONS,
  TP_ENTRY,      /* the same, of what runs once before the first iteration */
  TP_EXIT,       /* and once behind the last */
  TP_OPERANDS,   /* placement, mode (0 read, 1 write, 2 update); of steady, entry, exit */
  TP_WAITS,      /* stream, instruction, iteration (0, -1: of the previous); of the same three */
  TP_PLACEMENTS, /* tensor, space, offset, bytes, first and last instruction that uses it (steady)
                  */
  /* placement, first instruction, last instruction, goes on into the next iteration (0, 1). A life
     begins where a value is written over whatever was there and ends with the last use of the
     value; what a tensor's `released_at` says is counted as a use. One that goes on ends with an
     instruction of the next iteration, -1: none uses it there; what is never overwritten has one
     life, from its first use to its last, that goes on. */
  TP_LIVES,
  TP_STREAMS,  /* device, kind (0 compute, 1 copy, 2 host) */
  TP_ARENAS,   /* kind (0 device, 1 host, 2 file), bytes, alignment */
  TP_BOUNDARY, /* placement: where persistent tensors lie between iterations */
  /* tensor, op before, op behind the gap (smaller: the next iteration's), what runs (0 keep; 1
     swap: copied out and in; 2 drop: copied in, as the host has it; 3 recompute; 4 release: nothing
     comes back, as the op behind writes over it), bytes */
  TP_DECISIONS
} tp_table;
/* `rows` rows of `columns` cells. Not NULL, also of no rows. */
TP_API tp_status tp_plan_table(const tp_plan*, tp_table, const int64_t** cells, size_t* rows,
                               size_t* columns);
/* Why, of a row of TP_DECISIONS; perhaps empty. */
TP_API tp_status tp_plan_reason(const tp_plan*, size_t decision, const char** text);

/* Writes a document, a form of tp_list("formats"), to a file. TP_USAGE, TP_RUNTIME. */
TP_API tp_status tp_plan_export(const tp_plan*, const char* format, const char* path);
/* The names of what there is, one a line: "planners", "machines", "formats". They live as long as
 * the library is loaded. */
TP_API tp_status tp_list(const char* what, const char** lines);

/* ---- sessions: in libtidepool_session, which is there where the CPU device is built. What they
 * do, and what may call them when, is said at the head of session.h. The rules above hold, but that
 * a session changes: calls of several threads wait for each other, and an op has the session to
 * itself from begin to end. Their errors are told by tp_session_error, as the two libraries share
 * nothing. */
typedef struct tp_session tp_session;
typedef uint64_t tp_block; /* never given out again, by any session; 0: none */
typedef struct {
  size_t size;
  int64_t budget;      /* bytes that blocks may take at any time; has to be given */
  const char* folder;  /* for a file that takes what leaves; NULL: memory, over an emulated link */
  int64_t away;        /* bytes that may have left; 0: 8 budgets with a folder, else all memory */
  double out_speed;    /* bytes per second of what leaves; 0: 1e9 with a folder, else 4e9 */
  double back_speed;   /* and of what comes back */
  const char* planner; /* NULL: "auto" */
  uint64_t seed;       /* 0: 1 */
  int64_t time_limit;  /* of planning; 0: the planner's own */
  int64_t evaluation_limit; /* 0: none. Else no clock is asked while planning */
  int32_t plan_when_asked;  /* 1: by tp_session_plan_now alone, and never beside the program */
} tp_session_options;
TP_API tp_status tp_session_make(const tp_session_options*, tp_session** out);
/* With all blocks that are left. No other thread is in a call of it. */
TP_API void tp_session_free(tp_session*);
/* As tp_error, of this thread's last tp_session call. */
TP_API tp_status tp_session_error(tp_error_info* out);

TP_API tp_status tp_session_malloc(tp_session*, int64_t bytes, tp_block* out);
/* One whose address stays until it is freed, for use at any time. TP_INFEASIBLE: the budget has no
 * room for it beside other fixed blocks. */
TP_API tp_status tp_session_malloc_fixed(tp_session*, int64_t bytes, tp_block* out, void** address);
TP_API tp_status tp_session_free_block(tp_session*, tp_block);
TP_API tp_status tp_session_size(tp_session*, tp_block, int64_t* bytes);
/* An op on `blocks`, each named once: first those it reads, then those it writes without reading
 * (all of them), then those it reads and writes; so many of each. `*pointers` are in this order and
 * good until the end, which the same thread says. TP_USAGE; TP_INFEASIBLE: they do not fit into the
 * budget together. */
TP_API tp_status tp_session_begin(tp_session*, const char* op, const tp_block* blocks, size_t reads,
                                  size_t writes, size_t updates, void* const** pointers);
TP_API tp_status tp_session_end(tp_session*);
/* begin, run, end. `pure` 1: what it writes depends on what it reads alone, and a plan may run it
 * again in the same iteration: `user` has to live until then. It returns 0; else the call fails
 * with TP_RUNTIME, and the op is over all the same. */
TP_API tp_status tp_session_exec(tp_session*, const char* op, const tp_block* blocks, size_t reads,
                                 size_t writes, size_t updates,
                                 int32_t (*run)(void* user, void* const* pointers), void* user,
                                 int32_t pure);
/* All of a block, `bytes` long; ops named "upload" and "download". */
TP_API tp_status tp_session_upload(tp_session*, tp_block, const void* data, int64_t bytes);
TP_API tp_status tp_session_download(tp_session*, tp_block, void* data, int64_t bytes);
/* Looks for an iteration in the calls until now and plans it. 1: there is a plan. */
TP_API tp_status tp_session_plan_now(tp_session*, int32_t* planned);
typedef struct {
  size_t size;
  int64_t planned_iterations, planned_ops, reactive_ops; /* reactive: that no plan served */
  int64_t left_plans;                                    /* calls that were not the plan's next */
  int64_t patterns;        /* different iterations that were planned */
  int64_t iteration_calls; /* of the one that was found last */
  int64_t moved;           /* bytes, both ways */
  int64_t device_peak;     /* highest byte of the budget that was used */
  int64_t live_blocks;
  int64_t idle_blocks, idle_bytes; /* of these: that no op has used for an iteration */
  int64_t stalled;                 /* that planned ops waited for copies */
  int64_t predicted;       /* of an iteration, by the plan that was in force last; 0: none was */
  int64_t measured;        /* on average */
  const char* why_no_plan; /* of the last iteration that could not be planned, or why none was
                              found; "": nothing failed. Lives until this thread's next
                              tp_session_report */
} tp_session_info;
TP_API tp_status tp_session_report(tp_session*, tp_session_info* out);
/* The plan that is in force or was last, as a plan file for tp_plan_read; "": there was none. Lives
 * until this thread's next tp_session_plan_text. */
TP_API tp_status tp_session_plan_text(tp_session*, const char** json, size_t* length);

/* A session's allocator mode, said at the head of fixed_pool.h: malloc and free are all that it is
 * told, and a block's address is all that it has. Any thread may call. Errors: tp_session_error. */
typedef struct tp_fixed_pool tp_fixed_pool;
typedef struct {
  size_t size;
  int64_t budget;     /* of all blocks and what is lost between them; has to be given */
  int64_t alignment;  /* of addresses, a power of two up to 4096; 0: 64 */
  int64_t time_limit; /* for packing an iteration; 0: half a second */
} tp_fixed_pool_options;
TP_API tp_status tp_fixed_pool_make(const tp_fixed_pool_options*, tp_fixed_pool** out);
/* With all blocks that are left. No other thread is in a call of it. */
TP_API void tp_fixed_pool_free(tp_fixed_pool*);
/* TP_INFEASIBLE: the budget has no room. */
TP_API tp_status tp_fixed_pool_malloc(tp_fixed_pool*, int64_t bytes, void** out);
/* TP_USAGE: no block begins there. */
TP_API tp_status tp_fixed_pool_free_block(tp_fixed_pool*, void*);
/* Of the block that begins there; 0: none does. */
TP_API tp_status tp_fixed_pool_size(tp_fixed_pool*, const void*, int64_t* bytes);
typedef struct {
  size_t size;
  int64_t served, others;    /* mallocs by look-up, and first fit */
  int64_t iterations;        /* that were whole and planned */
  int64_t left_plans;        /* calls that were not the plan's next */
  int64_t iteration_mallocs; /* of the iteration that was found last */
  int64_t peak_load;         /* most bytes that were live */
  int64_t footprint;         /* most bytes that were taken or planned */
  int64_t planned_bytes;     /* of the iteration's packing */
  int64_t planned_load;      /* no packing of it is smaller */
} tp_fixed_pool_info;
TP_API tp_status tp_fixed_pool_report(tp_fixed_pool*, tp_fixed_pool_info* out);

#ifdef __cplusplus
}
#endif
#endif
