//===- program_headers.h - Headers beside an emitted program ----*- C++ -*-===//
//
// An emitted program contains the kernels and helpers of the runtime as text.
// These runtime files include only each other and the headers of C++, CUDA and
// NCCL. Each header of the program contains the runtime files of one subject.
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_PROGRAM_HEADERS_H
#define MTPLAN_CODEGEN_SOURCE_PROGRAM_HEADERS_H

#include <set>
#include <span>
#include <string>
#include <vector>

namespace mtplan::codegen {

/// Holds a runtime file, which embed_source.cmake embeds in this library.
struct SourceFile {
  const char *path; ///< "runtime/cuda/device/norm.cuh"
  const char *text;
};

std::span<const SourceFile> sourceFiles();

struct ProgramHeader {
  std::string path;    ///< "kernels/norm.cuh", within the program's folder
  std::string summary; ///< for the list of files in train.cu
  std::string text;
  bool isNeeded = false; ///< whether train.cu includes the header
};

/// Returns the headers that contain `files` and all files that these include,
/// but no other files. A header includes only earlier headers. If a .h file has
/// a .cpp file beside it, the headers contain both.
/// \throws std::logic_error if a file is not embedded or has no header
std::vector<ProgramHeader> programHeaders(const std::set<std::string> &files);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PROGRAM_HEADERS_H
