//===- manifest_test.cpp - The manifest of a checkpoint -------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/manifest.h"
#include "runtime/data/digest.h"

namespace mtplan::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Manifest example() {
  Manifest manifest;
  manifest.run.step = 12;
  manifest.run.samples = 96;
  manifest.run.updates = 11;
  manifest.run.seed = 18446744073709551615U;
  manifest.run.scaler = LossScalerState{1024.5, 3, -2};
  manifest.run.skipped = 1;
  manifest.run.model = "tiny \"model\"";
  manifest.run.globalBatch = 8;
  manifest.run.sequence = 32;
  manifest.run.plan = "0123";
  manifest.run.data = "4567";
  manifest.run.options = {{"--lr", "0.001"}, {"--steps", "20"}};
  manifest.files = {{"weights.safetensors", 4000, "89ab"}};
  manifest.tensors = {{"a.weight", "weights.safetensors", "cdef"},
                      {"b.weight", "weights.safetensors", "0000"}};
  return manifest;
}

// Returns the error of a manifest; "" if it is valid.
std::string errorOf(const std::string &text) {
  try {
    parseManifest("m.json", text);
  } catch (const CheckpointError &error) {
    return error.what();
  }
  return "";
}

// Returns the example's text after a replacement, with a valid checksum.
std::string changed(const std::string &from, const std::string &to) {
  std::string text = manifestText(example());
  auto put = [&](const std::string &what, const std::string &by) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
  };
  const std::size_t at = text.find("\"checksum\": \"") + 13;
  text.erase(at, 32);
  put(from, to);
  put("\"checksum\": \"\"", "\"checksum\": \"" + textOf(digestOf(text)) + '"');
  return text;
}

TEST(Manifest, IsReadAsItWasWritten) {
  EXPECT_EQ(parseManifest("m.json", manifestText(example())), example());
  Manifest without = example();
  without.run.scaler.reset();
  without.tensors.clear();
  EXPECT_EQ(parseManifest("m.json", manifestText(without)), without);
}

TEST(Manifest, ErrorsHaveAPointer) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"\"step\": 12", "\"step\": -1", "m.json: /run/step: "},
      {"\"step\": 12", "\"step\": 1.5", "m.json: /run/step: "},
      {"\"step\": 12,", "", "m.json: /run/step: is missing"},
      {"\"seed\": \"18446744073709551615\"",
       "\"seed\": \"18446744073709551616\"", "m.json: /run/seed: "},
      {"\"seed\": \"1", "\"seed\": \" 1", "m.json: /run/seed: "},
      {"1024.5", "\"x\"", "m.json: /run/loss_scale/scale: "},
      {"\"clean\": 3", "\"clean\": -1", "m.json: /run/loss_scale/clean: "},
      {"\"--steps\": \"20\"", "\"--steps\": 20",
       "m.json: /run/options/--steps: "},
      {"\"bytes\": 4000", "\"bytes\": -4", "m.json: /files/0/bytes: "},
      {"\"bytes\": 4000", "\"size\": 4000", "m.json: /files/0/size: "},
      {"\"0000\"", "7", "m.json: /tensors/1/checksum: "},
      {"mtplan checkpoint", "other checkpoint", "m.json: /format: "},
      {"\"samples\"", "\"sample\"", "m.json: /run/sample: unknown key; the "},
      {"\"run\"", "\"format\": \"x\", \"run\"", "m.json: "}};
  for (const auto &[from, to, words] : cases)
    EXPECT_THAT(errorOf(changed(from, to)), StartsWith(words)) << to;
  for (const char *text : {"", "[]", "{}", "1", "{\"format\": 1}"})
    EXPECT_THAT(errorOf(text), StartsWith("m.json: ")) << text;
}

TEST(Manifest, OtherVersionIsRecognised) {
  const std::string text =
      changed("\"version\": 1,", "\"version\": 7, \"later\": {},");
  EXPECT_THAT([&] { parseManifest("m.json", text); },
              testing::ThrowsMessage<ForeignVersion>(
                  "m.json: /version: is 7, but this mtrun reads version 1"));
  // A damaged manifest may have any version, so it is not reported as foreign.
  std::string damaged = manifestText(example());
  damaged.replace(damaged.find("\"version\": 1"), 12, "\"version\": 7");
  EXPECT_THAT(errorOf(damaged),
              AllOf(HasSubstr("is 7, but this mtrun reads version 1"),
                    HasSubstr("it has been damaged")));
  EXPECT_THROW(
      try { parseManifest("m.json", damaged); } catch (const ForeignVersion &) {
      } catch (const CheckpointError &) { throw; },
      CheckpointError);
}

TEST(Manifest, EveryChangedByteIsFound) {
  const std::string text = manifestText(example());
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const int bits : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ bits);
      ASSERT_NE(errorOf(other), "") << i << " " << bits;
    }
  EXPECT_NE(errorOf(text + " "), "");
  EXPECT_NE(errorOf(text.substr(1)), "");
}

// xxh128sum prints this digest for an empty file.
TEST(Digest, IsThatOfXxhsum) {
  EXPECT_EQ(textOf(digestOf("")), "99aa06d3014798d86001c324468d497f");
}

} // namespace
} // namespace mtplan::runtime
