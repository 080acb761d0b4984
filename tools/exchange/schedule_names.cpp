//===- schedule_names.cpp - PyTorch's pipeline schedules ------------------===//

#include "tools/exchange/schedule_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace mtplan::tools {

using planner::ScheduleKind;

namespace {

struct Row {
  std::string_view name;
  ScheduleKind kind;
  bool manyChunks;
  std::string_view note;
};

constexpr std::string_view kOneChunk =
    "planned as ZB-H1, which has one chunk a stage";

constexpr std::array kRows = {
    Row{"GPipe", ScheduleKind::gpipe, false, ""},
    Row{"1F1B", ScheduleKind::oneForwardOneBackward, false, ""},
    Row{"Interleaved1F1B", ScheduleKind::interleaved, true, ""},
    Row{"InterleavedZeroBubble", ScheduleKind::zeroBubble, false, kOneChunk},
    Row{"ZBVZeroBubble", ScheduleKind::zeroBubble, false, kOneChunk},
    Row{"ZBV", ScheduleKind::zeroBubble, false, kOneChunk},
};

bool sameWord(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

} // namespace

std::optional<NamedSchedule> scheduleNamed(const std::string &name) {
  const auto *row = std::ranges::find_if(
      kRows, [&](const Row &r) { return sameWord(r.name, name); });
  if (row == kRows.end())
    return std::nullopt;
  return NamedSchedule{row->kind, row->manyChunks, std::string(row->note)};
}

std::string scheduleNames() {
  std::string names;
  for (const Row &row : kRows)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

const char *pytorchName(ScheduleKind kind) {
  const auto *row = std::ranges::find(kRows, kind, &Row::kind);
  return row == kRows.end() ? "1F1B" : row->name.data();
}

} // namespace mtplan::tools
