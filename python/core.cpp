//===- core.cpp - The extension module mtplan._core -----------------------===//
//
// Binds engine.h. Slow functions release the interpreter's lock. Searches let
// Python handle signals, so that Ctrl-C ends a search, and report progress.
//
//===----------------------------------------------------------------------===//

#include <chrono>
#include <tuple>

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/engine.h"

namespace nb = nanobind;

namespace mtplan::python {

namespace {

using Released = nb::call_guard<nb::gil_scoped_release>;

// Calls into Python are at least 50 ms apart, because they need its lock.
class Pace {
public:
  bool isDue() {
    const Clock::time_point now = Clock::now();
    if (now - last < std::chrono::milliseconds(50))
      return false;
    last = now;
    return true;
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
};

// Lets Python handle signals. A handler's exception passes through the search.
Poll signals() {
  return [pace = Pace()]() mutable {
    if (!pace.isDue())
      return;
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
  };
}

// Calls `watch` no more often than Pace allows. An exception of `watch` passes
// through the search.
Watch paced(const Watch &watch) {
  if (!watch)
    return nullptr;
  return [pace = Pace(), watch](std::int64_t open, double fastest) mutable {
    if (pace.isDue())
      watch(open, fastest);
  };
}

// Raises mtplan.Error, or mtplan.NothingFits with the report.
void raise(const std::exception_ptr &thrown, void *) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure &failure) {
    nb::object errors = nb::module_::import_("mtplan._errors");
    nb::object type =
        errors.attr(failure.report.empty() ? "Error" : "NothingFits");
    nb::object error = failure.report.empty()
                           ? type(failure.errors)
                           : type(failure.errors, failure.report);
    PyErr_SetObject(type.ptr(), error.ptr());
  }
}

Request requestOf(const std::pair<std::string, std::string> &model,
                  std::string flags, std::string caller,
                  std::string machineText, std::string softwareText,
                  const std::pair<std::string, std::string> &imported,
                  std::string output) {
  return {{model.first, model.second},
          std::move(flags),
          std::move(caller),
          std::move(machineText),
          std::move(softwareText),
          {imported.first, imported.second},
          std::move(output)};
}

} // namespace

// NOLINTNEXTLINE: the macro's code is nanobind's.
NB_MODULE(_core, module) {
  using namespace nb::literals;
  module.doc() = "The planner in C++; the package mtplan documents it.";
  nb::register_exception_translator(raise);

  nb::class_<Request>(module, "Request")
      .def(
          "__init__",
          [](Request *self, const std::pair<std::string, std::string> &model,
             std::string flags, std::string caller, std::string machine,
             std::string software,
             const std::pair<std::string, std::string> &imported,
             std::string output) {
            new (self) Request(requestOf(
                model, std::move(flags), std::move(caller), std::move(machine),
                std::move(software), imported, std::move(output)));
          },
          "model"_a, "flags"_a, "caller"_a, "machine"_a = "", "software"_a = "",
          "imported"_a = std::pair<std::string, std::string>(),
          "output"_a = "");

  nb::class_<FoundPlan>(module, "FoundPlan")
      .def("json", &FoundPlan::json, "timings"_a, Released())
      .def("screen", &FoundPlan::screen, Released())
      .def("summary", &FoundPlan::summary)
      .def("page", &FoundPlan::page, Released())
      .def("saved", &FoundPlan::saved, Released())
      .def("trace", &FoundPlan::trace, Released())
      .def("verified", &FoundPlan::verified, Released())
      .def("explain", &FoundPlan::explain, Released())
      .def(
          "why",
          [](const FoundPlan &plan, const std::string &words) {
            return plan.why(words, signals());
          },
          "words"_a, Released())
      .def(
          "exported",
          [](const FoundPlan &plan, const std::string &notation) {
            ExportedText exported = plan.exported(notation);
            return std::pair(exported.text, exported.notes);
          },
          "notation"_a, Released())
      .def("compile", &FoundPlan::compile, "folder"_a, "with_source"_a,
           Released());

  module.def(
      "search",
      [](const Request &request, const Watch &watch) {
        return FoundPlan::search(request, signals(), paced(watch));
      },
      "request"_a, "watch"_a.none() = nb::none(), Released());
  module.def("load", &FoundPlan::load, "file"_a, "model"_a, "flags"_a,
             "caller"_a, Released());
  module.def(
      "sweep",
      [](const Request &request, const std::string &names, const Watch &watch) {
        return sweep(request, names, signals(), paced(watch));
      },
      "request"_a, "names"_a, "watch"_a.none() = nb::none(), Released());
  module.def("flags", [] {
    std::vector<std::tuple<std::string, std::string, std::string, std::string>>
        rows;
    for (const Flag &flag : flags())
      rows.emplace_back(flag.key, flag.type, flag.help, flag.group);
    return rows;
  });
  module.def("machine_names", &machineNames);
  module.def("machine_text", &machineText, "name"_a);
  module.def("check_machine", &checkMachine, "text"_a, "name"_a);
  module.def("run_command", &runCommand, "arguments"_a, Released());
  module.attr("version") = MTPLAN_VERSION;
}

} // namespace mtplan::python
