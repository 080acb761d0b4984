//===- pins_test.cpp - Pins are obeyed or rejected ------------------------===//

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/search/space/pins.h"
#include "tests/tools/command_testing.h"
#include "tools/driver/pipeline.h"
#include "tools/driver/read_flags.h"

namespace mtplan::tools {
namespace {

using planner::SegmentPlan;

struct Match {
  const char *pattern, *name;
  bool matches;
};

class Patterns : public testing::TestWithParam<Match> {};

TEST_P(Patterns, StarsStandForAnyRun) {
  EXPECT_EQ(planner::matchesPattern(GetParam().pattern, GetParam().name),
            GetParam().matches);
}

INSTANTIATE_TEST_SUITE_P(
    All, Patterns,
    testing::Values(Match{"a", "a", true}, Match{"a", "b", false},
                    Match{"*", "", true}, Match{"", "", true},
                    Match{"", "a", false}, Match{"h.*.fc1", "h.*.fc1", true},
                    Match{"h.*.fc1", "h.12.fc1", true},
                    Match{"h.*.fc1", "h.1.mlp.fc1", true},
                    Match{"h.*.fc1", "h.fc1", false},
                    Match{"*a*b", "aabab", true}, Match{"*a*b", "aaba", false},
                    Match{"h.1*", "h.12", true}, Match{"h.1*", "h.21", false},
                    Match{"a**b", "ab", true}));

PlanOutcome planWith(const std::vector<std::string> &pins,
                     const std::string &tp = "4") {
  Flags flags;
  flags.texts = {{"MODEL", examplePath("tiny-gpt2")},
                 {"--gpus", tp},
                 {"--tp", tp},
                 {"--global-batch", "8"},
                 {"--micro-batch", "4"},
                 {"--top", "1"},
                 {"--open", "none"},
                 {"--tolerance", "0"},
                 {"--splits", "all"}};
  flags.lists["--pin"] = pins;
  std::vector<std::string> errors;
  PlanRequest request = readFlags(flags, errors);
  return plan(request, errors);
}

/// Returns, for each layer, how the tensor axis splits the operator; "" if it
/// does not.
std::vector<std::string> wordsAt(const PlanOutcome &outcome,
                                 const std::string &label) {
  std::vector<std::string> words;
  for (const SegmentPlan &run : outcome.best()->plans()) {
    const planner::SegmentGraph &segment =
        outcome.problem->graph.segments[static_cast<std::size_t>(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      if (segment.ops[o].name == label)
        words.insert(words.end(), static_cast<std::size_t>(run.count),
                     planner::wordOf(segment.ops[o], run.strategies[o],
                                     planner::kTensorAxis));
  }
  return words;
}

TEST(Pins, HoldForEveryLayer) {
  for (const char *word : {"column", "row", "replicated", "sequence"}) {
    PlanOutcome outcome = planWith({std::string("h.*.mlp.fc1=") + word});
    ASSERT_TRUE(outcome.best()) << word;
    EXPECT_THAT(wordsAt(outcome, "h.*.mlp.fc1"),
                testing::ElementsAre(word, word));
  }
}

TEST(Pins, HoldForOneLayer) {
  PlanOutcome outcome =
      planWith({"h.1.mlp.fc1=row", "h.0.mlp.fc1=column", "h.0.attn.core=head"});
  ASSERT_TRUE(outcome.best());
  EXPECT_THAT(wordsAt(outcome, "h.*.mlp.fc1"),
              testing::ElementsAre("column", "row"));
  EXPECT_EQ(wordsAt(outcome, "h.*.attn.core").front(), "head");
}

// Layers that pins separate still count as the model's layers: they are
// recomputed, and a pipeline distributes them.
TEST(Pins, HoldForARangeOfLayers) {
  Ran ran =
      runExample("gpt2-1.2b", {"--gpus",        "4",
                               "--tp",          "2",
                               "--dp",          "1",
                               "--pp",          "2",
                               "--micro-batch", "1",
                               "--recompute",   "full",
                               "--pin",         "h.0.mlp.fc1=row",
                               "--pin",         "h.1..12.mlp.fc1=column",
                               "--pin",         "h.30..99.mlp.fc1=replicated",
                               "--json",        "--verify"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  nlohmann::json report = nlohmann::json::parse(ran.out);
  EXPECT_TRUE(report["proof"]["holds"]);
  EXPECT_EQ(report["plan"]["layers"], nlohmann::json({20, 20}));
  std::vector<std::string> words(40);
  for (const nlohmann::json &op : report["plan"]["ops"])
    if (op["label"] == "h.*.mlp.fc1")
      for (int i = 0; i < op["copies"].get<int>(); ++i)
        words[op["first"].get<std::size_t>() + static_cast<std::size_t>(i)] =
            op["strategy"];
  for (std::size_t copy = 0; copy < words.size(); ++copy) {
    const char *pinned = copy == 0    ? "row"
                         : copy <= 12 ? "column"
                         : copy >= 30 ? "replicated"
                                      : nullptr;
    if (pinned) {
      EXPECT_EQ(words[copy], pinned) << copy;
    }
  }
  // Pinning one layer to the choice that it has without pins does not change
  // the step time.
  auto stepOf = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--gpus", "2", "--tp", "2", "--micro-batch", "1",
                             "--recompute", "full", "--splits",
                             "column,row,head,vocab", "--json"});
    return nlohmann::json::parse(
               runExample("gpt2-1.2b", more).out)["prediction"]["step_time_s"]
        .get<double>();
  };
  EXPECT_DOUBLE_EQ(stepOf({"--pin", "h.7.mlp.fc1=column"}), stepOf({}));
}

TEST(Pins, HoldForStoredParameters) {
  for (int split : {0, 1}) {
    PlanOutcome outcome =
        planWith({split == 0 ? "wte.weight=[tp,-]" : "wte.weight=[-, tp]"});
    ASSERT_TRUE(outcome.best());
    const planner::ModelGraph &graph = outcome.problem->graph;
    for (const SegmentPlan &run : outcome.best()->plans())
      for (std::size_t p = 0; p < run.parameters.size(); ++p)
        if (run.parameters[p] && graph.parameters[p].name == "wte.weight") {
          EXPECT_EQ(planner::placementOf(run.parameters[p]->stored,
                                         planner::kTensorAxis),
                    split);
        }
  }
}

TEST(Pins, AreNotReportedOnOneRank) {
  PlanOutcome outcome = planWith({"h.*.mlp.fc1=column"}, "1");
  ASSERT_TRUE(outcome.best());
  EXPECT_THAT(outcome.problem->notes,
              testing::Contains("with tp 1 no tensor is split, so every pin "
                                "is satisfied"));
}

struct BadPin {
  const char *test;
  std::vector<std::string> pins;
  std::vector<std::string> errors;
};

void PrintTo(const BadPin &pin, std::ostream *out) { *out << pin.test; }

std::string nameOfTest(const testing::TestParamInfo<BadPin> &pin) {
  return pin.param.test;
}

class BadPins : public testing::TestWithParam<BadPin> {};

TEST_P(BadPins, AreRefused) {
  PlanOutcome outcome = planWith(GetParam().pins);
  EXPECT_FALSE(outcome.problem);
  EXPECT_EQ(outcome.errors, GetParam().errors);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPins,
    testing::Values(
        BadPin{"NoEquals",
               {"h.*.mlp.fc1"},
               {"pin \"h.*.mlp.fc1\": has no \"=\"; write PATTERN=VALUE, as in "
                "h.*.mlp.fc1=column"}},
        BadPin{"NoPattern",
               {"=column"},
               {"pin \"=column\": has nothing before \"=\""}},
        BadPin{"NoValue", {"wte="}, {"pin \"wte=\": has nothing after \"=\""}},
        BadPin{"UnknownValue",
               {"wte=vocabulary"},
               {"pin \"wte=vocabulary\": unknown value \"vocabulary\"; did you "
                "mean \"vocab\"? known: batch, sequence, column, row, head, "
                "vocab, expert, feature, hidden, replicated and partial, or a "
                "layout such as [tp,-]"}},
        BadPin{"NotClosed",
               {"wte.weight=[tp,-"},
               {"pin \"wte.weight=[tp,-\": \"[\" is not closed"}},
        BadPin{"UnknownAxis",
               {"wte.weight=[dp,-]"},
               {"pin \"wte.weight=[dp,-]\": entry 1 is \"dp\"; each is \"tp\" "
                "or \"-\" or, with two tensor axes, \"tp2\" or "
                "\"tp+tp2\""}},
        BadPin{"TwoWordsForOneAxis",
               {"h.*.mlp.fc1=column+row"},
               {"pin \"h.*.mlp.fc1=column+row\": \"column+row\" needs two "
                "tensor axes; allow them with --tp-axes 2"}},
        BadPin{"SecondOfOneAxis",
               {"wte.weight=[tp2,-]"},
               {"pin \"wte.weight=[tp2,-]\": \"tp2\" needs two tensor axes; "
                "allow them with --tp-axes 2"}},
        BadPin{"AxisTwice",
               {"wte.weight=[tp,tp]"},
               {"pin \"wte.weight=[tp,tp]\": tp can split one dimension, not "
                "2"}},
        BadPin{"NoMatch",
               {"h.2.mlp.fc1=column"},
               {"pin \"h.2.mlp.fc1=column\": matches no operator; the nearest "
                "are h.*.mlp.fc1, h.*.mlp.fc2 and h.*.mlp.act"}},
        BadPin{"ParameterWithWord",
               {"wte.weight=vocab"},
               {"pin \"wte.weight=vocab\": matches no operator, but matches "
                "parameters, which need a layout such as [tp,-]"}},
        BadPin{"OperatorWithLayout",
               {"wte=[tp,-]"},
               {"pin \"wte=[tp,-]\": matches no parameter, but matches "
                "operators, which need a word such as column"}},
        BadPin{"Conflict",
               {"h.*.mlp.fc1=column", "h.1.mlp.fc1=row"},
               {"pin \"h.*.mlp.fc1=column\" and pin \"h.1.mlp.fc1=row\" both "
                "match h.*.mlp.fc1 but have different values"}},
        BadPin{"ConflictOfParameters",
               {"wte.weight=[tp,-]", "*.weight=[-,tp]"},
               {"pin \"wte.weight=[tp,-]\" and pin \"*.weight=[-,tp]\" both "
                "match wte.weight but have different values",
                "pin \"*.weight=[-,tp]\": has 2 entries, but "
                "h.*.ln_1.weight has 1 dimension",
                "pin \"*.weight=[-,tp]\": has 2 entries, but "
                "h.*.ln_2.weight has 1 dimension",
                "pin \"*.weight=[-,tp]\": has 2 entries, but ln_f.weight has 1 "
                "dimension"}},
        BadPin{"Illegal",
               {"h.*.ln_1=column"},
               {"pin \"h.*.ln_1=column\": h.*.ln_1 cannot be column; it may be "
                "batch, sequence or replicated"}},
        BadPin{"Rank",
               {"wte.weight=[tp]"},
               {"pin \"wte.weight=[tp]\": has 1 entry, but wte.weight has 2 "
                "dimensions"}},
        BadPin{"SeveralAtOnce",
               {"foo", "wte=head"},
               {"pin \"foo\": has no \"=\"; write PATTERN=VALUE, as in "
                "h.*.mlp.fc1=column",
                "pin \"wte=head\": wte cannot be head; it may be batch, "
                "sequence, vocab, column, replicated or partial"}}),
    nameOfTest);

TEST(Pins, MustDivide) {
  Ran ran = runExample("tiny-gpt2",
                       {"--tp", "3", "--gpus", "3", "--global-batch", "3",
                        "--splits", "column,row,vocab", "--pin",
                        "h.*.mlp.fc1=column", "--pin", "wte.weight=[tp,-]"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, testing::HasSubstr(
                           "the column dimension of h.*.mlp.fc1 is 256, "
                           "which is not divisible by tp 3; tp may be 1 2 "
                           "4 8 16 32 64 128 256\n"));
  EXPECT_THAT(ran.err,
              testing::HasSubstr("dimension 0 of wte.weight is 512, which is "
                                 "not divisible by tp 3; tp may be 1 2 4 8"));
}

TEST(Pins, MustBeAmongTheSplits) {
  Ran ran =
      runExample("tiny-gpt2", {"--tp", "2", "--gpus", "2", "--splits",
                               "row,head", "--pin", "h.*.mlp.fc1=column"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_EQ(ran.err,
            "error: pin \"h.*.mlp.fc1=column\": h.*.mlp.fc1 cannot be column, "
            "which is not among the splits that are allowed; it may be row, "
            "replicated or partial\n");
}

// Each random pin is either obeyed by the plan or rejected.
TEST(Pins, AreNeverIgnored) {
  PlanOutcome free = planWith({});
  ASSERT_TRUE(free.best());
  std::vector<std::string> labels;
  for (const planner::SegmentGraph &segment : free.problem->graph.segments)
    for (const planner::Op &op : segment.ops)
      labels.push_back(op.name);
  const std::vector<std::string> words{"batch",   "sequence",   "column",
                                       "row",     "head",       "vocab",
                                       "feature", "replicated", "partial"};
  std::mt19937_64 random(7);
  auto pick = [&](const std::vector<std::string> &from) {
    return from[random() % from.size()];
  };
  int honoured = 0, refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<std::pair<std::string, std::string>> pinned;
    std::vector<std::string> pins;
    for (int i = 0; i < 2; ++i) {
      std::string label = pick(labels), name = label;
      if (std::size_t star = name.find('*'); star != name.npos && random() % 2)
        name.replace(star, 1, random() % 2 ? "1" : "0");
      pinned.emplace_back(name, pick(words));
      pins.push_back(name + '=' + pinned.back().second);
    }
    PlanOutcome outcome = planWith(pins);
    if (!outcome.errors.empty()) {
      ++refused;
      continue;
    }
    if (!outcome.best()) {
      // Each pin is legal by itself, and no plan obeys both.
      ASSERT_FALSE(outcome.result.rejections.empty());
      EXPECT_EQ(outcome.result.rejections.front().reason,
                planner::Rejection::Reason::pins)
          << pins[0] << ' ' << pins[1];
      ++refused;
      continue;
    }
    ++honoured;
    for (const auto &[name, word] : pinned) {
      std::string label = name;
      if (name.compare(0, 2, "h.") == 0)
        label = "h.*" + name.substr(name.find('.', 2));
      std::vector<std::string> found = wordsAt(outcome, label);
      ASSERT_FALSE(found.empty()) << name;
      bool one = name[0] == 'h' && name[2] != '*' && label != name;
      if (one)
        EXPECT_EQ(found[name[2] == '1' ? 1 : 0], word) << name;
      else
        EXPECT_THAT(found, testing::Each(word)) << name;
    }
  }
  EXPECT_GT(honoured, 50);
  EXPECT_GT(refused, 50);
}

} // namespace
} // namespace mtplan::tools
