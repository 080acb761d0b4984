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

struct StageFunction {
  std::string name;              ///< "h_forward"
  std::string arguments;         ///< "const Run &now"
  std::string templateName = {}; ///< the template's name if it is not `name`
  std::string kind = {};         ///< only functions of one kind can be shared
  Text comment;
  /// Holds the statements, which read tensors and constants as `buf::x` and
  /// pass `buf` on to templates.
  Text body = Text(1);
  /// Holds the statements of the plain function if they differ from `body`.
  Text plainBody = Text(1);
  /// If set, the function reads the buffers of this virtual stage.
  std::optional<std::size_t> part = {};
  bool isUnused = false;       ///< replaced by a function of the same stage
  bool callsOwn = false;       ///< calls functions that are not templates
  bool callsTemplates = false; ///< passes `buf` on to templates
  std::string base = "buf";    ///< the struct from which the function reads

  // FunctionSharing::share() sets these members.
  bool isTemplate = false;  ///< a template over the buffers
  bool isShared = false;    ///< replaced by another function's template
  std::string call = {};    ///< the name of the function or the template
  std::string buffers = {}; ///< the template's argument in this stage
  bool isOfPart = false;    ///< the argument is the virtual stage's struct

  bool isPlain() const { return !isTemplate && !isShared && !isUnused; }
  /// Returns the expression by which the stage calls the function:
  /// "h_forward<part1>".
  std::string callee() const {
    return isPlain() ? call : call + "<" + buffers + ">";
  }
  /// Returns the expression by which `caller` calls this function if `caller`
  /// becomes a template: "h_forward<buf>". Sets `caller.callsOwn` if `caller`
  /// cannot become a template.
  std::string calleeFor(StageFunction &caller) const;
  void write(Text &to) const;
};

/// Maps members of `buf` that a template reads to members of a stage's `buf`.
using BufferNames = std::map<std::string, std::string>;

/// Describes a struct that gives a stage's buffers the names that a template
/// uses.
struct BufferStruct {
  std::string name, base; ///< "part1", "buf"
  BufferNames names;
};

/// Shares functions between stages, and between the virtual stages of a stage.
class FunctionSharing {
public:
  explicit FunctionSharing(std::size_t stages) : structs(stages) {}

  /// Finds functions that are equal except for their buffers. The first of
  /// these functions becomes a template, and calls of the other functions
  /// become calls of the template. The time is quadratic in the number of
  /// functions.
  void share(std::vector<std::vector<StageFunction>> &functions);

  /// Returns the struct of a virtual stage: "part1", or "buf" if templates use
  /// the same names as `buf`.
  std::string structOf(std::size_t stage, std::size_t part) const;
  void writeStructs(std::size_t stage, const std::string &base, Text &to) const;

private:
  void assignBuffers(std::size_t stage, StageFunction &function,
                     const BufferNames &own);
  /// Returns whether a function can use a template's names for its buffers.
  /// `own` maps the template's names to the function's own names. If the
  /// function calls other templates, it passes its struct on to these
  /// templates. In this case, the struct must not already map a name in `own`
  /// to another buffer.
  bool fits(std::size_t stage, const StageFunction &function,
            const BufferNames &own) const;

  std::vector<std::vector<BufferStruct>> structs; ///< by stage
  std::set<std::string> names;                    ///< of all functions so far
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SHARED_FUNCTIONS_H
