//===- run_process.h - Runs mtrun as processes ------------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_RUN_PROCESS_H
#define MTPLAN_TESTS_EXECUTABLE_RUN_PROCESS_H

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/base/test_helpers.h"

namespace mtplan {

/// Names the text file that tests train on.
inline const std::string kText =
    std::string(MTPLAN_SOURCE_DIR) + "/examples/data/opticks.txt";

/// Holds the result of runHere(), which runs mtrun within the test's process.
struct Ran {
  int code = -1;
  std::string out, err;
};
Ran runHere(const std::vector<std::string> &arguments);

/// Holds the exit code and output of a command.
struct Ended {
  int code = -1; ///< 128 + number if ended by a signal
  std::string out;
  /// Returns the rest of the lines that start with `start`.
  std::vector<std::string> lines(const std::string &start) const;
  /// Returns the last message of a process rank.
  std::string lastMessage(int rank) const;
};

/// Runs a command in a session of its own, so that all its processes can be
/// found. The destructor kills its remaining processes.
class RunProcess {
public:
  explicit RunProcess(const std::vector<std::string> &command);
  ~RunProcess();
  RunProcess(const RunProcess &) = delete;
  RunProcess &operator=(const RunProcess &) = delete;

  /// Returns whether `text` is written before the command ends and within two
  /// minutes.
  bool writes(const std::string &text);
  /// Returns the process that a launcher started for `rank`; -1 if there is
  /// none.
  pid_t processOf(int rank) const;
  /// Sends a signal to the started process itself.
  void signal(int number) const;
  /// Sends a signal to all processes of the started process's group, and to
  /// that process once more, as `timeout` does.
  void signalGroup(int number) const;
  /// Waits for the command to end, and kills it after three minutes.
  Ended end();
  /// Returns the processes of the session that exist now.
  std::vector<pid_t> left() const;
  /// Waits until no process of the session exists, because a killed process may
  /// take a moment to disappear. Returns false after 30 seconds.
  bool isEmptied() const;

private:
  std::string written() const;
  bool hasEnded();

  pid_t session = -1;
  int status = -1;
  bool ended = false;
  std::string file;
};

/// Returns `mpirun -np <ranks> mtrun <arguments>`; empty if MPI is missing.
std::vector<std::string> underMpi(int ranks,
                                  const std::vector<std::string> &arguments);

/// Returns a command that runs `mtrun <arguments>` as `ranks` processes, with
/// the variables that torchrun or srun (without MPI) sets on one host. A shell
/// starts the processes, forwards SIGTERM, and exits with 1 if a process fails.
/// No other test uses the ports of the processes.
std::vector<std::string>
underTorchrun(int ranks, const std::vector<std::string> &arguments);
std::vector<std::string> underSrun(int ranks,
                                   const std::vector<std::string> &arguments);

/// Compiles an example or a model file to `folder`, for CPU ranks unless the
/// flags choose other hardware. Returns the errors of mtplan.
std::string compileExample(const std::string &model, const std::string &folder,
                           std::vector<std::string> flags);

std::string contentOf(const std::string &file);
std::vector<std::string> linesOf(const std::string &file);
/// Returns the lines of a --metrics file without the times.
std::vector<std::string> numbersOf(const std::string &metrics);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_RUN_PROCESS_H
