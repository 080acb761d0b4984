//===- engine.h - The planner as the Python package calls it ----*- C++ -*-===//
//
// This interface has plain values only, because sources with nanobind need
// run-time type information and MLIR is built without it. A request corresponds
// to a command line: a model, and flags by their keys in constraints files.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PYTHON_ENGINE_H
#define MTPLAN_PYTHON_ENGINE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mtplan::python {

/// Reports bad input, or that no plan fits.
struct Failure {
  std::vector<std::string> errors; ///< lines of the command, without "error: "
  std::string report;              ///< JSON report if no plan fits, else ""
};

/// Names a file to read or, if `text` is set, holds a text and its name in
/// messages.
struct Source {
  std::string name, text;
};

struct Request {
  Source model;
  /// `flags` is a JSON object such as {"gpus": 8, "pp": [1, 2]}. Messages about
  /// its keys begin with `caller`.
  std::string flags, caller;
  /// These are texts of files, or "". Messages name the files "hardware" and
  /// "software".
  std::string machineText, softwareText;
  Source imported;    ///< another trainer's configuration, or nothing
  std::string output; ///< folder for the compiled plan, or ""
};

/// Searches call this function often, on the calling thread. An exception ends
/// the search.
using Poll = std::function<void()>;

/// Searches call this function like Poll, with the number of configurations
/// left to decide, and with the step of the fastest plan so far in seconds, or
/// infinity. An empty function is allowed.
using Watch = std::function<void(std::int64_t open, double fastest)>;

struct ExportedText {
  std::string text;
  std::vector<std::string> notes;
};

/// Holds the result of a search that found a plan. Threads may call its
/// functions concurrently, because a lock serializes the calls.
class FoundPlan {
public:
  /// Also compiles the plan if the request names an output.
  /// \throws Failure
  static std::unique_ptr<FoundPlan>
  search(const Request &request, const Poll &poll, const Watch &watch);
  /// Reads a file with the text of saved().
  /// \param model  file of the model, or "" for the saved plan's
  /// \param flags  JSON object of the flags that may be given beside --load
  /// \throws Failure
  static std::unique_ptr<FoundPlan> load(const std::string &file,
                                         const std::string &model,
                                         const std::string &flags,
                                         const std::string &caller);
  ~FoundPlan();

  std::string json(bool timings) const; ///< docs/json-output.md
  std::string screen() const;           ///< what the command prints
  std::string summary() const;
  std::string page() const;
  std::string saved() const; ///< docs/plan-files.md
  std::string trace() const; ///< the simulated step, for Perfetto
  /// Proves the plan as `mtplan --verify` does, and returns the text of json()
  /// with the additional key `proof`.
  /// \throws Failure
  std::string verified() const;
  /// Returns a line for the plan, each listed alternative, and each mesh
  /// without a plan.
  std::vector<std::string> explain() const;
  /// Compares the plan with the best plan under `words`, such as "tp=8 zero=1".
  /// \throws Failure
  std::string why(const std::string &words, const Poll &poll) const;
  /// \param notation  value of --export
  /// \throws Failure
  ExportedText exported(const std::string &notation) const;
  /// Writes a folder for mtrun.
  /// \throws Failure
  void compile(const std::string &folder, bool withSource) const;

private:
  struct State;
  explicit FoundPlan(std::unique_ptr<State> found);
  std::unique_ptr<State> state;
};

/// Returns the CSV of `mtplan --sweep`.
/// \param names  value of --sweep, such as "tp,pp"
/// \throws Failure
std::string sweep(const Request &request, const std::string &names,
                  const Poll &poll, const Watch &watch);

struct Flag {
  std::string key, type, help, group;
};
std::vector<Flag> flags();

std::vector<std::string> machineNames();
/// Returns the text of a preset or a file.
/// \throws Failure
std::string machineText(const std::string &nameOrPath);
/// Checks the text of a machine file.
/// \param name  begins each message
/// \throws Failure
void checkMachine(const std::string &text, const std::string &name);

int runCommand(const std::vector<std::string> &arguments);

} // namespace mtplan::python

#endif // MTPLAN_PYTHON_ENGINE_H
