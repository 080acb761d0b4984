//===- page_text_test.cpp - Text and numbers in HTML ----------------------===//

#include <limits>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/report/page/html.h"

namespace {

using namespace mtplan::tools;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kReplaced = "\xEF\xBF\xBD";

TEST(PageText, EscapesMarkup) {
  EXPECT_EQ(escaped("</script><a b=\"c\" d='e'>&amp;"),
            "&lt;/script&gt;&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
  EXPECT_EQ(escaped("<!-- ]]> -->"), "&lt;!-- ]]&gt; --&gt;");
}

TEST(PageText, KeepsCharactersOfEveryLength) {
  std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  EXPECT_EQ(escaped(text), text);
}

TEST(PageText, ReplacesInvalidUtf8) {
  EXPECT_EQ(escaped("a\xFF"
                    "b"),
            "a" + kReplaced + "b");
  // The cases are an overlong slash, half a surrogate pair, a text that ends
  // early, and a code beyond Unicode.
  EXPECT_EQ(escaped("\xC0\xAF"), kReplaced + kReplaced);
  EXPECT_EQ(escaped("\xED\xA0\x80"), kReplaced + kReplaced + kReplaced);
  EXPECT_EQ(escaped("\xE2\x82<"), kReplaced + kReplaced + "&lt;");
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"),
            kReplaced + kReplaced + kReplaced + kReplaced);
}

TEST(PageText, ReplacesInvisibleCharacters) {
  EXPECT_EQ(escaped(std::string("a\0b\x1B[1m", 6)),
            "a" + kReplaced + "b" + kReplaced + "[1");
  EXPECT_EQ(escaped("\xE2\x80\xAE"
                    "evil"),
            kReplaced + "evil"); // right-to-left override
  EXPECT_EQ(escaped("one\ntwo\tthree"), "one two three");
}

TEST(PageText, CutsByCharacter) {
  EXPECT_EQ(escaped("abc", 3), "abc");
  EXPECT_EQ(escaped("abcd", 3), "abc\xE2\x80\xA6");
  EXPECT_EQ(escaped("\xC3\xA9\xC3\xA9\xC3\xA9", 2),
            "\xC3\xA9\xC3\xA9\xE2\x80\xA6");
}

TEST(PageText, MakesUtf8OfAnyBytes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(1 + random() % 12, ' ');
    for (char &byte : bytes)
      byte = static_cast<char>(random() % 3 == 0 ? random() % 128
                                                 : 128 + random() % 128);
    std::string text = escaped(bytes);
    EXPECT_NO_THROW(nlohmann::json(text).dump())
        << round; // throws on invalid UTF-8
    EXPECT_EQ(text.find_first_of("<>\"'"), std::string::npos) << round;
  }
}

TEST(PageText, WritesNumbersForDrawings) {
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(12.04), "12");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(std::numeric_limits<double>::infinity()), "0");
  EXPECT_EQ(coordinate(1e300), "10000000");
}

TEST(PageText, WritesQuantities) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  EXPECT_EQ(secondsText(0.0123), "12.3 ms");
  EXPECT_EQ(bytesAsText(3.5 * kGib), "3.50 GiB");
  EXPECT_EQ(bytesAsText(2048 * kGib), "2.00 TiB");
  EXPECT_EQ(secondsText(std::numeric_limits<double>::quiet_NaN()), "unknown");
  EXPECT_EQ(bytesAsText(1e30), "1e+30 B");
}

TEST(PageScale, TicksAreRound) {
  EXPECT_THAT(ticksOf(0, 6, kSecondsUnit), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ticksOf(100, 170, kSecondsUnit),
              ElementsAre(100, 110, 120, 130, 140, 150, 160, 170));
  // The ticks of 3 KiB are multiples of half a KiB, not of 500 bytes.
  EXPECT_THAT(ticksOf(0, 3072, kBytesUnit),
              ElementsAre(0, 512, 1024, 1536, 2048, 2560, 3072));
  EXPECT_THAT(ticksOf(5, 5, kSecondsUnit), IsEmpty());
}

TEST(PageScale, TicksEndThoughNeighboursAreEqual) {
  EXPECT_THAT(ticksOf(1e17, 1e17 + 16, kSecondsUnit), IsEmpty());
}

TEST(PageScale, ChoosesEvenlyWithBothEnds) {
  EXPECT_THAT(evenly(64, 4), ElementsAre(0, 21, 42, 63));
  EXPECT_THAT(evenly(3, 8), ElementsAre(0, 1, 2));
  EXPECT_THAT(evenly(9, 1), ElementsAre(0));
  EXPECT_THAT(evenly(0, 4), IsEmpty());
}

TEST(PageTables, CountWhatTheyLeaveOut) {
  HtmlTable table("all & sundry");
  table.column("name");
  table.number("size");
  for (int i = 0; i < 603; ++i)
    table.row({"row " + std::to_string(i), "<1>"});
  std::string text = table.print();
  EXPECT_THAT(text, HasSubstr("all &amp; sundry"));
  EXPECT_THAT(text, HasSubstr("row 599<"));
  EXPECT_THAT(text, Not(HasSubstr("row 600<")));
  EXPECT_THAT(text, HasSubstr("and 3 more rows"));
  EXPECT_THAT(text, HasSubstr("<td class=\"n\">&lt;1&gt;</td>"));
}

} // namespace
