#pragma once
// Which variables, links and receivers of a relay program (planner/relay_program.hpp) are alike, so that one
// stands for all: GPUs and domains that can be exchanged make the program many times smaller. Found by
// colouring: vertices, edges and classes start with what they are (capacity, bytes) and take up the colours
// around them, round by round. Seen from one class, or from one class and receiver, those get a mark first.
//   u(a, l) stands for all with the colour that link l has as seen from class a
// The program with one variable per colour has the optimum of the whole one where colours are orbits of the
// refit's symmetries; where they are coarser, its dual proves less, which planner/certificate.hpp finds out.
// Invariant: numbers are dense, and equal refits get equal ones.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "planner/byte_classes.hpp"
#include "planner/relay_graph.hpp"

namespace isthmus {

/// A receiver of a class, and the edges that may bring it there.
struct RelayDemand {
  std::size_t of_class = 0;
  std::uint32_t gpu = 0;
  const std::vector<char>* allowed = nullptr;  // per edge; all where there is none
};

/// Prices by demand, then edge.
using RelayShares = std::map<std::size_t, std::map<std::uint32_t, double>>;

/// Things by kind: of each kind the first one, and how many there are.
struct Kinds {
  std::vector<std::uint32_t> of;            // by thing
  std::vector<std::uint32_t> first, count;  // by kind
};

struct RelaySymmetry {
  std::vector<std::uint32_t> variable;  // by class, then edge
  std::size_t variables = 0;
  Kinds edges, demands;
};

class RelayColours {
 public:
  /// Keeps references to all of them.
  RelayColours(const Fabric& fabric, const GpuSets& sets, const std::vector<ByteClass>& classes,
               const RelayGraph& graph);

  /// Colours that symmetry() and lifted() compute for so many demands: some nanoseconds each.
  std::size_t work(std::size_t demands) const;
  RelaySymmetry symmetry(const std::vector<RelayDemand>& demands) const;
  /// What one demand of a kind pays, given to all of them in equal parts, and on alike edges alike.
  RelayShares lifted(const RelaySymmetry& symmetry, const std::vector<RelayDemand>& demands,
                     const RelayShares& shares) const;
  /// The colour of each edge as seen from a receiver of a class.
  std::vector<std::uint64_t> edges_seen_from(const RelayDemand& demand) const;

 private:
  struct Colouring {
    std::vector<std::uint64_t> vertices, edges, classes;
  };
  void refine(Colouring& colouring) const;
  Colouring seen_from(std::size_t of_class) const;

  const Fabric& fabric_;
  const GpuSets& sets_;
  const std::vector<ByteClass>& classes_;
  const RelayGraph& graph_;
  Colouring whole_;
};

/// Each thing for itself.
RelaySymmetry without_symmetry(std::size_t classes, std::size_t edges, std::size_t demands);

}  // namespace isthmus
