//===- plan_corruption_test.cpp - Any text is a plan or an error ----------===//

#include <random>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tests/runtime/plan/pipeline_plan.h"

using namespace mtplan::runtime;
using nlohmann::ordered_json;

namespace {

// Returns the first error of reading and checking; "" if there is none.
std::string firstFault(const std::string &text) {
  try {
    std::vector<std::string> faults = checkPlan(parsePlan(text));
    return faults.empty() ? "" : faults[0];
  } catch (const PlanError &error) {
    return std::string(error.what()).empty() ? "(nothing)" : error.what();
  }
}

TEST(PlanCorruption, WrittenPlansAreRead) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = planText(randomPlan(seed));
    EXPECT_EQ(planText(parsePlan(text)), text) << "seed " << seed;
    EXPECT_EQ(planText(randomPlan(seed)), text) << "seed " << seed;
  }
}

TEST(PlanCorruption, NoTruncatedFileIsAPlan) {
  const std::string text = planText(twoReplicas());
  for (std::size_t length = 0; length + 1 < text.size(); ++length)
    EXPECT_NE(firstFault(text.substr(0, length)), "") << length;
}

// Changed, lost, doubled and moved bytes lead to an error or a plan, but never
// to a crash.
TEST(PlanCorruption, RandomBytesAreRejectedOrRead) {
  std::mt19937_64 random(7);
  const std::string digits = "0123456789-+.eE[]{},:\"";
  int refused = 0, tries = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string whole = planText(randomPlan(seed));
    for (int i = 0; i < 200; ++i, ++tries) {
      std::string text = whole;
      for (std::uint64_t k = random() % 4 + 1; k > 0; --k) {
        std::size_t at = random() % text.size(),
                    length =
                        random() % std::min<std::size_t>(40, text.size() - at);
        switch (random() % 5) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = digits[random() % digits.size()];
          break;
        case 2:
          text.erase(at, length);
          break;
        case 3:
          text.insert(at, text.substr(at, length));
          break;
        default:
          text.insert(random() % text.size(), text.substr(at, length));
        }
      }
      refused += firstFault(text).empty() ? 0 : 1;
    }
  }
  // Some changes alter only a name, or a size that is still large enough.
  EXPECT_GT(refused, tries * 9 / 10);
}

// Returns the pointers of numbers that may change by one without a fault. "#"
// stands for any index.
const std::set<std::string> &freeNumbers() {
  static const std::set<std::string> kFree = {
      "/sequence", "/layers",
      // These members describe memory, and some of the memory is not needed.
      "/stages/#/arenas/#/size", "/stages/#/buffers/#/arena",
      "/stages/#/buffers/#/offset", "/stages/#/buffers/#/size",
      "/stages/#/buffers/#/entries", "/stages/#/buffers/#/entry_stride",
      "/stages/#/buffers/#/slots", "/stages/#/buffers/#/slot_stride",
      // These members refer to one of several tensors, groups or streams.
      // Another one may be valid, too.
      "/stages/#/programs/#/instructions/#/inputs/#/buffer",
      "/stages/#/programs/#/instructions/#/inputs/#/entry",
      "/stages/#/programs/#/instructions/#/inputs/#/entry_step",
      "/stages/#/programs/#/instructions/#/inputs/#/split/#/#",
      "/stages/#/programs/#/instructions/#/outputs/#/buffer",
      "/stages/#/programs/#/instructions/#/outputs/#/entry",
      "/stages/#/programs/#/instructions/#/outputs/#/entry_step",
      "/stages/#/programs/#/instructions/#/outputs/#/split/#/#",
      "/stages/#/programs/#/instructions/#/limit",
      "/stages/#/programs/#/instructions/#/group",
      "/stages/#/programs/#/instructions/#/stream",
      "/stages/#/parameters/#/first_copy"};
  return kFree;
}

class EachNumber {
public:
  explicit EachNumber(const Plan &plan)
      : root(ordered_json::parse(planText(plan))) {
    visit(root, "");
  }
  int tries = 0, noticed = 0;

private:
  void visit(ordered_json &node, const std::string &path) {
    for (auto member = node.begin(); member != node.end(); ++member) {
      const std::string name = node.is_object()
                                   ? member.key()
                                   : std::to_string(member - node.begin());
      std::string below = path;
      below.append("/").append(name);
      if (member->is_structured())
        visit(*member, below);
      else if (member->is_number_integer())
        change(*member, below);
    }
  }

  void change(ordered_json &number, const std::string &path) {
    static const std::regex kPlace("/[0-9]+");
    const auto was = number.get<std::int64_t>();
    for (std::int64_t other : {was - 1, was + 1}) {
      number = other;
      ++tries;
      if (!firstFault(root.dump()).empty())
        ++noticed;
      else
        EXPECT_TRUE(
            freeNumbers().contains(std::regex_replace(path, kPlace, "/#")))
            << path << ": " << was << " became " << other
            << " and nothing was said";
    }
    number = was;
  }

  ordered_json root;
};

TEST(PlanCorruption, NearlyEveryChangedNumberIsAFault) {
  EachNumber numbers(PipelinePlan({.pp = 2,
                                   .dp = 2,
                                   .tp = 3,
                                   .layers = 2,
                                   .microBatches = 3,
                                   .chain = 1,
                                   .samples = 1,
                                   .positions = 2,
                                   .hidden = 12,
                                   .zero = true,
                                   .forwardsFirst = false,
                                   .type = ElementType::bf16})
                         .make());
  EXPECT_GT(numbers.tries, 1000);
  EXPECT_GT(numbers.noticed, numbers.tries * 3 / 4);
}

} // namespace
