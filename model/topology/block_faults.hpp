#pragma once
// Internal to model/topology/*_faults.cpp: the list that topology_faults fills, and the part of it that
// judges one type of block: its vertices, wires, GPUs and NICs, alone.
// Invariant: keys are written only for what is at fault, so that judging a faultless topology allocates
// nothing in proportion to it but the two sorted tables of a block (names of vertices, ends of wires).

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/input_fault.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

class TopologyFaults {
 public:
  void add(std::string key, std::string found, std::string allowed, std::string change);
  void judge_count(std::string_view key, std::size_t count, std::size_t most);
  void judge_text(const std::string& text, const std::function<std::string()>& key);
  void judge_rate(Bandwidth rate, const std::function<std::string()>& key);
  void judge_wires(std::uint32_t wires, const std::function<std::string()>& key);
  std::vector<InputFault> take() { return std::move(list_); }

 private:
  std::vector<InputFault> list_;
};

/// `number` is that of the type, for keys.
void judge_block(const Block& block, std::size_t number, TopologyFaults& faults);

}  // namespace isthmus
