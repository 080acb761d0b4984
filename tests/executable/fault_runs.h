//===- fault_runs.h - Runs of a small model whose files fail ----*- C++ -*-===//
//
// As processes: what they do to a folder goes through fault_shim.cpp.
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

/// What the shim is to do with calls on what lies under a folder.
struct FaultOrders {
  std::string under;    ///< a folder, or one file
  std::string deed;     ///< as fault_shim.cpp has it; "": only count
  long at = 0;          ///< number of the call, from 1; 0: each
  std::string log = {}; ///< where each call is written; "": nowhere
  /// Counts from the first call whose "call path" ends so; "": from the first.
  std::string since = {};
  int rank = -1;      ///< of MPI, which alone is meddled with; -1: all
  bool reads = false; ///< calls that read, in place of those that change
};

/// Why no run can be given faults here; "" if they can.
std::string whyNoFaults();

/// `command` with the shim loaded and its orders.
std::vector<std::string> withFaults(const FaultOrders &orders,
                                    const std::vector<std::string> &command);

/// How a command ended, once nothing of its session is left.
Ended endOfAll(const std::vector<std::string> &command);

/// Names of what is in a folder.
std::vector<std::string> namesIn(const std::string &folder);
/// Of two folders of files: names of those that not both have, or not with the
/// same bytes.
std::vector<std::string> differing(const std::string &one,
                                   const std::string &other);
std::vector<std::string> linesOf(const std::string &file);
/// The lines of --metrics up to what are times.
std::vector<std::string> numbersOf(const std::string &metrics);

/// A model whose step takes a millisecond and whose save a hundred calls,
/// compiled for one rank ("one"), two ("two", tp 2) and four ("four", dp 2 and
/// tp 2). And one ("tall", tp 2) whose save also reads: it has tensors that two
/// ranks write.
class FaultRuns : public testing::Test {
protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void TearDown() override;

  /// Of the small model: 8 steps with a checkpoint every 2, and the usual data,
  /// if `more` has no others.
  static std::vector<std::string> arguments(const std::string &plan,
                                            const std::string &checkpoints,
                                            std::vector<std::string> more = {});
  static std::vector<std::string> threads(const std::string &plan,
                                          const std::string &checkpoints,
                                          std::vector<std::string> more = {});
  /// The same as processes of MPI, which leave no files when they die; empty
  /// where they cannot be had.
  /// \param grace  seconds from when one has died until the others get SIGTERM,
  ///               and from then to SIGKILL; "": those of underMpi
  static std::vector<std::string> processes(int ranks, const std::string &plan,
                                            const std::string &checkpoints,
                                            std::vector<std::string> more = {},
                                            const std::string &grace = "0");
  /// Of a run of the small model that goes on until it is told to end.
  static std::vector<std::string> endless(const std::string &plan,
                                          const std::string &checkpoints);
  /// How such a run ends once a rank of it was killed, after five steps.
  static Ended endOfKilled(RunProcess &run, int rank);
  /// Told to end after five steps, its ranks leave a checkpoint.
  /// \param tells  RunProcess::signal or signalGroup
  static void expectSavedWhenToldToEnd(RunProcess &run, int by = SIGTERM,
                                       void (RunProcess::*tells)(int)
                                           const = &RunProcess::signal);
  /// Checkpoints of all steps of such a run of 8, and its "metrics".
  static std::string undisturbed(const std::string &plan);

  /// The calls of such a run, "call path", in order; those of a save are from
  /// the first on a path with its step up to the first on one with the next.
  static std::vector<std::string> callsOf(const std::string &plan,
                                          const std::string &checkpoints);
  /// Index of the first that names `what`; their number if none does.
  static std::size_t firstOf(const std::vector<std::string> &calls,
                             const std::string &what);

  /// Where a test may write; empty at its beginning.
  static std::string place(const std::string &name) { return *folder / name; }

private:
  static TestFolder *folder;
  static std::map<std::string, std::string> references;
};

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_FAULT_RUNS_H
