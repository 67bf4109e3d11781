#pragma once
// The command line: one function per command, each printing its result and returning the exit status.
// Invariant: with --json nothing but the JSON document goes to standard output. Bad input leaves as
// InputError before anything is printed.

#include <optional>
#include <string>
#include <vector>

#include "model/scenario.hpp"
#include "planner/plan_file.hpp"
#include "report/trace.hpp"

namespace isthmus::cli {

/// Parses the arguments and runs a command.
int run(int argc, char** argv);

struct SimulateOptions {
  std::string scenario;
  std::optional<std::string> model;    // configuration, for files that name none
  std::vector<std::string> policies;   // empty: all
  std::vector<std::string> overrides;  // key=value
  std::optional<double> max_seconds;   // gate: exit status 1 when no policy is that fast
  std::optional<std::string> trace;    // file to write: the fastest policy's timeline
  std::size_t trace_limit = 100'000;   // operations in it
  bool links = false;                  // series of links and ranks, in the JSON
  std::optional<std::string> report;   // file to write: the page of docs/report.md
  std::optional<std::string> plot;     // file to write: the comparison as SVG
  bool json = false;
};
int simulate(const SimulateOptions& options);
/// The chosen policies in the order given; all of them for none or `all`, with `balanced-quantized` where
/// `quantised`. Unknown names are refused.
std::vector<std::string> chosen_policies(const std::vector<std::string>& names, bool quantised = false);
/// Sources quantise where `balanced-quantized` alone is asked for, of a scenario whose engines want MXFP8.
void quantise_where_asked(const std::vector<std::string>& names, Scenario& scenario);

/// Says on standard error how much a trace leaves out, if anything.
void tell_dropped(const std::string& file, const report::TraceSummary& summary);

/// A file for --report or --plot: "-" is refused, the table goes there.
void require_file(const char* option, const std::optional<std::string>& file);

struct FailOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::vector<std::string> policies;  // of planning; empty: all
  std::vector<std::string> overrides;
  std::string at, what;
  double change = 0;                   // share of the capacity that is left
  std::optional<std::string> recover;  // when it is whole again
  std::vector<std::string> rules;      // on failed steps; empty: all
  std::optional<std::string> timeout;  // unset: the scenario's
  std::string interval = "0 s";        // from a refit to the next
  double failures_per_day = 1;
  bool tensors = false, json = false;
};
int fail(const FailOptions& options);

struct MembershipOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::vector<std::string> policies;  // of planning; empty: all
  std::vector<std::string> overrides;
  std::vector<std::string> leave, join;  // hosts; join: generation, unless they begin with train:
  std::string next_refit = "0 s";        // not before that
  bool json = false;
};
int membership(const MembershipOptions& options);

struct BoundOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::vector<std::string> overrides;
  std::optional<std::string> certificate;  // file to write; "-": standard output
  bool json = false;
};
int bound(const BoundOptions& options);

struct VerifyOptions {
  std::string scenario;  // or a plan file
  std::optional<std::string> model;
  std::optional<std::string> against;  // of a plan file: the scenario to prove it for
  std::vector<std::string> policies;
  std::vector<std::string> overrides;
  bool json = false;
};
int verify(const VerifyOptions& options);
/// The plan in a file; nullopt where its content is no plan's.
std::optional<PlanFile> find_plan(const std::string& file);
int verify_plan(const PlanFile& file, const VerifyOptions& options);

struct CalibrateOptions {
  std::string backend = "nccl";
  std::string output;               // calibration file to write; empty: none
  std::string base = "h100-ib400";  // for what a host's GPUs do not say
  std::string nvlink = "450 GB/s";  // nominal rate between two GPUs
  std::string nic = "50 GB/s";      // and of a host's link, for the backend mpi
  bool json = false;                // JSON lines
};
int calibrate(const CalibrateOptions& options);

struct PlanOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::vector<std::string> overrides;
  std::string policy;
  std::string output;  // "-": standard output
  bool json = false;
};
int plan(const PlanOptions& options);

struct ShowPlanOptions {
  std::string plan;
  std::optional<std::int64_t> rank;
  std::optional<std::string> tensor;
  bool json = false;
};
int show_plan(const ShowPlanOptions& options);

