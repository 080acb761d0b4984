//===- program_headers.h - Headers beside an emitted program ----*- C++ -*-===//
//
// Kernels and helpers of an emitted program have the text of the runtime's own
// headers under runtime/, which need nothing but CUDA and each other. The
// program gets a few headers, each of which joins the files of one concern.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_PROGRAM_HEADERS_H
#define MTPLAN_CODEGEN_SOURCE_PROGRAM_HEADERS_H

#include <set>
#include <span>
#include <string>
#include <vector>

namespace mtplan::codegen {

/// A file of the runtime whose text is embedded.
struct SourceFile {
  const char *path; ///< "runtime/cuda/device/norm.cuh"
  const char *text;
};

/// Returns all embedded files (written by embed_source.cmake).
std::span<const SourceFile> sourceFiles();

/// A header of the emitted program.
struct ProgramHeader {
  std::string path;    ///< "kernels/norm.cuh", within the program's folder
  std::string summary; ///< one line for the map of the program
  std::string text;
  bool isNeeded = false; ///< train.cu itself calls what it declares
};

/// Returns the headers that hold `files` and everything these include, in an
/// order in which each includes only earlier ones. A header holds only the
/// files that are needed; a .h brings its .cpp along.
/// \throws std::logic_error if a file is not embedded or has no header
std::vector<ProgramHeader> programHeaders(const std::set<std::string> &files);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PROGRAM_HEADERS_H
