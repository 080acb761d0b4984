//===- named_files.h - Files that a command names ---------------*- C++ -*-===//
//
// Nothing that is read is written over, nor anything written twice.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_NAMED_FILES_H
#define MTPLAN_RUNTIME_DATA_NAMED_FILES_H

#include <string>
#include <utility>
#include <vector>

namespace mtplan::runtime {

/// Whether both are names of one file, so that who writes the one takes it from
/// who reads or writes the other; also of one that is still to be made. No
/// device or folder is.
bool isSameFile(const std::string &one, const std::string &other);

/// Those of one command, each with what names it: an option or an argument.
class NamedFiles {
public:
  /// \param file  ""; or one that is read
  void read(const std::string &by, const std::string &file);

  /// \param file  ""; or one that is written
  /// \return what speaks against it, to be said behind its name: "is what
  ///         --load names; give it another name"; "" if nothing does
  std::string write(const std::string &by, const std::string &file);

private:
  std::vector<std::pair<std::string, std::string>> named; ///< by whom, which
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_NAMED_FILES_H
