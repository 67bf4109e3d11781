#pragma once
// Small refits whose membership changes, for tests: Qwen3-30B-A3B cut to one layer on DGX H100 hosts of eight
// GPUs, of which the first ones train and the next ones generate; what is left of the fabric is free.
// Invariant: a sampled case has no membership faults.

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <rapidcheck.h>

#include "model/membership.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::test {

struct MembershipCase {
  std::string train = "{gpus: 8, tp: 1, ep: 8, etp: 1}", generate = "{gpus: 16, tp: 8}", more;
  int hosts = 6;
  MembershipChange change{};

  Scenario scenario() const {
    return parse_scenario(fmt::format("name: small\nmodel: {{config: models/qwen3-30b-a3b.json, layers: 1}}\n"
                                      "fabric: {{preset: dgx-h100, hosts: {}}}\ntrain: {}\ngenerate: {}\n{}"
                                      "calibration: h100-ib400\n",
                                      hosts, train, generate, more),
                          project_folder() / "scenarios/small.yaml");
  }
};

inline void showValue(const MembershipCase& shown, std::ostream& stream) {
  stream << to_yaml(shown.scenario()) << "--leave " << host_list(shown.change.leave) << " --join "
         << host_list(shown.change.join_generate) << " --join train:" << host_list(shown.change.join_train);
}

/// Random sides, placements and changes, without faults; the same from a seed.
inline MembershipCase sample_membership(std::uint64_t seed) {
  const rc::Gen<MembershipCase> cases = rc::gen::exec([] {
    const auto pick = [](std::vector<std::string> texts) { return *rc::gen::elementOf(std::move(texts)); };
    MembershipCase made;
    made.hosts = 7;
    made.train =
        pick({"{gpus: 8, tp: 2, ep: 4, etp: 1}", "{gpus: 16, ep: 8, etp: 1}", "{gpus: 16, tp: 4, ep: 4}",
              "{gpus: 24, tp: 2, ep: 2, etp: 1}", "{gpus: 16, fsdp: 8, ep: 8, etp: 1}"});
    made.generate = pick({"{gpus: 16, tp: 8}", "{gpus: 32, tp: 16}", "{gpus: 24, tp: 4, ep: 4}",
                          "{gpus: 32, tp: 4, ep: 16}", "{gpus: 16, tp: 2}", "{gpus: 32, tp: 8, ep: 16}"});
    made.more = pick({"", "", "refit: {relay: members}\n"});
    const SideHosts sides = side_hosts(resolve(made.scenario()));
    for (int host = 0; host < made.hosts; ++host) {
      const bool used = to_size(host) < sides.train.size() + sides.generate.size();
      const bool leaves = used && *rc::gen::inRange(0, 4) == 0;
      if (leaves) made.change.leave.push_back(host);
      if ((!used || leaves) && *rc::gen::inRange(0, 2) == 0) {
        auto& joins = *rc::gen::inRange(0, 4) == 0 ? made.change.join_train : made.change.join_generate;
        joins.push_back(host);
      }
    }
    return made;
  });
  for (std::uint64_t next = seed;; next += 1'000'003) {
    MembershipCase made = cases(rc::Random(next), 20).value();
    const Scenario scenario = made.scenario();
    if (membership_faults(scenario, resolve(scenario), made.change).empty()) return made;
  }
}

}  // namespace isthmus::test
