#include "sim/term.hpp"

#include <array>

namespace isthmus::sim {
namespace {

struct TermName {
  std::string_view key, words;
};

/// In the order of TermKind.
constexpr std::array<TermName, term_kinds> term_names{{
    {"network_wire", "network wire"},
    {"nvlink_wire", "NVLink wire"},
    {"link_efficiency", "links below their nominal rate"},
    {"collective_cap", "cap of collectives"},
    {"network_operation", "operation time on the network"},
    {"nvlink_operation", "operation time on NVLink"},
    {"network_latency", "network latency"},
    {"nvlink_latency", "NVLink latency"},
    {"enqueue", "enqueueing on the host"},
    {"host_call", "host time of calls"},
    {"export", "export on the host"},
    {"load", "loading on the host"},
    {"memory", "GPU memory"},
    {"lane_window", "waiting for a lane"},
}};

}  // namespace

std::string_view to_string(TermKind kind) { return term_names[static_cast<std::size_t>(kind)].key; }
std::string_view in_words(TermKind kind) { return term_names[static_cast<std::size_t>(kind)].words; }

}  // namespace isthmus::sim
