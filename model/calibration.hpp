#pragma once
// The constants of the cost model, one file per platform (scenarios/calibrations/NAME.yaml). Each constant
// carries its value with unit, an interval, and where it comes from; sim/simulation.hpp has the formulas that
// use them. `wire-only` sets every efficiency to 1 and every software term to 0: what remains is the fluid
// network alone. docs/calibration.md says what each constant does.
// Invariant: low <= value <= high for each constant; efficiencies are in (0, 1].

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"
#include "model/fabric.hpp"
#include "model/units.hpp"

namespace isthmus {

enum class Provenance : std::uint8_t { metal, nccl_source, datasheet, fitted, judgement };
std::string_view to_string(Provenance provenance);

struct Constant {
  double value = 0;  // in SI units: seconds, bytes, bytes per second (infinity: unlimited), or a ratio
  double low = 0;
  double high = 0;
  Provenance provenance = Provenance::judgement;
  std::string source;  // one line: where the number stands

  friend bool operator==(const Constant&, const Constant&) = default;
};

/// What predicts a replay on the GPUs of one host (report/gpu_prediction.hpp has the equations).
struct ReplayConstants {
  // Messages: most that one direction between two GPUs moves, the share of it that each direction keeps when
  // both are at work; what kernels write into a peer.
  Constant exchange_bandwidth, both_ways_share, put_bandwidth;
  // Time of each message of an exchange; more for large ones; more, once, for the largest.
  Constant message_time, large_message_time, ramp_time;
  // Copies within a GPU: memory, read and written; units of 16 bytes in one piece, and strided; what its
  // cache holds.
  Constant copy_bandwidth, contiguous_bandwidth, strided_bandwidth, cache;
  // Start of a kernel; from the host to the GPU; between launches that wait for each other; start of an
  // exchange; more for one that finds its GPU copying.
  Constant kernel_time, issue_latency, dispatch_time, exchange_latency, turn_time;
  // Of the host's thread, for each kernel, exchange, message, wait and event.
  Constant kernel_host_time, exchange_host_time, message_host_time, wait_host_time, record_host_time;

  friend bool operator==(const ReplayConstants&, const ReplayConstants&) = default;
};

struct Calibration {
  std::string name;
  // Achieved share of a link's nominal rate, for large transfers (ratio).
  Constant nvlink_efficiency, nic_efficiency, pcie_efficiency, uplink_efficiency;
  // Start of a transfer: launch of its group until the first byte moves (seconds).
  Constant nvlink_latency, network_latency;
  // Host time to enqueue one operation of a group; a group starts when all of them are enqueued (seconds).
  Constant enqueue_time;
  // Time an operation occupies its ports beyond bytes / rate: handshakes and chunk overheads (seconds).
  Constant nvlink_operation_time, network_operation_time;
  // Most bytes per second that one collective reaches on the network: channels x rate per channel.
  Constant collective_bandwidth;
  // Most bytes per second that one channel of send/recv moves over the network: the rate of its CTA.
  Constant channel_bandwidth;
  // Host time of a rank per call of a transport's program, beside what it enqueues: NeMo RL's python
  // transports; a native library (seconds).
  Constant python_call_time, native_call_time;
  // Host time per HuggingFace tensor: export on the training side, load on the generation side (seconds).
  Constant export_time_per_tensor, load_time_per_tensor;
  // GPU memory bandwidth, read + write together, for copies, packing and loading (bytes per second).
  Constant memory_bandwidth;
  // Optional: the mapping `replay`.
  std::optional<ReplayConstants> replay;

  /// Achieved rate of a link: nominal x efficiency of its class, at least 1 byte per second.
  Bandwidth achieved(const Link& link) const;

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// The names of the constants with their unit ("ratio", "s", "B", "B/s"), in file order.
struct ConstantField {
  std::string_view key;
  std::string_view unit;
  Constant Calibration::*member;
};
const std::vector<ConstantField>& calibration_fields();
struct ReplayField {
  std::string_view key;
  std::string_view unit;
  Constant ReplayConstants::*member;
};
const std::vector<ReplayField>& replay_fields();

/// Reads a calibration by name, or the file itself when `name` ends in .yaml (relative to
/// `scenario_directory`). NAME.yaml is sought in calibrations/ and scenarios/calibrations/ below
/// `scenario_directory`, then below each folder above it, then in the calibrations folder of the
/// environment's ISTHMUS_SCENARIOS. Raises InputError for a name that is not found (at `where`; lists the
/// names that are), an unknown or missing constant, a wrong unit, a value outside its interval.
Calibration read_calibration(std::string_view name, const std::filesystem::path& scenario_directory,
                             const Location& where = {{}, 0, "calibration"});

/// All efficiencies 1, all times 0, collectives and memory unlimited: the fluid network alone. The peer of
/// each full calibration, and what the name wire-only means where no such file is found.
Calibration wire_only();

}  // namespace isthmus
