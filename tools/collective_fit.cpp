//===- collective_fit.cpp - Errors of predicted collectives ---------------===//
//
//   collective_fit <collectives.csv> <machines.csv> [--rows]
//
// Prices every measured all-reduce from 1 MiB to 1 GiB on hardware with a
// machine file. Prints the median error of each pair of source and hardware,
// and of all priced rows; --rows also prints each row.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tools/text/text_file.h"
#include "tools/validate/collective_rows.h"

namespace {

using mtplan::tools::CollectiveRow;

std::string readFile(const std::string &path) {
  std::vector<std::string> errors;
  std::optional<std::string> text = mtplan::tools::readTextFile(path, errors);
  if (!text)
    throw std::runtime_error(errors.front());
  return std::move(*text);
}

void printGroup(const std::vector<CollectiveRow> &rows) {
  const CollectiveRow &first = rows.front();
  std::string name = first.source + ", " + first.hardware;
  if (first.predicted <= 0) {
    std::printf("%5zu  %8s  %s\n", rows.size(), "left out", name.c_str());
    return;
  }
  std::printf("%5zu  %7.1f%%  %s\n", rows.size(),
              100 * mtplan::tools::medianError(rows), name.c_str());
}

int run(const std::string &table, const std::string &map, bool each) {
  const std::vector<mtplan::tools::MachineOf> machines =
      mtplan::tools::readMachineMap(readFile(map));
  constexpr double kMiB = 1024.0 * 1024.0;
  std::vector<CollectiveRow> rows =
      mtplan::tools::readRows(readFile(table), machines, kMiB, 1024 * kMiB);
  if (each)
    for (const CollectiveRow &row : rows)
      std::printf("line %4d  %4d GPUs  %8.1f MiB  measured %9.1f us  predicted "
                  "%9.1f us  %+6.1f%%\n",
                  row.line, row.gpus, row.bytes / kMiB, row.measured * 1e6,
                  row.predicted * 1e6, 100 * row.error());
  std::printf(" rows    median  source, hardware\n");
  // Each group has the rows of one source and hardware, in order of appearance.
  std::vector<std::vector<CollectiveRow>> groups;
  std::size_t priced = 0;
  for (const CollectiveRow &row : rows) {
    priced += row.predicted > 0 ? 1 : 0;
    auto group = std::ranges::find_if(groups, [&](const auto &rowsOf) {
      return rowsOf.front().hardware == row.hardware &&
             rowsOf.front().source == row.source;
    });
    if (group == groups.end())
      groups.push_back({row});
    else
      group->push_back(row);
  }
  for (const std::vector<CollectiveRow> &group : groups)
    printGroup(group);
  for (const auto &entry : machines)
    if (entry.machine.empty())
      std::printf("left out: %s: %s\n", entry.hardware.c_str(),
                  entry.reason.c_str());
  if (priced == 0)
    throw std::runtime_error("no row could be priced");
  std::printf("%5zu  %7.1f%%  all\n", priced,
              100 * mtplan::tools::medianError(rows));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  bool each = argc == 4 && std::string(argv[3]) == "--rows";
  if (argc != 3 && !each) {
    std::fputs(
        "usage: collective_fit <collectives.csv> <machines.csv> [--rows]\n",
        stderr);
    return 2;
  }
  try {
    return run(argv[1], argv[2], each);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "collective_fit: %s\n", error.what());
    return 2;
  }
}
