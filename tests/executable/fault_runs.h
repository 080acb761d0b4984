//===- fault_runs.h - Runs of a small model whose files fail ----*- C++ -*-===//
//
// Runs are processes whose file calls pass through fault_shim.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EXECUTABLE_FAULT_RUNS_H
#define MTPLAN_TESTS_EXECUTABLE_FAULT_RUNS_H

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/executable/run_process.h"

namespace mtplan {

/// Describes the calls that the shim counts, and the fault that it injects.
struct FaultOrders {
  std::string under;    ///< a folder, or one file
  std::string action;   ///< an action of fault_shim.cpp; "": counts only
  long at = 0;          ///< number of the disturbed call, from 1; 0: each
  std::string log = {}; ///< file with a line per call; "": none
  /// The first counted call is the first whose "call path" ends with this text;
  /// "": the first call on a file under `under`.
  std::string since = {};
  int rank = -1; ///< the MPI rank whose calls are disturbed; -1: all
  /// Counts calls that read files instead of calls that change files.
  bool reads = false;
};

/// Returns why faults cannot be injected here; "" if they can.
std::string whyNoFaults();

/// Returns `command` with the shim loaded and configured.
std::vector<std::string> withFaults(const FaultOrders &orders,
                                    const std::vector<std::string> &command);

/// Runs a command and waits until no process of its session is left. Returns
/// how the command ended.
Ended endOfAll(const std::vector<std::string> &command);

/// Returns the names in a folder.
std::vector<std::string> namesIn(const std::string &folder);
/// Returns the names of files that are missing or different in one of two
/// folders.
std::vector<std::string> differing(const std::string &one,
                                   const std::string &other);
/// Returns "/step-00000004" for step 4.
std::string stepFolder(int step);
/// A process that SIGKILL ends has this exit code.
inline constexpr int kKilled = 128 + SIGKILL;

/// Compiles plans of a model whose step takes about a millisecond and whose
/// save makes about a hundred calls: "one" for one rank, "two" with tp 2,
/// "four" with dp 2 and tp 2. The plan "tall" (tp 2) is of another model. Its
/// save also reads files, because two ranks write parts of one tensor.
class FaultRuns : public testing::Test {
protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void TearDown() override;

  /// Returns the arguments of a run of 8 steps of the small model with a
  /// checkpoint every 2 steps and, unless `more` names other data, the data
  /// kText.
  static std::vector<std::string> arguments(const std::string &plan,
                                            const std::string &checkpoints,
                                            std::vector<std::string> more = {});
  static std::vector<std::string> threads(const std::string &plan,
                                          const std::string &checkpoints,
                                          std::vector<std::string> more = {});
  /// Returns the command of the same run as MPI processes, which leave no files
  /// when they die; empty if MPI is missing.
  /// \param grace  seconds from the death of one process until the others get
  /// SIGTERM, and from then to SIGKILL; "": as underMpi() sets them
  static std::vector<std::string> processes(int ranks, const std::string &plan,
                                            const std::string &checkpoints,
                                            std::vector<std::string> more = {},
                                            const std::string &grace = "0");
  /// Returns the arguments of a run of the small model that ends only by a
  /// signal.
  static std::vector<std::string> endless(const std::string &plan,
                                          const std::string &checkpoints);
  /// Kills a rank of an endless run after five steps, and returns how the run
  /// ends.
  static Ended endOfKilled(RunProcess &run, int rank);
  /// Sends the signal `by` to an endless run after five steps, and expects a
  /// checkpoint.
  ///
  /// \param tells  the function that sends it: RunProcess::signal or
  ///               signalGroup
  static void expectSavedWhenToldToEnd(RunProcess &run, int by = SIGTERM,
                                       void (RunProcess::*tells)(int)
                                           const = &RunProcess::signal);
  /// Returns a folder with the checkpoints and the "metrics" of a run of 8
  /// steps without faults.
  static std::string undisturbed(const std::string &plan);

  /// Returns the calls of a run without faults in order, each as "call path".
  /// The calls of a save begin with the first call on a path that names the
  /// step, and end before the first call on a path that names the next saved
  /// step.
  static std::vector<std::string> callsOf(const std::string &plan,
                                          const std::string &checkpoints);
  /// Returns the index of the first call that names `what`; calls.size() if
  /// there is none.
  static std::size_t firstOf(const std::vector<std::string> &calls,
                             const std::string &what);

  /// Returns the path `name` in the suite's folder. TearDown() removes all
  /// files there but plans, models and the results of undisturbed().
  static std::string place(const std::string &name) { return *folder / name; }

private:
  static TestFolder *folder;
  static std::map<std::string, std::string> references;
};

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_FAULT_RUNS_H
