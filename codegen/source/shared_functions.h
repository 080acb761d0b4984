//===- shared_functions.h - Functions that stages share ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SHARED_FUNCTIONS_H
#define MTPLAN_CODEGEN_SOURCE_SHARED_FUNCTIONS_H

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Describes a function of a stage.
struct StageFunction {
  std::string name;              ///< "h_forward"
  std::string arguments;         ///< "const Run &now"
  std::string templateName = {}; ///< if the name is not that of a template
  std::string kind = {};         ///< only functions of one kind can be shared
  Text comment;                  ///< what the function does
  /// Holds the statements. They read tensors and constants as `buf::x`, and
  /// pass `buf` on to templates.
  Text body = Text(1);
  /// Holds the statements of a function that is no template, if they differ.
  Text plainBody = Text(1);
  /// If set, the function needs the buffers of this part of the stage, which is
  /// a virtual stage.
  std::optional<std::size_t> part = {};
  bool isUnused = false;       ///< another function of the stage replaces it
  bool callsOwn = false;       ///< calls functions that are no templates
  bool callsTemplates = false; ///< passes `buf` on to templates
  std::string base = "buf";    ///< the struct that has what the function reads

  // shareFunctions() sets these members.
  bool isTemplate = false;  ///< a template over the buffers
  bool isShared = false;    ///< replaced by another function's template
  std::string call = {};    ///< the name of the function or the template
  std::string buffers = {}; ///< the template's argument in this stage
  bool isOfPart = false;    ///< the argument is the struct of the part

  bool isPlain() const { return !isTemplate && !isShared && !isUnused; }
  /// Returns what the stage's functions call: "h_forward<part1>".
  std::string callee() const {
    return isPlain() ? call : call + "<" + buffers + ">";
  }
  /// Returns what a function of the same stage calls if it becomes a template:
  /// "h_forward<buf>". Sets `caller.callsOwn` if it cannot become one.
  std::string calleeFor(StageFunction &caller) const;
  /// Appends the function.
  void write(Text &to) const;
};

/// Maps the members of `buf` that a template reads to members of a stage's own
/// `buf`.
using BufferNames = std::map<std::string, std::string>;

/// Describes a struct by which a stage calls templates that name its buffers
/// otherwise.
struct BufferStruct {
  std::string name, base; ///< "part1", "buf"
  BufferNames names;
};

/// Shares functions over stages, and over the parts of a stage.
class FunctionSharing {
public:
  explicit FunctionSharing(std::size_t stages) : structs(stages) {}

  /// Finds functions that are equal except for their buffers. The first of them
  /// becomes a template, and the others become calls of it.
  /// Quadratic in the functions.
  /// \param functions  the functions of each stage
  void share(std::vector<std::vector<StageFunction>> &functions);

  /// Returns the struct of a part of a stage: "part1", or "buf" if templates
  /// read only what `buf` has under the same name.
  std::string structOf(std::size_t stage, std::size_t part) const;
  /// Writes the structs of a stage that derive from `base`.
  void writeStructs(std::size_t stage, const std::string &base, Text &to) const;

private:
  void assignBuffers(std::size_t stage, StageFunction &function,
                     const BufferNames &own);
  /// Returns whether a function can be called with a struct that has the names
  /// `own`: the templates to which it passes the struct on must read the same
  /// buffers by it.
  bool fits(std::size_t stage, const StageFunction &function,
            const BufferNames &own) const;

  std::vector<std::vector<BufferStruct>> structs; ///< by stage
  std::set<std::string> names;                    ///< of all functions so far
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SHARED_FUNCTIONS_H
