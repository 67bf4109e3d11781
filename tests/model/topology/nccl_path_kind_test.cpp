#include "model/topology/nccl_path_kind.hpp"

#include <string>

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(NcclPathKind, stands_in_the_order_of_nccl_best_first) {
  std::string all;
  for (int kind = 0; kind <= static_cast<int>(PathKind::dis); ++kind) {
    all += std::string(to_string(static_cast<PathKind>(kind))) + " ";
  }
  EXPECT_EQ(all, "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS ");
}

}  // namespace
}  // namespace isthmus
