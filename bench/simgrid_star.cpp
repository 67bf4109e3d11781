#include "bench/simgrid_star.hpp"

#ifdef ISTHMUS_HAVE_SIMGRID

#include <ctime>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <simgrid/s4u.hpp>

namespace isthmus::bench {
namespace {

namespace s4u = simgrid::s4u;

struct StarPlatform {
  std::vector<s4u::Host*> sources, targets;
};

void configure(s4u::Engine& engine, SimgridUpdate update) {
  engine.set_config("network/model:CM02");
  if (update == SimgridUpdate::full) engine.set_config("network/optim:Full");
  engine.set_config("network/TCP-gamma:0");
  engine.set_config("network/crosstraffic:0");
  engine.set_config("network/bandwidth-factor:1");
  engine.set_config("network/latency-factor:1");
  engine.set_config("network/weight-S:0");
  engine.set_config("surf/precision:1e-12");     // seconds; flows take tens of microseconds
  engine.set_config("contexts/stack-size:128");  // KiB: each source is an actor
}

StarPlatform build_platform(const StarLoad& load) {
  StarPlatform platform;
  s4u::NetZone* const zone = s4u::create_star_zone("star");
  for (std::size_t p = 0; p < load.ports.size(); ++p) {
    const std::string number = std::to_string(p);
    s4u::Host* const host = zone->create_host("host" + number, 1e9)->seal();
    s4u::Link* const link = zone->create_link("port" + number, static_cast<double>(load.ports[p]));
    link->set_latency(static_cast<double>(load.latency.value) * 0.5e-12)->seal();
    const std::vector<s4u::LinkInRoute> way{s4u::LinkInRoute(link)};
    if (p < load.sources) {
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, way, false);
      platform.sources.push_back(host);
    } else {
      zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, way, false);
      platform.targets.push_back(host);
    }
  }
  zone->seal();
  return platform;
}

s4u::CommPtr start_flow(const StarPlatform& platform, const StarFlow& flow) {
  return s4u::Comm::sendto_async(platform.sources[flow.source], platform.targets[flow.target],
                                 static_cast<std::uint64_t>(flow.bytes));
}

/// All flows, by one actor.
void start_all(const StarLoad& load, const StarPlatform& platform, std::vector<double>& ends) {
  std::vector<s4u::CommPtr> flying;
  for (const StarFlow& flow : load.flows) {
    const double start = isthmus::seconds(flow.start);
    if (start > s4u::Engine::get_clock()) s4u::this_actor::sleep_until(start);
    flying.push_back(start_flow(platform, flow));
  }
  for (std::size_t f = 0; f < flying.size(); ++f) {
    flying[f]->wait();
    ends[f] = flying[f]->get_finish_time();
  }
}

/// The flows of one source, `window` at a time.
void start_in_turn(const StarLoad& load, const StarPlatform& platform,
                   const std::vector<std::uint32_t>& order, std::vector<double>& ends) {
  std::vector<s4u::CommPtr> flying;
  std::vector<std::uint32_t> numbers;
  for (std::size_t next = 0; next < order.size() || !flying.empty();) {
    if (next < order.size() && flying.size() < load.window) {
      numbers.push_back(order[next]);
      flying.push_back(start_flow(platform, load.flows[order[next++]]));
      continue;
    }
    const auto ended = s4u::Comm::wait_any(flying);
    ends[numbers[static_cast<std::size_t>(ended)]] = s4u::Engine::get_clock();
    flying.erase(flying.begin() + ended);
    numbers.erase(numbers.begin() + ended);
  }
}

std::vector<double> simulate_load(const StarLoad& load, SimgridUpdate update) {
  std::string name = "star", level = "--log=root.thres:error";
  char* words[] = {name.data(), level.data(), nullptr};
  int count = 2;
  s4u::Engine engine(&count, words);
  configure(engine, update);
  const StarPlatform platform = build_platform(load);
  std::vector<double> ends(load.flows.size());
  const std::vector<std::vector<std::uint32_t>> orders = load.by_source();
  if (load.window == 0) {
    s4u::Actor::create("all", platform.sources.front(), [&] { start_all(load, platform, ends); });
  }
  for (std::size_t s = 0; s < orders.size() && load.window > 0; ++s) {
    s4u::Actor::create("source", platform.sources[s],
                       [&, s] { start_in_turn(load, platform, orders[s], ends); });
  }
  engine.run();
  return ends;
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Reads or writes all of some numbers.
template <class Transfer>
bool transfer_all(Transfer transfer, int file, std::vector<double>& numbers) {
  auto* bytes = reinterpret_cast<char*>(numbers.data());
  for (std::size_t left = numbers.size() * sizeof(double); left > 0;) {
    const ssize_t moved = transfer(file, bytes, left);
    if (moved <= 0) return false;
    bytes += moved;
    left -= static_cast<std::size_t>(moved);
  }
  return true;
}

/// The child's work: tells processor time, peak of memory and ends. Nothing of it may return or throw into
/// what the parent goes on with.
[[noreturn]] void run_child(const StarLoad& load, SimgridUpdate update, int file) noexcept {
  alarm(3600);
  const double begin = processor_seconds();
  const std::vector<double> ends = simulate_load(load, update);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::vector<double> told{processor_seconds() - begin, static_cast<double>(usage.ru_maxrss) * 1024};
  told.insert(told.end(), ends.begin(), ends.end());
  _exit(transfer_all(::write, file, told) ? 0 : 1);
}

}  // namespace

std::optional<SimgridRun> run_on_simgrid(const StarLoad& load, SimgridUpdate update) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) run_child(load, update, ends[1]);
  close(ends[1]);
  std::vector<double> told(2 + load.flows.size());
  const bool complete = transfer_all(::read, ends[0], told);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!complete) return std::nullopt;
  return SimgridRun{{told.begin() + 2, told.end()}, told[0], told[1]};
}

bool has_simgrid() { return true; }

}  // namespace isthmus::bench

#else

namespace isthmus::bench {

std::optional<SimgridRun> run_on_simgrid(const StarLoad& /*load*/, SimgridUpdate /*update*/) {
  return std::nullopt;
}

bool has_simgrid() { return false; }

}  // namespace isthmus::bench

#endif
