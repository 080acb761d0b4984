//===- engine.h - The planner as the Python package calls it ----*- C++ -*-===//
//
// This interface has plain values only, so that the sources that include
// nanobind need no MLIR, and those that include MLIR no run-time type
// information. A request is what the command line would be: a model, and flags
// by their keys in constraints files.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PYTHON_ENGINE_H
#define MTPLAN_PYTHON_ENGINE_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mtplan::python {

/// Is thrown for bad input, and if no plan fits.
struct Failure {
  std::vector<std::string> errors; ///< the command's lines, without "error: "
  /// Holds the JSON report if no plan fits, else "".
  std::string report;
};

/// Names a text: a file to read or, if `text` is set, a text and its name in
/// messages.
struct Source {
  std::string name, text;
};

struct Request {
  Source model;
  /// Holds a JSON object of flags by key, such as {"gpus": 8, "pp": [1, 2]}.
  /// Messages about its keys begin with `caller`.
  std::string flags, caller;
  /// Holds texts of a machine and a software file, or "". Messages name the
  /// files by the flags "hardware" and "software".
  std::string machineText, softwareText;
  Source imported;    ///< another trainer's configuration, or nothing
  std::string output; ///< folder for the compiled plan, or ""
};

/// Searches call this often, on the calling thread. It may throw, which ends
/// the search.
using Poll = std::function<void()>;

/// Holds the text of an export, and what the notation cannot express.
struct ExportedText {
  std::string text;
  std::vector<std::string> notes;
};

/// Holds the result of a search that found a plan. Its functions may be called
/// from several threads, one after another.
class FoundPlan {
public:
  /// Searches for a plan, and compiles it if the request names an output.
  /// \throws Failure
  static std::unique_ptr<FoundPlan> search(const Request &request,
                                           const Poll &poll);
  /// Reads a plan that saved() wrote.
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
  std::string summary() const;          ///< one line
  std::string page() const;             ///< HTML
  std::string saved() const;            ///< docs/plan-files.md
  std::string trace() const;            ///< the simulated step, for Perfetto
  /// Returns a sentence for the plan and for each mesh that lost.
  std::vector<std::string> explain() const;
  /// Returns a sentence on how the best plan under `words`, such as
  /// "tp=8 zero=1", differs.
  /// \throws Failure
  std::string why(const std::string &words, const Poll &poll) const;
  /// \param notation  a word of --export
  /// \throws Failure
  ExportedText exported(const std::string &notation) const;
  /// Writes the folder that mtrun reads.
  /// \throws Failure
  void compile(const std::string &folder, bool withSource) const;

private:
  struct State;
  explicit FoundPlan(std::unique_ptr<State> found);
  std::unique_ptr<State> state;
};

/// Returns the CSV of --sweep.
/// \param names  as after --sweep: "tp,pp"
/// \throws Failure
std::string sweep(const Request &request, const std::string &names,
                  const Poll &poll);

/// Describes a flag of the command that is also a key of a request.
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

/// Runs the command `mtplan`. Returns its exit status.
int runCommand(const std::vector<std::string> &arguments);

} // namespace mtplan::python

#endif // MTPLAN_PYTHON_ENGINE_H