struct DiffPlansOptions {
  std::string first, second;
  bool json = false;
};
int diff_plans(const DiffPlansOptions& options);

struct ReplayOptions {
  std::string scenario;  // or a plan file
  std::optional<std::string> model;
  std::vector<std::string> policies;  // empty: all
  std::vector<std::string> overrides;
  std::string backend = "host";
  double scale = 1;  // share of the bytes
  std::uint32_t warm_up = 0, repetitions = 1;
  double deadline_seconds = 30;      // of every single wait
  bool verify = true;                // look at every byte
  bool graph = false;                // on GPUs: launches as one CUDA graph
  bool predict = false;              // show predictions beside
  std::optional<double> tolerance;   // gate: exit status 1 when a prediction is further off
  std::optional<std::string> trace;  // file to write: the fastest policy's measured timeline
  std::size_t trace_limit = 100'000;
  std::optional<std::string> record;  // file to add a line for each policy to
  bool json = false;
};
int replay(const ReplayOptions& options);

struct CompareOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::vector<std::string> overrides;
  std::string measured;               // the user's own run (report/observation.hpp)
  std::optional<std::string> policy;  // unset: the one that a trace names
  double scale = 1;                   // share of the bytes that the run moved
  std::size_t gaps = 3;               // shown
  bool json = false;
};
int compare(const CompareOptions& options);

struct ExplainOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::vector<std::string> overrides;
  std::optional<std::string> policy;   // unset: the fastest
  std::optional<std::size_t> threads;  // unset: all cores
  std::optional<std::string> report;   // file to write: the page of docs/report.md, with the changes
  bool json = false;
};
int explain(const ExplainOptions& options);

struct StepOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::vector<std::string> policies;  // empty: all
  std::vector<std::string> overrides;
  std::vector<int> budgets{4, 8, 16, 32, 0};  // CTAs of the transport to compare; 0: it needs no SMs
  bool json = false;
};
int step(const StepOptions& options);

struct SweepOptions {
  std::string space;
  std::vector<std::string> overrides;
  std::optional<std::size_t> threads;  // unset: all cores
  std::optional<std::string> resume;   // folder that keeps what is finished
  std::size_t top = 10;
  bool prune = true;
  bool csv = false, json = false;
};
int sweep(const SweepOptions& options);

struct ValidateOptions {
  std::string scenario;
  std::optional<std::string> model;
  std::optional<std::string> rules;       // nemo-rl or m2n
  std::optional<std::string> local_maps;  // of a refit description: file or folder
  std::vector<std::string> overrides;
  bool json = false;
};
int validate(const ValidateOptions& options);

struct InventoryOptions {
  std::string config;
  std::string dtype = "bf16";       // what travels, or "stored"
  bool mtp = false, vision = true;  // do they count into the payload?
  bool tensors = false;             // every tensor, not only the patterns
  bool json = false;
};
int inventory(const InventoryOptions& options);

struct ScoreboardOptions {
  std::optional<std::string> folder;    // of scenarios; unset: the project's
  std::optional<std::string> output;    // folder of the documents; unset: docs/ beside that folder
  std::optional<std::string> measured;  // only this file of measured replays
  std::string calibration;              // for those; empty: the project's
  std::optional<std::string> plot;      // file to write: predicted against published, as SVG
  bool json = false, markdown = false;
  bool what_if = false;  // what would help each row; the documents have it always
};
int scoreboard(const ScoreboardOptions& options);

/// What each takes of them: show source or probe, and json; convert source or probe, format and output; diff
/// both sources and json.
struct TopologyOptions {
  std::string source, other;  // file, scenario, or PRESET[:HOSTS]
  std::string format;         // json, xml, dot
  std::string output;         // "-": standard output
  bool probe = false;         // the machine at hand, in place of a source
  std::string root = "/";     // of its folders sys and proc
  bool json = false;
};
int show_topology(const TopologyOptions& options);
int convert_topology(const TopologyOptions& options);
int diff_topologies(const TopologyOptions& options);

}  // namespace isthmus::cli
