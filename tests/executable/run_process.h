//===- run_process.h - mtrun as processes, watched by a test ----*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_RUN_PROCESS_H
#define MTPLAN_TESTS_EXECUTABLE_RUN_PROCESS_H

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace mtplan {

/// What tests train on.
inline const std::string kText =
    std::string(MTPLAN_SOURCE_DIR) + "/examples/data/opticks.txt";

/// mtrun without a process of its own.
struct Ran {
  int code = -1;
  std::string out, err;
};
Ran runHere(const std::vector<std::string> &arguments);

/// How a command ended.
struct Ended {
  int code = -1; ///< 128 + number if by a signal
  std::string out;
  /// The rest of the lines that start so.
  std::vector<std::string> lines(const std::string &start) const;
  /// What a process rank said last.
  std::string said(int rank) const;
};

/// A command in a session of its own, so that nothing that it starts is lost
/// sight of. What is left of it is killed with this.
class RunProcess {
public:
  explicit RunProcess(const std::vector<std::string> &command);
  ~RunProcess();
  RunProcess(const RunProcess &) = delete;
  RunProcess &operator=(const RunProcess &) = delete;

  /// Whether `text` is written before the command ends, or two minutes have
  /// passed.
  bool writes(const std::string &text);
  /// The process that a launcher made this rank; -1: there is none.
  pid_t processOf(int rank) const;
  /// To what was started itself.
  void signal(int number) const;
  /// To all processes of its group, and to that one once more, as `timeout`
  /// does.
  void signalGroup(int number) const;
  /// Waits; after three minutes the command is killed.
  Ended end();
  /// Processes of its session that are there, this moment.
  std::vector<pid_t> left() const;

private:
  std::string written() const;
  bool hasEnded();

  pid_t session = -1;
  int status = -1;
  bool ended = false;
  std::string file;
};

/// `mpirun -np <ranks> mtrun <arguments>`; empty where it cannot be run.
std::vector<std::string> underMpi(int ranks,
                                  const std::vector<std::string> &arguments);

/// `mtrun <arguments>` as `ranks` processes with the variables that torchrun
/// gives those of one host, or srun without MPI. A shell starts them, hands
/// SIGTERM on, and ends with 1 if one did not end with 0. Ports are nobody
/// else's.
std::vector<std::string>
underTorchrun(int ranks, const std::vector<std::string> &arguments);
std::vector<std::string> underSrun(int ranks,
                                   const std::vector<std::string> &arguments);

/// A folder for a test, gone with it.
class TestFolder {
public:
  /// \param parent  "": where temporary files go
  explicit TestFolder(const std::string &parent = "");
  ~TestFolder();
  TestFolder(const TestFolder &) = delete;
  TestFolder &operator=(const TestFolder &) = delete;
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }

private:
  std::string path;
};

/// Compiles an example, or a model file, to `folder`, for CPU ranks unless the
/// flags say otherwise; what mtplan had to say against it.
std::string compileExample(const std::string &model, const std::string &folder,
                           std::vector<std::string> flags);

std::string contentOf(const std::string &file);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_RUN_PROCESS_H
